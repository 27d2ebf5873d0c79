"""Build an agent's row from its log and locks, or from a fleet's engine.

All screens use this module to describe an agent's state, so that they never disagree.
"""

from collections.abc import Callable
from datetime import datetime, tzinfo

import msgspec

from rekindle.documents.manifest_keys import Budget
from rekindle.documents.screens.agent_row import (
    AgentRow,
    AgentState,
    Figure,
    FigureSource,
    SpendFigures,
    WindowFigures,
)
from rekindle.policy.exits import explain_reasons, stop_reasons
from rekindle.policy.exits.stop_reasons import OUTCOMES, REACTIONS, STOP_REASONS, Outcome
from rekindle.policy.projection import (
    open_loops,
    sessions,
)
from rekindle.policy.projection.projection import Projection
from rekindle.policy.projection.sessions import LaunchRecord
from rekindle.policy.settings.runtime_settings import LoopSettings
from rekindle.policy.supervision.budget import raise_caps

DOCTOR = "rekindle doctor"
"""Command that the operator should run first if an agent's files cannot be read."""
_SOURCES: dict[str, FigureSource] = {
    "reported": "reported",
    "exact": "reported",
    "estimated": "estimated",
}


class RowInputs(msgspec.Struct, frozen=True):
    """Facts about an agent that are not in its log."""

    now: datetime
    is_supervised: bool = False
    is_alive: Callable[[str], bool] = lambda _: False
    """Returns whether a session that a person started still has a running process."""
    zone: tzinfo | None = None
    """The operator's time zone; None for this process's time zone."""
    budget: Budget | None = None
    loops: LoopSettings = LoopSettings()


class _AgentStanding(msgspec.Struct, frozen=True):
    state: AgentState
    reason: str = ""
    command: str = ""
    outcome: Outcome | None = None
    others: tuple[str, ...] = ()
    waits_until: datetime | None = None


def build_row(projection: Projection, around: RowInputs, harness: str = "") -> AgentRow:
    """Return the row for an agent whose log is readable."""
    standing = _find_standing(projection, around)
    opened = open_loops.list_open_loops(projection.loops, around.now, around.loops)
    relay = projection.documents.get("relay")
    return AgentRow(
        agent=projection.agent,
        harness=harness,
        at=projection.seq,
        state=standing.state,
        outcome=standing.outcome,
        label=OUTCOMES[standing.outcome].words if standing.outcome else "",
        reason=standing.reason,
        command=standing.command,
        others=standing.others,
        next_action=relay.headline if relay else "",
        cycle=projection.cycle,
        cycles_done=max(0, projection.cycle_ended - projection.run.first),
        cycles_of=projection.run.cycles.cycles or None,
        window=_build_window(projection),
        spend=_build_spend(projection, around.budget),
        open_loops=len(opened),
        stale_loops=sum(loop.stale for loop in opened),
        refused=projection.run.refused_call_count(),
        open_questions=_count_questions(projection, around.now),
        last_active=_find_last_activity(projection),
        waits_until=standing.waits_until,
    )


def build_new_row(agent: str, harness: str = "") -> AgentRow:
    """Return the row for an agent that has never been started."""
    return AgentRow(
        agent=agent,
        harness=harness,
        state="stopped",
        reason="not started yet",
        command=f"rekindle run {agent}",
    )


def build_broken_row(agent: str, harness: str, error: str, hint: str | None) -> AgentRow:
    """Return the row for an agent whose files cannot be read."""
    return AgentRow(
        agent=agent,
        harness=harness,
        state="broken",
        reason=error,
        command=hint or DOCTOR,
    )


_LISTED: dict[str, tuple[AgentState, str]] = {
    "new": ("stopped", "not started yet"),
    "running": ("running", ""),
    "queued": ("waiting", "for a host with a free slot"),
    "capped": ("waiting", "its team is at its cap"),
    "waiting": ("waiting", ""),
    "safe": ("needs you", "in safe mode"),
    "stopped": ("stopped", "by you"),
    "over": ("stopped", "its run is over"),
}
"""State and reason for each status in the engine's list, used if the list gives no reason."""
LISTED_STATES: dict[AgentState, tuple[str, ...]] = {
    "running": ("running",),
    "waiting": ("queued", "capped", "waiting"),
    "needs you": ("safe", "over"),
    "stopped": ("new", "stopped", "over"),
    "done": ("over",),
}
"""Statuses in the engine's list that an agent in a state may have. The reason decides."""

