"""Endings: how a launch exits, why a run stops, and the outcome that the operator sees.

`ENDINGS` has one row for each kind of exit and for each other reason to stop, pause or wait;
`REACTIONS` and `OUTCOMES` define the values of its columns. A kind without a row, or a row without
a kind, fails the import. Other modules keep no tables of their own and use only:

- `EXITS`, the kinds of exit that a log may hold, in the order of the table;
- `reaction(exit)`: the `Reaction` of the restart policy to one of them; `REACTIONS` explains it;
- `known(why)`: a recorded reason as a `Reason`; one of a newer version counts as a crash;
- `outcome(why)`: the `OutcomeRow` of a run that stops, or pauses in safe mode, for a reason;
- `asks_person(why)`: whether a run that ends for a reason asks the operator a question;
- `explain(why, words)`, `command(why, name)`, `hint(why, name)`: texts for the operator;
- `notice(what)`: title and severity of a notification.
"""

from collections.abc import Collection
from datetime import datetime, tzinfo
from typing import Literal, get_args

import msgspec

from rekindle.documents.launch import ExitKind
from rekindle.documents.row import State

Reaction = Literal[
    "done",
    "restart",
    "replace",
    "again",
    "resume",
    "hand-on",
    "refresh",
    "renew",
    "wait",
    "retry",
    "person",
]
StopReason = Literal[
    "lost",
    "done",
    "claimed",
    "disputed",
    "cycles",
    "stalled",
    "no-progress",
    "idle",
    "waiting",
    "stopped",
    "settings",
    "tampered",
    "host",
]
"""Reasons that no program exits with; `lost` is recorded for one whose supervisor was gone."""
Reason = ExitKind | StopReason
Outcome = Literal[
    "done",
    "done-unverified",
    "stalled",
    "needs-person",
    "waiting",
    "out-of-cycles",
    "out-of-budget",
    "stopped",
]
Severity = Literal["info", "success", "warning", "failure"]


class ReactionRow(msgspec.Struct, frozen=True, kw_only=True):
    """One reaction of the restart policy to an exit."""

    meaning: str
    counts: bool = False
    """Spends one of the crashes that a run may have."""
    checkpoints: bool = False
    """A checkpoint is written before anything else is started."""
    pauses: bool = False
    """Several in a row are followed by pauses."""
    is_intended: bool = False
    """The exit is not a failure."""
    is_outside: bool = False
    """Nothing that Rekindle starts ends the cause sooner."""


REACTIONS: dict[Reaction, ReactionRow] = {
    "done": ReactionRow(meaning="the cycle is over", is_intended=True),
    "restart": ReactionRow(
        meaning="again: the first time at once, then after pauses that double, then as a probe"
        " every 15 to 60 minutes; counts as a crash",
        counts=True,
        pauses=True,
    ),
    "replace": ReactionRow(
        meaning="a fresh session at once, told where the work stands; counts as nothing, or as a"
        " crash if the session was a fresh one",
        counts=True,
    ),
    "again": ReactionRow(
        meaning="again: the first time at once, then after pauses that double; counts as nothing",
        pauses=True,
        is_outside=True,
    ),
    "resume": ReactionRow(
        meaning="again at once, after many in a row with pauses; counts as nothing", pauses=True
    ),
    "hand-on": ReactionRow(
        meaning="a checkpoint, and a fresh session with it at once; counts as nothing",
        checkpoints=True,
        is_intended=True,
    ),
    "refresh": ReactionRow(
        meaning="a checkpoint, and a fresh session with it at once; when another fills up before"
        " one ran well, safe mode",
        checkpoints=True,
        is_intended=True,
    ),
    "renew": ReactionRow(meaning="a fresh session at once; counts as nothing", is_intended=True),
    "wait": ReactionRow(meaning="again when the usage limit has passed", is_outside=True),
    "retry": ReactionRow(
        meaning="again after pauses that double, as long as it takes; counts as nothing",
        pauses=True,
        is_outside=True,
    ),
    "person": ReactionRow(meaning="safe mode: only a person can fix it"),
}


class OutcomeRow(msgspec.Struct, frozen=True):
    """What the operator is shown of a run that stopped or paused."""

    words: str
    exit_code: int
    """Exit code of `rekindle run`."""
    meaning: str
    state: State
    """State of the agent after it, on every screen."""
    severity: Severity | None = None
    """Severity of the notification; None: none is sent."""


