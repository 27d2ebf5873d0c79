"""Generate the page on keeping agents alive from the decision tables.

The edges of the diagram come from calls to the policy in every state.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby

from rekindle.documents.manifest_keys import Budget
from rekindle.policy.exits import stop_reasons
from rekindle.policy.exits.restart import (
    EnterSafeMode,
    StopRun,
    WaitUntil,
)
from rekindle.policy.progress import (
    idle,
    work_progress,
)
from rekindle.policy.projection.sessions import LaunchRecord
from rekindle.policy.settings.runtime_settings import (
    PROBE_INTERVAL,
    PROBED_CRASHES,
    LimitSettings,
    ProgressSettings,
    RestartSettings,
    RuntimeSettings,
)
from rekindle.policy.supervision import (
    hang,
    watchdog_table,
)
from rekindle.policy.supervision.budget import RunSpending
from rekindle.policy.supervision.run_moves import (
    LogPosition,
    Move,
    OperatorCommand,
    RunState,
    decide_next_move,
)

NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)
LATER = NOW + timedelta(days=1)
BEGAN, ENDED, SAID = 1, 5, 9
"""Positions in the log: start of the run, a later event, and a later command of the operator."""
STATES = {
    "starting": "starting",
    "running": "running",
    "pausing": "pausing",
    "waiting": "waiting",
    "probing": f"probing every {PROBE_INTERVAL}",
    "safe": "safe mode",
    "stopped": "stopped",
    "over": "over",
}
RUNTIME = RuntimeSettings()
NO_IDLE = idle.IdleWork()


def page() -> str:
    return "\n".join(
        [
            "# Keeping alive\n",
            "This page shows the rules that Rekindle follows to restart agents. They are generated",
            "from the code that makes these decisions: `policy/exits/stop_reasons.py`,",
            "`policy/supervision/hang.py` and `policy/supervision/watchdog_table.py`. [The",
            "guide](../guides/keep-an-agent-alive.md) shows how to use Rekindle, and the page",
            "on [settings](settings.md) lists the timeouts.\n",
            "## When the agent's process ends\n",
            *_table(("exit", "reaction", "counts as a crash"), _ends()),
            *_table(
                ("reaction", "meaning"),
                (_cells(name, row.meaning) for name, row in stop_reasons.REACTIONS.items()),
            ),
            "## The supervisor\n",
            "The diagram shows how a supervisor moves between states. The numbers count",
            "consecutive exits of the same kind.\n",
            "```mermaid\nstateDiagram-v2",
            *(f'    state "{title}" as {name}' for name, title in STATES.items()),
            *(f"    {edge}" for edge in _edges()),
            "```\n",
            "## Progress\n",
            "A launch or a cycle made progress if it produced one of these:\n",
            *(f"- {row.words}" for row in work_progress.PROGRESS_TABLE),
            "",
            _bounds(),
            "## When the agent is silent\n",
            "The first matching row applies. Rekindle does not detect hangs in `mode: stay`.\n",
            *_table(("observation", "reaction"), _silences()),
            "## When the supervisor is gone\n",
            "The watchdog checks each agent against this table. The first matching row applies.\n",
            *_table(("observation", "the watchdog"), _watched()),
            "If a supervisor is killed, what happens next depends on its agent's last state:\n",
            *_table(("last state", "the watchdog"), _killed()),
        ]
    )


def _bounds() -> str:
    words = idle.describe_bounds(RUNTIME.progress)
    return (
        f"{words[0].upper()}{words[1:]}. If a running launch reaches the limit in hours or "
        "dollars, Rekindle stops it. A paused agent is in safe mode until you run `rekindle "
        "restart`. `rekindle stop` resets the number of launches, but not the hours and dollars. "
        "`rekindle run --budget none` disables the pause, but not the waits. Rekindle notifies "
        "you before the first probe, and when launches have failed for 45 minutes without "
        "progress.\n"
    )


def _table(heads: Sequence[str], rows: Iterable[str]) -> list[str]:
    return [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}", *rows, ""]


def _cells(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _ends() -> Iterator[str]:
    for kind in stop_reasons.EXIT_KINDS:
        reaction = stop_reasons.find_reaction(kind)
        is_crash = stop_reasons.REACTIONS[reaction].counts
        counts = (
            "only if the session was fresh" if reaction == "replace" else "yes" if is_crash else "-"
        )
        yield _cells(f"`{kind}`", reaction, counts)


def _silences() -> Iterator[str]:
    for row in hang.HANG_TABLE:
        yield _cells(row.words, hang.ACTION_MEANINGS[row.answer])


def _watched() -> Iterator[str]:
    for row in watchdog_table.WATCH_TABLE:
        yield _cells(row.words, _does(row))


def _does(row: watchdog_table.WatchRow) -> str:
    return "restarts the supervisor" if row.starts else "does nothing"


def _killed() -> Iterator[str]:
    for name, title in STATES.items():
        run, _ = _example(name)
        row = watchdog_table.decide_start(
            watchdog_table.WatchFacts(supervised=False, desired=run.desired, is_over=run.is_over)
        )
        yield _cells(title, _does(row) if row.starts else f"{_does(row)} ({row.words})")


def _edges() -> Iterator[str]:
    starts = next(row for row in watchdog_table.WATCH_TABLE if row.starts)
    yield "[*] --> starting : rekindle run, rekindle up"
    yield f"[*] --> starting : the watchdog, when {_label(starts.words)}"
    yield "starting --> running"
    yield from (
        f"running --> running : {_label(row.words)}"
        for row in hang.HANG_TABLE
        if row.answer == "say"
    )
    yield from _after_ends()
    for name in ("pausing", "waiting", "probing"):
        yield f"{name} --> {_asked(*_example(name), now=LATER)} : the wait is over"
    for name in ("running", "pausing", "waiting", "probing", "safe"):
        run, tried = _example(name)
        yield f"{name} --> {_asked(_said(run, 'stopped'), tried)} : rekindle stop"
    for name in ("running", "pausing", "waiting", "probing", "safe", "stopped", "over"):
        run, tried = _example(name)
        again = _said(run, "running", restarted=SAID)
        yield f"{name} --> {_asked(again, tried)} : rekindle restart"
    yield from ("stopped --> [*]", "over --> [*]")


def _after_ends() -> Iterator[str]:
    """Yield the edges for each kind of exit; kinds with the same targets share their edges."""
    found: dict[tuple[str, ...], list[str]] = {}
    for kind in stop_reasons.EXIT_KINDS:
        found.setdefault(_places(kind), []).append(kind)
    for places, kinds in found.items():
        name = " or ".join(kinds)
        for place, same in groupby(enumerate(places, 1), lambda one: one[1]):
            times = [number for number, _ in same]
            yield f"running --> {place} : {name}{_times(times, len(places))}"
    run, tried = _run(), _tried("clean")
    yield f"running --> {_asked(run, tried, stays=True)} : {tried[0].exit}, in mode stay"
    never = RuntimeSettings(limits=LimitSettings(wait=False))
    tried = _tried("limit")
    yield f"running --> {_asked(run, tried, runtime=never)} : {tried[0].exit}, with limits.wait off"
    few = RuntimeSettings(restart=RestartSettings(max_crashes=2))
    place = _asked(run, _tried("crash", "crash"), runtime=few)
    yield f"running --> {place} : max_crashes crashes within the window"
    for name, runtime in (
        ("paced_after", RuntimeSettings(progress=ProgressSettings(paced_after=1))),
        ("max_launches", RuntimeSettings(progress=ProgressSettings(max_launches=1))),
    ):
        place = _asked(run, _tried("interrupted"), runtime=runtime, fruitless=_idle())
        yield f"running --> {place} : {name} launches without progress"
    spent = _run(spent=RunSpending(ENDED, usd=2.0))
    cap = Budget(usd=1.0)
    yield f"running --> {_asked(spent, _tried('interrupted'), cap=cap)} : the budget is spent"


def _places(kind: str) -> tuple[str, ...]:
    """Return the states after one exit of this kind, after two, and so on."""
    times = range(1, PROBED_CRASHES + 2)
    return tuple(_asked(_run(), _tried(*[kind] * number)) for number in times)


def _times(numbers: Sequence[int], last: int) -> str:
    first, until = numbers[0], numbers[-1]
    if first == 1:
        return "" if until == last else f", up to {until} times" if until > 1 else ", once"
    return f", {first} or more times" if until == last else f", {first} to {until} times"


def _label(words: str) -> str:
    """Return the words before a colon, because Mermaid would start a label at the colon."""
    return words.partition(":")[0]


def _asked(
    run: RunState,
    tried: Sequence[LaunchRecord],
    *,
    now: datetime = NOW,
    runtime: RuntimeSettings = RUNTIME,
    cap: Budget | None = None,
    stays: bool = False,
    fruitless: idle.IdleWork = NO_IDLE,
) -> str:
    move = decide_next_move(
        run, tried, now=now, runtime=runtime, cap=cap, stays=stays, fruitless=fruitless
    )
    return _state(move)


def _state(move: Move) -> str:
    match move:
        case StopRun():
            return "stopped" if move.why == "stopped" else "over"
        case EnterSafeMode():
            return "safe"
        case WaitUntil():
            if move.probe:
                return "probing"
            is_paused = stop_reasons.REACTIONS[stop_reasons.find_reaction(move.why)].pauses
            return "pausing" if is_paused else "waiting"
        case _:
            return "starting"


def _example(name: str) -> tuple[RunState, list[LaunchRecord]]:
    """Return the run and launches of an agent in this state."""
    run, tried = _run(), _tried("interrupted")
    match name:
        case "pausing":
            tried = _tried("crash", "crash")
        case "waiting":
            tried = _tried("limit")
        case "probing":
            tried = _tried(*["crash"] * PROBED_CRASHES)
        case "safe":
            run = _run(safe=LogPosition(ENDED, "auth"))
        case "stopped":
            run = _said(run, "stopped")
        case "over":
            run = _run(ended=LogPosition(ENDED, "budget"))
        case _:
            pass
    return run, tried


def _idle() -> idle.IdleWork:
    return idle.sum_idle_launches(_tried("interrupted"), {}, began=BEGAN, intervened=0)


def _run(
    safe: LogPosition = LogPosition(),  # noqa: B008 - frozen
    ended: LogPosition = LogPosition(),  # noqa: B008 - frozen
    spent: RunSpending = RunSpending(),  # noqa: B008 - frozen
) -> RunState:
    said = OperatorCommand(NOW, "running")
    return RunState(command=said, began=BEGAN, began_at=NOW, safe=safe, ended=ended, spent=spent)


def _said(run: RunState, desired: str, restarted: int = 0) -> RunState:
    return RunState(
        command=OperatorCommand(NOW, desired),
        began=run.began,
        began_at=run.began_at,
        restarted=restarted,
        safe=run.safe,
        ended=run.ended,
    )


def _tried(*kinds: str) -> list[LaunchRecord]:
    return [
        LaunchRecord(1, "one", resumes=False, seq=BEGAN + 1, exit=kind, ended=NOW, opened=True)
        for kind in kinds
    ]