_LISTED_COMMANDS = {
    "over": "rekindle status {agent}",
    "safe": "rekindle status {agent}",
    "capped": "rekindle fleet team",
}


def build_listed_row(agent: str, harness: str, listed: str, cycle: int, why: str = "") -> AgentRow:
    """Return the row for an agent that is known only from the engine's list.

    `why` is the reason why the run ended or entered safe mode, or "" if the list has none.
    """
    state, reason = _LISTED.get(listed, ("broken", f"the engine lists it as {listed}"))
    outcome: Outcome | None = None
    if why:
        outcome, reason = (
            STOP_REASONS[stop_reasons.parse_reason(why)].outcome,
            explain_reasons.explain_reason(why),
        )
        state = "needs you" if listed == "safe" else OUTCOMES[outcome].state
    return AgentRow(
        agent=agent,
        harness=harness,
        state=state,
        outcome=outcome,
        label=OUTCOMES[outcome].words if outcome else "",
        reason=reason,
        cycle=cycle,
        command=_LISTED_COMMANDS.get(listed, "").format(agent=agent),
    )


def _find_last_activity(projection: Projection) -> datetime | None:
    """Return the time of the last report or of the last launch's start, whichever is later."""
    began = (launch.began for launch in projection.attempts.values())
    return max(filter(None, (projection.last_active, *began)), default=None)


def _find_standing(projection: Projection, around: RowInputs) -> _AgentStanding:
    newest_launch = sessions.find_newest_launch(projection.attempts)
    if projection.run.is_safe:
        return _describe_safe_mode(projection, around)
    if projection.may_miss_stop:
        lost = "events are missing from its log, and a stop may be among them"
        return _AgentStanding("broken", lost, DOCTOR)
    if around.is_supervised:
        return _describe_supervised(projection, newest_launch, around)
    if newest_launch is None and not projection.run.is_over:
        return _describe_manual_session(projection, around)
    return _describe_unsupervised(projection, newest_launch, around)


def _describe_safe_mode(projection: Projection, around: RowInputs) -> _AgentStanding:
    """Describe the state of an agent in safe mode."""
    run = projection.run
    reason = explain_safe_mode(projection)
    if state := STOP_REASONS[stop_reasons.parse_reason(run.safe.why)].state:
        return _AgentStanding(state, reason, DOCTOR)
    command, others = find_next_command(
        projection, around.now, run.safe.why, is_supervised=around.is_supervised
    )
    if run.desired == "stopped" and not around.is_supervised:
        return _AgentStanding("stopped", f"by you, in safe mode: {reason}", command, "stopped")
    outcome = STOP_REASONS[stop_reasons.parse_reason(run.safe.why)].outcome
    return _AgentStanding("needs you", reason, command, outcome, others)


def explain_safe_mode(projection: Projection) -> str:
    """Explain why an agent is in safe mode. For crashes, include their number in this cycle."""
    safe = projection.run.safe
    if safe.why != "crash":
        return explain_reasons.explain_reason(safe.why, safe.words)
    launches = sessions.select_cycle_launches(
        projection.attempts, projection.current_cycle
    ).values()
    crashed = sum(
        REACTIONS[stop_reasons.find_reaction(launch.exit)].counts
        for launch in launches
        if launch.exit
    )
    times = "once" if crashed <= 1 else f"{crashed} times"
    last = f"{', the last time' if crashed > 1 else ''}: {safe.words}" if safe.words else ""
    return f"crashed {times} in cycle {projection.current_cycle}{last}"


def _describe_manual_session(projection: Projection, around: RowInputs) -> _AgentStanding:
    """Describe an agent whose sessions a person starts, without a supervisor."""
    lives = [life for life in projection.lives.values() if life.started]
    if not lives:
        return _AgentStanding("stopped", "not started yet", f"rekindle run {projection.agent}")
    last = max(lives, key=lambda life: (life.started_seq, life.ended_seq))
    if not last.is_open:
        return _AgentStanding("stopped", "your last session has ended")
    if any(life.is_open and life.process and around.is_alive(life.process) for life in lives):
        return _AgentStanding("running", "your own session")
    return _AgentStanding("stopped", "your last session was killed before it reported its end")


