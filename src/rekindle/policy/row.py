"""Make the row of an agent, from its log and its locks, or from what a fleet's engine keeps.

No other code words the state of an agent, so that no two screens disagree.
"""

from collections.abc import Callable
from datetime import datetime, tzinfo

import msgspec

from rekindle.documents.manifest import Budget
from rekindle.documents.row import Figure, Row, Source, Spend, State, Window
from rekindle.policy import endings, loops, sessions
from rekindle.policy.budget import raise_caps
from rekindle.policy.endings import ENDINGS, OUTCOMES, REACTIONS, Outcome
from rekindle.policy.fold import Projection
from rekindle.policy.sessions import Attempt
from rekindle.policy.settings import Loops

_SOURCES: dict[str, Source] = {
    "reported": "reported",
    "exact": "reported",
    "estimated": "estimated",
}


class Around(msgspec.Struct, frozen=True):
    """What is known of an agent besides its log."""

    now: datetime
    is_supervised: bool = False
    is_alive: Callable[[str], bool] = lambda _: False
    """Whether the process of a session that a person began still runs."""
    zone: tzinfo | None = None
    """The operator's; None: that of this process."""
    budget: Budget | None = None
    loops: Loops = Loops()


class _Standing(msgspec.Struct, frozen=True):
    state: State
    reason: str = ""
    command: str = ""
    outcome: Outcome | None = None
    others: tuple[str, ...] = ()


def make_row(known: Projection, around: Around, harness: str = "") -> Row:
    """Return the row of an agent whose log could be read."""
    standing = _standing(known, around)
    opened = loops.open_now(known.loops, around.now, around.loops)
    relay = known.documents.get("relay")
    return Row(
        agent=known.agent,
        harness=harness,
        at=known.seq,
        state=standing.state,
        outcome=standing.outcome,
        label=OUTCOMES[standing.outcome].words if standing.outcome else "",
        reason=standing.reason,
        command=standing.command,
        others=standing.others,
        next_action=relay.headline if relay else "",
        cycle=known.cycle,
        cycles_done=max(0, known.cycle_ended - known.run.first),
        cycles_of=known.run.cycles.cycles or None,
        window=_window(known),
        spend=_spend(known, around.budget),
        open_loops=len(opened),
        stale_loops=sum(one.stale for one in opened),
        refused=known.run.refused_of_run(),
        open_questions=_count_questions(known, around.now),
        last_active=_last_active(known),
    )


def new_row(agent: str, harness: str = "") -> Row:
    """Return the row of an agent that was never started."""
    return Row(
        agent=agent,
        harness=harness,
        state="stopped",
        reason="not started yet",
        command=f"rekindle run {agent}",
    )


def broken_row(agent: str, harness: str, error: str, hint: str | None) -> Row:
    """Return the row of an agent whose files cannot be read."""
    return Row(
        agent=agent,
        harness=harness,
        state="broken",
        reason=error,
        command=hint or "rekindle doctor",
    )


_LISTED: dict[str, tuple[State, str]] = {
    "new": ("stopped", "not started yet"),
    "running": ("running", ""),
    "queued": ("waiting", "for a host with a free slot"),
    "waiting": ("waiting", ""),
    "safe": ("needs you", "in safe mode"),
    "stopped": ("stopped", "by you"),
    "over": ("stopped", "its run is over"),
}
"""States of the engine's own list, if it holds no reason."""


def listed_row(agent: str, harness: str, listed: str, cycle: int, why: str = "") -> Row:
    """Return the row of an agent of which only the engine's list is known.

    `why` is the reason of a run that is over or in safe mode, if the list has it.
    """
    state, reason = _LISTED.get(listed, ("broken", f"the engine lists it as {listed}"))
    outcome: Outcome | None = None
    if why:
        outcome, reason = ENDINGS[endings.known(why)].outcome, endings.explain(why)
        state = "needs you" if listed == "safe" else OUTCOMES[outcome].state
    return Row(
        agent=agent,
        harness=harness,
        state=state,
        outcome=outcome,
        label=OUTCOMES[outcome].words if outcome else "",
        reason=reason,
        cycle=cycle,
        command=f"rekindle status {agent}" if listed in {"over", "safe"} else "",
    )


def _last_active(known: Projection) -> datetime | None:
    """Return the last sign of the agent; of one that gave none, when its process began."""
    began = (one.began for one in known.attempts.values())
    return max(filter(None, (known.last_active, *began)), default=None)


def _standing(known: Projection, around: Around) -> _Standing:
    tried = sessions.newest(known.attempts)
    if known.run.is_safe:
        return _safe(known, around)
    if known.may_miss_stop:
        lost = "events of its log are lost, and a stop may be among them"
        return _Standing("broken", lost, "rekindle doctor")
    if around.is_supervised:
        return _supervised(known, tried, around)
    if tried is None and not known.run.is_over:
        return _by_hand(known, around)
    return _left(known, tried, around)


