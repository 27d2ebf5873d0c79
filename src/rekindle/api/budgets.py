"""Read an agent's spending and its caps, and raise the caps of its run."""

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rekindle.api.agent_store import read_known
from rekindle.documents.events import BudgetRaised
from rekindle.documents.manifest_keys import Budget
from rekindle.errors import AgentError, UsageError
from rekindle.policy.operator import questions
from rekindle.policy.settings.runtime_settings import SECONDS_AN_HOUR
from rekindle.policy.supervision import run_moves
from rekindle.policy.supervision.budget import raise_caps
from rekindle.system import clock, host

if TYPE_CHECKING:
    from rekindle.api.home import Home

_UNITS = ("usd", "tokens", "hours")


class RunBudget(NamedTuple):
    """The caps of an agent's run, and its spending so far."""

    caps: Budget
    """The caps in rekindle.yaml, or those that the operator raised for this run."""
    spent: Budget
    """The spending, in the same units."""
    is_estimated: bool = False
    """Whether a part of the cost was computed from tokens."""


def read_budget(home: "Home", name: str) -> RunBudget:
    """Return an agent's caps and spending. Without a run, the spending is zero."""
    run, entry = read_known(home.store, name).run, home.project.manifest.agents.get(name)
    caps = raise_caps(entry.budget if entry else None, run.raised_caps()) or Budget()
    spending = run.run_spending()
    hours = (clock.read_clock() - run.began_at).total_seconds() if run.began_at else 0.0
    spent = Budget(spending.usd, spending.tokens, hours / SECONDS_AN_HOUR)
    return RunBudget(caps, spent, spending.is_estimated)


def raise_budget(home: "Home", name: str, wanted: Budget) -> RunBudget:
    """Raise the caps of an agent's run, and return its new budget.

    Raises:
        UsageError: The agent does not have this cap, or the new cap is not above it.
        AgentError: The agent has no run that could continue.
    """
    budget = read_budget(home, name)
    raised = {
        unit: _require_higher(name, unit, budget, amount)
        for unit in _UNITS
        if (amount := getattr(wanted, unit)) is not None
    }
    if not raised:
        raise UsageError(
            "there is no cap to raise", hint="name the new cap in usd, tokens or hours"
        )
    _require_run(home, name, raised)
    event = BudgetRaised(
        ts=clock.read_clock(),
        usd=wanted.usd,
        tokens=wanted.tokens,
        hours=wanted.hours,
        by=host.identify_user(),
        host=host.identify_host(),
        origin=home.operator.origin,
    )
    home.store.submit(name, event)
    return budget._replace(caps=msgspec.structs.replace(budget.caps, **raised))


def _require_higher(name: str, unit: str, budget: RunBudget, amount: float) -> float:
    cap = getattr(budget.caps, unit)
    if cap is None:
        raise UsageError(
            f"{name} does not have a cap in {unit}",
            hint=f"set `budget: {{{unit}: …}}` for it in rekindle.yaml, and restart it",
        )
    least = max(cap, getattr(budget.spent, unit))
    if not least < amount < float("inf"):
        raise UsageError(
            f"the new cap must be a number above {least:,g} {unit}, not {amount:,g}",
            hint=f"`rekindle budget {name}` shows the caps and the spending",
        )
    return amount


def _require_run(home: "Home", name: str, raised: dict[str, float]) -> None:
    known = read_known(home.store, name)
    question = questions.find_blocking_question(known, clock.read_clock())
    if question is not None and question.about == questions.BUDGET:
        amount = raised.get(str(question.request.get("unit")), next(iter(raised.values())))
        raise AgentError(
            f"{name} has spent its budget, and asks what to do",
            hint=f"`rekindle answer {question.question} 'raise {amount:g}'` raises it",
        )
    if run_moves.is_new_run(known.run, known.attempts.values()):
        raise AgentError(
            f"{name} has no run whose budget could be raised",
            hint="change `budget:` in rekindle.yaml, which its next run uses",
        )