def _describe_supervised(
    projection: Projection, launch: LaunchRecord | None, around: RowInputs
) -> _AgentStanding:
    waits = projection.run.waits(launch.seq if launch else 0)
    if waits is None:
        return _AgentStanding("running", f"cycle {projection.current_cycle}")
    exit_words = waits.words or (launch.words if launch and launch.exit == waits.why else "")
    words = explain_reasons.explain_wait(
        waits.why, waits.until, around.now, around.zone, exit_words
    )
    return _AgentStanding("waiting", words, outcome="waiting", waits_until=waits.until)


def _describe_unsupervised(
    projection: Projection, launch: LaunchRecord | None, around: RowInputs
) -> _AgentStanding:
    """Describe the state of an agent without a supervisor."""
    run, name = projection.run, projection.agent
    if run.is_over:
        why = run.ended.why
        outcome, reason = (
            STOP_REASONS[stop_reasons.parse_reason(why)].outcome,
            explain_reasons.explain_reason(why, run.ended.words),
        )
        state = OUTCOMES[outcome].state
        # If the operator has stopped the agent since then, for example with an answer, its question
        # is settled.
        if state in {"done", "stopped"} or run.desired != "stopped":
            command, others = (
                ("", ()) if state == "done" else find_next_command(projection, around.now, why)
            )
            return _AgentStanding(state, reason, command, outcome, others)
    if run.desired == "stopped":
        return _AgentStanding("stopped", "by you", f"rekindle run {name}", "stopped")
    if not projection.is_cycle_open:
        return _AgentStanding("stopped", f"after cycle {projection.cycle}", f"rekindle run {name}")
    reason = explain_reasons.explain_reason(launch.exit or "lost", launch.words) if launch else ""
    return _AgentStanding(
        "stopped", f"in cycle {projection.cycle}: {reason}", f"rekindle run {name}"
    )


def find_next_command(
    projection: Projection, now: datetime, why: str, *, is_supervised: bool = False
) -> tuple[str, tuple[str, ...]]:
    """Return the command that answers the open question, or that continues the agent.

    The second value lists the other possible answers to the question.
    """
    if projection.questions:
        from rekindle.policy.operator import answers, questions  # noqa: PLC0415 - rarely needed

        if question := questions.find_blocking_question(projection, now):
            return answers.render_answer_command(question), answers.list_other_answers(question)
    is_safe = projection.run.is_safe
    return explain_reasons.render_continue_command(
        why, projection.agent, is_safe=is_safe, is_supervised=is_supervised
    ), ()


def _count_questions(projection: Projection, now: datetime) -> int:
    if not projection.questions:
        return 0
    from rekindle.policy.operator import questions  # noqa: PLC0415 - see above

    return len(questions.list_open_questions(projection, now))


def _build_window(projection: Projection) -> WindowFigures:
    fill = projection.window
    if not fill.tokens:
        return WindowFigures()
    source = _SOURCES.get(fill.known, "unknown")
    tokens = Figure(fill.tokens, _find_token_source(projection))
    if not fill.window or source == "unknown":
        return WindowFigures(tokens, fill.window or None)
    return WindowFigures(
        tokens, fill.window, Figure(round(100 * fill.tokens / fill.window, 1), source)
    )


def _find_token_source(projection: Projection) -> FigureSource:
    """Return whether the CLI reports its token counts or Rekindle estimates them.

    A CLI may report its tokens without its window size.
    """
    fill = projection.window
    is_estimated = fill.known == "estimated" or not fill.tokens
    return "estimated" if is_estimated and not fill.window else "reported"


def _build_spend(projection: Projection, cap: Budget | None) -> SpendFigures:
    spent, cap = projection.run.run_spending(), raise_caps(cap, projection.run.raised_caps())
    source: FigureSource = "reported" if spent.is_reported and not spent.unpriced else "estimated"
    return SpendFigures(
        usd=Figure(round(spent.usd, 4), source) if spent.usd else Figure(),
        tokens=Figure(spent.tokens, _find_token_source(projection)) if spent.tokens else Figure(),
        unpriced=spent.unpriced,
        usd_cap=cap.usd if cap else None,
        tokens_cap=cap.tokens if cap else None,
    )