def _safe(known: Projection, around: Around) -> _Standing:
    """Return how an agent is that is in safe mode."""
    run = known.run
    reason = explain_safe_mode(known)
    if run.safe.why == "tampered":
        return _Standing("broken", reason, "rekindle doctor")
    if run.desired == "stopped" and not around.is_supervised:
        command = endings.command(
            run.safe.why, known.agent, is_safe=True, is_supervised=around.is_supervised
        )
        return _Standing("stopped", f"by you, in safe mode: {reason}", command, "stopped")
    outcome = ENDINGS[endings.known(run.safe.why)].outcome
    command, others = next_command(
        known, around.now, run.safe.why, is_supervised=around.is_supervised
    )
    return _Standing("needs you", reason, command, outcome, others)


def explain_safe_mode(known: Projection) -> str:
    """Return why an agent is in safe mode; of crashes also how many there were in the cycle."""
    safe = known.run.safe
    if safe.why != "crash":
        return endings.explain(safe.why, safe.words)
    tried = sessions.of_cycle(known.attempts, known.cycle_now).values()
    crashed = sum(REACTIONS[endings.reaction(one.exit)].counts for one in tried if one.exit)
    times = "once" if crashed <= 1 else f"{crashed} times"
    last = f"{', the last time' if crashed > 1 else ''}: {safe.words}" if safe.words else ""
    return f"crashed {times} in cycle {known.cycle_now}{last}"


def _by_hand(known: Projection, around: Around) -> _Standing:
    """Return how the last session is that a person began, without a supervisor."""
    lives = [life for life in known.lives.values() if life.started]
    if not lives:
        return _Standing("stopped", "not started yet", f"rekindle run {known.agent}")
    last = max(lives, key=lambda life: (life.started_seq, life.ended_seq))
    if not last.is_open:
        return _Standing("stopped", "your last session has ended")
    if any(life.is_open and life.process and around.is_alive(life.process) for life in lives):
        return _Standing("running", "a session of yours")
    return _Standing("stopped", "your last session was killed: it did not report its end")


def _supervised(known: Projection, tried: Attempt | None, around: Around) -> _Standing:
    waits = known.run.waits(tried.seq if tried else 0)
    if waits is None:
        return _Standing("running", f"cycle {known.cycle_now}")
    exit_words = tried.words if tried and tried.exit == waits.why else ""
    words = endings.explain_wait(waits.why, waits.until, around.now, around.zone, exit_words)
    return _Standing("waiting", words, outcome="waiting")


def _left(known: Projection, tried: Attempt | None, around: Around) -> _Standing:
    """Return how an agent is that has no supervisor."""
    run, name = known.run, known.agent
    if run.is_over:
        why = run.ended.why
        outcome, reason = ENDINGS[endings.known(why)].outcome, endings.explain(why, run.ended.words)
        state = OUTCOMES[outcome].state
        # A stop that came after it, as an answer, settles what it needed.
        if state in {"done", "stopped"} or run.desired != "stopped":
            command, others = ("", ()) if state == "done" else next_command(known, around.now, why)
            return _Standing(state, reason, command, outcome, others)
    if run.desired == "stopped":
        return _Standing("stopped", "by you", f"rekindle run {name}", "stopped")
    if not known.is_cycle_open:
        return _Standing("stopped", f"after cycle {known.cycle}", f"rekindle run {name}")
    reason = endings.explain(tried.exit or "lost", tried.words) if tried else ""
    return _Standing("stopped", f"in cycle {known.cycle}: {reason}", f"rekindle run {name}")


def next_command(
    known: Projection, now: datetime, why: str, *, is_supervised: bool = False
) -> tuple[str, tuple[str, ...]]:
    """Return the command that answers the open question, else the one that continues.

    Beside it the other answers that the question takes.
    """
    if known.questions:
        from rekindle.policy import questions  # noqa: PLC0415 - few agents have any, and it starts later

        if asked := questions.blocking(known, now):
            return questions.command_line(asked), questions.other_answers(asked)
    is_safe = known.run.is_safe
    return endings.command(why, known.agent, is_safe=is_safe, is_supervised=is_supervised), ()


def _count_questions(known: Projection, now: datetime) -> int:
    if not known.questions:
        return 0
    from rekindle.policy import questions  # noqa: PLC0415 - as above

    return len(questions.open_questions(known, now))


def _window(known: Projection) -> Window:
    fill = known.window
    if not fill.tokens:
        return Window()
    source = _SOURCES.get(fill.known, "unknown")
    tokens = Figure(fill.tokens, _source_of_tokens(known))
    if not fill.window or source == "unknown":
        return Window(tokens, fill.window or None)
    return Window(tokens, fill.window, Figure(round(100 * fill.tokens / fill.window, 1), source))


def _source_of_tokens(known: Projection) -> Source:
    """Return whether the CLI counts its tokens; one that reports no size of its window may."""
    fill = known.window
    return "estimated" if fill.known == "estimated" and not fill.window else "reported"


def _spend(known: Projection, cap: Budget | None) -> Spend:
    spent, cap = known.run.spent_of_run(), raise_caps(cap, known.run.raised_of_run())
    source: Source = "reported" if spent.is_reported and not spent.unpriced else "estimated"
    return Spend(
        usd=Figure(round(spent.usd, 4), source) if spent.usd else Figure(),
        tokens=Figure(spent.tokens, _source_of_tokens(known)) if spent.tokens else Figure(),
        unpriced=spent.unpriced,
        usd_cap=cap.usd if cap else None,
        tokens_cap=cap.tokens if cap else None,
    )