OUTCOMES: dict[Outcome, OutcomeRow] = {
    "done": OutcomeRow("done and verified", 0, "the command of `until:` passed", "done"),
    "done-unverified": OutcomeRow(
        "done as the agent says",
        20,
        "the agent reported that it is done, and no `until:` verified it",
        "done",
    ),
    "stalled": OutcomeRow(
        "stalled", 21, "the agent made no progress and was paused", "needs you", "warning"
    ),
    "needs-person": OutcomeRow(
        "needs you",
        22,
        "the agent needs a person: the message says what for",
        "needs you",
        "failure",
    ),
    "waiting": OutcomeRow(
        "waiting", 23, "the agent would wait for a usage limit or a time", "waiting", "warning"
    ),
    "out-of-cycles": OutcomeRow(
        "out of cycles",
        24,
        "the run had all its cycles, and `until:` did not pass",
        "stopped",
        "info",
    ),
    "out-of-budget": OutcomeRow(
        "out of budget", 25, "the budget of the run is spent", "stopped", "warning"
    ),
    "stopped": OutcomeRow(
        "stopped", 130, "the run was stopped: `rekindle stop`, Ctrl-C", "stopped"
    ),
}


class EndingRow(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of exit, or one reason to stop, pause or wait."""

    text: str
    outcome: Outcome = "needs-person"
    """Outcome of a run that stops or pauses for it."""
    fix: str = ""
    """What the operator does before the agent continues."""
    command: Literal["run", "restart", "answer"] = "run"
    """Command that continues; in safe mode `restart` instead of `run`, see `command`."""
    reaction: Reaction | None = None
    """Reaction of the restart policy; None: no launch ends so."""
    between: bool = False
    """It stops a run between two cycles: the next `rekindle run` begins another run."""
    choices: tuple[str, ...] = ("retry", "stop")
    """Answers that the operator has if the agent stops or pauses for it; the last is the default.

    `policy.questions` has what each of them does.
    """
    needs_edit: bool = False
    """Started again without an edit of rekindle.yaml, the agent stops for it again."""


_EVENTS = "look at what it did (`rekindle events -a {name}`)"
_RELAY = "look at its relay (`rekindle relay show -a {name}`)"
_SMALLER = "make the task or the relay smaller: the work does not fit one window"

ENDINGS: dict[Reason, EndingRow] = {
    "clean": EndingRow(text="it ended by itself", reaction="done"),
    "crash": EndingRow(text="it crashed", fix=_EVENTS, reaction="restart"),
    "hang": EndingRow(text="it hung", fix=_EVENTS, reaction="restart"),
    "resume-failed": EndingRow(
        text="its session could not be resumed", fix=_EVENTS, reaction="replace"
    ),
    "lost": EndingRow(text="its supervisor is gone", outcome="stopped", reaction="resume"),
    "handoff": EndingRow(text="its window is full", fix=_SMALLER, reaction="hand-on"),
    "context-full": EndingRow(text="its window is full", fix=_SMALLER, reaction="refresh"),
    "costly": EndingRow(text="resuming it costs more than a fresh session", reaction="renew"),
    "limit": EndingRow(text="a usage limit", outcome="waiting", reaction="wait"),
    "overload": EndingRow(text="the model is overloaded", outcome="waiting", reaction="retry"),
    "network": EndingRow(text="the API cannot be reached", outcome="waiting", reaction="retry"),
    "interrupted": EndingRow(text="it was interrupted", outcome="stopped", reaction="again"),
    "auth": EndingRow(
        text="a person must log in", fix="log the agent's CLI in, or fix its key", reaction="person"
    ),
    "billing": EndingRow(
        text="a person must pay", fix="pay, or raise the spend limit", reaction="person"
    ),
    "budget": EndingRow(
        text="its budget is spent",
        outcome="out-of-budget",
        fix="raise `budget:`, or what the CLI itself may spend",
        command="restart",
        reaction="person",
        choices=("raise AMOUNT", "stop"),
    ),
    "no-permission": EndingRow(
        text="its tool calls were refused, and it made no progress",
        fix="permit the calls",
        command="restart",
        reaction="person",
        choices=("accept", "stop"),
        needs_edit=True,
    ),
    "done": EndingRow(text="the command of `until:` passes", outcome="done", between=True),
    "claimed": EndingRow(
        text="no `until:` verifies it",
        outcome="done-unverified",
        fix=_RELAY,
        between=True,
    ),
    "disputed": EndingRow(
        text="it reports that it is done, and `until:` fails",
        fix="compare its work with what refuses it (`rekindle events -a {name}`), and change one"
        " of them",
        command="restart",
        between=True,
        choices=("TEXT", "retry", "accept", "stop"),
        needs_edit=True,
    ),
    "cycles": EndingRow(
        text="nothing verifies that the work is done",
        outcome="out-of-cycles",
        fix=_RELAY,
        between=True,
    ),
    "stalled": EndingRow(
        text="cycle after cycle without progress",
        outcome="stalled",
        fix=f"{_RELAY}, and change it or the task",
        command="restart",
        between=True,
        choices=("TEXT", "retry", "stop"),
    ),
    "no-progress": EndingRow(
        text="launches without progress", outcome="stalled", fix=_EVENTS, command="restart"
    ),
    "idle": EndingRow(
        text="no progress lately",
        outcome="waiting",
        fix="`rekindle run {name}` waits until then; to start it now, `rekindle restart {name}`",
    ),
    "waiting": EndingRow(
        text="its relay waits for a person",
        command="answer",
        between=True,
        choices=("TEXT", "stop"),
    ),
    "stopped": EndingRow(text="as the operator said", outcome="stopped"),
    "settings": EndingRow(
        text="rekindle.yaml was changed",
        fix="check rekindle.yaml, and undo the change or accept it",
        command="restart",
        choices=("accept", "stop"),
        needs_edit=True,
    ),
    "tampered": EndingRow(
        text="something other than Rekindle changed its log",
        fix="check what the agent did (`rekindle doctor` shows what is wrong with its log)",
        command="restart",
    ),
    "host": EndingRow(text="no host can start it", fix="check the hosts of its pool"),
}
"""Kinds of exit first: their order is the order of the documentation."""


def require_rows(table: Collection[str], *kinds: object) -> None:
    """Raise TypeError unless a table has exactly the keys that the Literals in `kinds` name."""
    if differ := set(table) ^ {word for literal in kinds for word in get_args(literal)}:
        raise TypeError(f"a kind without a row, or a row without a kind: {sorted(differ)}")


EXITS = tuple(why for why, one in ENDINGS.items() if one.reaction)
require_rows(ENDINGS, ExitKind, StopReason)
require_rows(REACTIONS, Reaction)
require_rows(OUTCOMES, Outcome)
require_rows(set(EXITS) - {"lost"}, ExitKind)


def known(why: str) -> Reason:
    """Return a recorded reason; an unknown one, as of a newer version, counts as a crash."""
    return why if why in ENDINGS else "crash"


def reaction(exit_kind: str) -> Reaction:
    """Return the reaction to a recorded exit."""
    return ENDINGS[known(exit_kind)].reaction or "restart"


def checkpoints(exit_kind: str) -> bool:
    """Return whether a checkpoint is written after a recorded exit."""
    return bool(exit_kind) and REACTIONS[reaction(exit_kind)].checkpoints


def outcome(why: str) -> OutcomeRow:
    """Return what the operator is shown of a run that stops or pauses for a reason."""
    return OUTCOMES[ENDINGS[known(why)].outcome]


def asks_person(why: str) -> bool:
    """Return whether a run that ends for a reason asks the operator a question."""
    return ENDINGS[known(why)].outcome in {"needs-person", "stalled", "out-of-budget"}


def explain(why: str, words: str = "") -> str:
    """Return what happened: the recorded words, or those of the table."""
    return words or (ENDINGS[known(why)].text if why else "")


def explain_wait(
    why: str, until: datetime, now: datetime, zone: tzinfo | None = None, words: str = ""
) -> str:
    """Return what is waited for, and until when, in the operator's time.

    `words` says how the last launch ended; they are shown if it is what has to be waited for.
    """
    moment = f"until {render_until(until, now, zone)}"
    if why not in EXITS or not REACTIONS[reaction(why)].counts:
        return f"{moment}: {explain(why)}" if why else moment
    return f"{moment}, then retried: {explain(why)}{f', {words}' if words else ''}"


def render_until(until: datetime, now: datetime, zone: tzinfo | None = None) -> str:
    """Return a moment in the operator's time: the time of day, after the date if not today."""
    there, here = until.astimezone(zone), now.astimezone(zone)
    return f"{there:%H:%M}" if there.date() == here.date() else f"{there:%Y-%m-%d %H:%M}"


def command(why: str, name: str, *, is_safe: bool = False, is_supervised: bool = True) -> str:
    """Return the command that continues an agent; `is_safe`: it is in safe mode.

    `restart` ends the safe mode, or the run that was over, and only a supervisor starts the agent.
    """
    row = ENDINGS[known(why)]
    if row.command == "answer":
        return f"rekindle answer {name}"  # it asks for the text
    restart = f"rekindle restart {name}"
    if is_supervised:
        return restart if is_safe else f"rekindle {row.command} {name}"
    needs_restart = is_safe or (row.command == "restart" and not row.between)
    return f"{restart} && rekindle run {name}" if needs_restart else f"rekindle run {name}"


def hint(
    why: str, name: str, *, is_safe: bool = False, is_supervised: bool = True, answer: str = ""
) -> str:
    """Return what the operator does next, with the command that continues the agent.

    `answer` is the command that answers its question, if it has asked one.
    """
    continues = answer or command(why, name, is_safe=is_safe, is_supervised=is_supervised)
    continues = f"`{continues}`"
    fix = ENDINGS[known(why)].fix.format(name=name)
    return f"{fix}; then {continues}" if fix else f"{continues} continues"


def notice(what: str) -> tuple[str, Severity]:
    """Return the title and severity of a notification: of a reason, or of any other news."""
    if what not in ENDINGS:
        return what, "warning"
    row = outcome(what)
    return row.words, row.severity or "info"
