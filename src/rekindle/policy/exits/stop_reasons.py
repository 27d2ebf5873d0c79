"""The table of stop reasons: the reaction to each exit, and the outcome that the operator sees.

`STOP_REASONS` has one row for each kind of exit and for each other reason to stop, pause or wait.
`REACTIONS` and `OUTCOMES` define the values of its columns. If a kind has no row, or a row has no
kind, the import fails. Other modules use only:

- `EXIT_KINDS`: the kinds of exit that a log may contain, in table order;
- `find_reaction(exit_kind)`: the `Reaction` of the restart policy, explained in `REACTIONS`;
- `parse_reason(why)`: a recorded reason as a `StopReason`; an unknown reason counts as a crash;
- `find_outcome(why)`: the `OutcomeRow` of a run that stops, or pauses in safe mode.

`explain_reasons` describes a reason to the operator. `policy.operator.notification_kinds` defines
its notification's title and severity.
"""

from typing import Literal

import msgspec

from rekindle.documents.launches.launch_types import ExitKind
from rekindle.documents.screens.agent_row import AgentState
from rekindle.documents.tables import require_rows
from rekindle.policy.settings.runtime_settings import PROBE_INTERVAL

Reaction = Literal[
    "done",
    "restart",
    "replace",
    "again",
    "resume",
    "hand-on",
    "refresh",
    "wait",
    "retry",
    "person",
]
SupervisorReason = Literal[
    "lost",
    "done",
    "claimed",
    "disputed",
    "cycles",
    "stalled",
    "no-progress",
    "idle",
    "quota",
    "waiting",
    "stopped",
    "settings",
    "tampered",
    "host",
]
"""Reasons other than a program's exit. `lost` means that the supervisor stopped running before the
launch ended.
"""
StopReason = ExitKind | SupervisorReason
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


RETRY = "retry"
"""Answer that starts an agent again, like `rekindle restart`."""


class ReactionRow(msgspec.Struct, frozen=True, kw_only=True):
    """How the restart policy reacts to an exit."""

    meaning: str
    counts: bool = False
    """Whether the exit counts towards the run's crash limit."""
    checkpoints: bool = False
    """Whether a checkpoint is written before the next launch."""
    pauses: bool = False
    """Whether repeated exits of this kind are followed by a pause."""
    is_intended: bool = False
    """Whether the exit is intended, and not a failure."""
    is_outside: bool = False
    """Whether the cause is external, in which case a restart alone cannot fix it."""


REACTIONS: dict[Reaction, ReactionRow] = {
    "done": ReactionRow(meaning="end the cycle", is_intended=True),
    "restart": ReactionRow(
        meaning="retry immediately, then with pauses that double each time, and finally every "
        f"{PROBE_INTERVAL}",
        counts=True,
        pauses=True,
    ),
    "replace": ReactionRow(
        meaning="immediately start a fresh session from the recorded state",
        counts=True,
    ),
    "again": ReactionRow(
        meaning="retry immediately, then with pauses that double each time",
        pauses=True,
        is_outside=True,
    ),
    "resume": ReactionRow(
        meaning="retry immediately, or after a pause if this happens many times in a row",
        pauses=True,
    ),
    "hand-on": ReactionRow(
        meaning="write a checkpoint, and immediately start a fresh session from it",
        checkpoints=True,
        is_intended=True,
    ),
    "refresh": ReactionRow(
        meaning="write a checkpoint, and immediately start a fresh session from it, or enter safe "
        "mode if the context window fills up again before the session has run well",
        checkpoints=True,
        is_intended=True,
    ),
    "wait": ReactionRow(meaning="retry when the usage limit resets", is_outside=True),
    "retry": ReactionRow(
        meaning="retry as often as needed, with pauses that double each time",
        pauses=True,
        is_outside=True,
    ),
    "person": ReactionRow(meaning="enter safe mode, because only a person can fix the problem"),
}


class OutcomeRow(msgspec.Struct, frozen=True, kw_only=True):
    """How a stopped or paused run is shown to the operator."""

    words: str
    exit_code: int
    """Exit code of `rekindle run`."""
    meaning: str
    state: AgentState
    """Agent state that all screens show after the run."""
    severity: Severity | None = None
    """Severity of the notification; None if no notification is sent."""
    asks: bool = False
    """Whether the operator is asked a question when a run ends with this outcome."""


OUTCOMES: dict[Outcome, OutcomeRow] = {
    "done": OutcomeRow(
        words="done and verified",
        exit_code=0,
        meaning="the `until:` command passed",
        state="done",
    ),
    "done-unverified": OutcomeRow(
        words="done but unverified",
        exit_code=20,
        meaning="the agent reported that it is done, but no `until:` command verified it",
        state="done",
    ),
    "stalled": OutcomeRow(
        words="stalled",
        exit_code=21,
        meaning="Rekindle paused the agent because it made no progress",
        state="needs you",
        severity="warning",
        asks=True,
    ),
    "needs-person": OutcomeRow(
        words="needs you",
        exit_code=22,
        meaning="the agent needs a person (the message explains why)",
        state="needs you",
        severity="failure",
        asks=True,
    ),
    "waiting": OutcomeRow(
        words="waiting",
        exit_code=23,
        meaning="the agent is waiting for a usage limit to reset, or for its next attempt",
        state="waiting",
        severity="warning",
    ),
    "out-of-cycles": OutcomeRow(
        words="out of cycles",
        exit_code=24,
        meaning="the run used all its cycles, but `until:` did not pass",
        state="stopped",
        severity="info",
    ),
    "out-of-budget": OutcomeRow(
        words="out of budget",
        exit_code=25,
        meaning="the run's budget is spent",
        state="stopped",
        severity="warning",
        asks=True,
    ),
    "stopped": OutcomeRow(
        words="stopped",
        exit_code=130,
        meaning="you stopped the run with `rekindle stop` or Ctrl-C",
        state="stopped",
    ),
}


class ReasonRow(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of exit, or one reason to stop, pause or wait."""

    text: str
    outcome: Outcome = "needs-person"
    """Outcome of a run that stops or pauses for this reason."""
    state: Literal["broken"] | None = None
    """Agent state that all screens show instead of the outcome's state."""
    fix: str = ""
    """Step that the operator must take before the agent can continue."""
    command: Literal["run", "restart", "answer"] = "run"
    """Command that continues the agent; see `render_continue_command`."""
    reaction: Reaction | None = None
    """The restart policy's reaction; None if this is not a kind of exit."""
    between: bool = False
    """Whether the run stops between two cycles, in which case `rekindle run` starts a new run."""
    choices: tuple[str, ...] = ("retry", "stop")
    """Answers that the operator may give if the agent stops or pauses; the last one is the default.

    `policy.operator.answers` defines the effect of each answer. Its import fails if one is missing.
    """
    needs_edit: bool = False
    """Whether the agent will stop again unless the operator edits rekindle.yaml."""
    is_retried: bool = False
    """Whether `retry` is the default instead, and soon due, so no answer is needed.

    A launch that fails for such a reason costs nothing, and a person fixes the cause elsewhere.
    """
    off_switch: str = ""
    """Setting that disables pauses for this reason."""


_EVENTS = "check what it did (`rekindle events -a {name}`)"
_RELAY = "check its relay (`rekindle relay show -a {name}`)"
_NO_PAUSE = "runtime: stall: pause: false"
_SMALLER = "make the task or the relay smaller: the work does not fit into one window"

STOP_REASONS: dict[StopReason, ReasonRow] = {
    "clean": ReasonRow(text="it ended by itself", reaction="done"),
    "crash": ReasonRow(text="it crashed", fix=_EVENTS, reaction="restart"),
    "hang": ReasonRow(text="it hung", fix=_EVENTS, reaction="restart"),
    "resume-failed": ReasonRow(
        text="its session could not be resumed", fix=_EVENTS, reaction="replace"
    ),
    "lost": ReasonRow(text="its supervisor is gone", outcome="stopped", reaction="resume"),
    "handoff": ReasonRow(text="its window is full", fix=_SMALLER, reaction="hand-on"),
    "context-full": ReasonRow(text="its window is full", fix=_SMALLER, reaction="refresh"),
    "limit": ReasonRow(text="a usage limit", outcome="waiting", reaction="wait"),
    "overload": ReasonRow(text="the model is overloaded", outcome="waiting", reaction="retry"),
    "network": ReasonRow(text="the API cannot be reached", outcome="waiting", reaction="retry"),
    "interrupted": ReasonRow(text="it was interrupted", outcome="stopped", reaction="again"),
    "auth": ReasonRow(
        text="a person must log in",
        fix="log the agent's CLI in, or fix its key",
        reaction="person",
        is_retried=True,
    ),
    "billing": ReasonRow(
        text="payment is required", fix="pay, or raise the spend limit", reaction="person"
    ),
    "misconfigured": ReasonRow(
        text="its program cannot be used as it is set up",
        fix="correct `command:` or the persona in rekindle.yaml, or install its program again",
        command="restart",
        reaction="person",
        choices=("accept", "stop"),
        needs_edit=True,
    ),
    "budget": ReasonRow(
        text="its budget is spent",
        outcome="out-of-budget",
        fix="raise `budget:`, or the CLI's own spending limit",
        command="restart",
        reaction="person",
        choices=("raise AMOUNT", "stop"),
    ),
    "no-permission": ReasonRow(
        text="its tool calls were refused, and it made no progress",
        fix="permit the calls",
        command="restart",
        reaction="person",
        choices=("accept", "stop"),
        needs_edit=True,
    ),
    "done": ReasonRow(text="the `until:` command passes", outcome="done", between=True),
    "claimed": ReasonRow(
        text="no `until:` verifies it",
        outcome="done-unverified",
        fix=_RELAY,
        between=True,
    ),
    "disputed": ReasonRow(
        text="it reports that it is done, and `until:` fails",
        fix="compare its work with the failing check (`rekindle events -a {name}`), and change one"
        " of them",
        command="restart",
        between=True,
        choices=("TEXT", "retry", "accept", "stop"),
        needs_edit=True,
        off_switch=_NO_PAUSE,
    ),
    "cycles": ReasonRow(
        text="nothing verifies that the work is done",
        outcome="out-of-cycles",
        fix=_RELAY,
        between=True,
    ),
    "stalled": ReasonRow(
        text="several cycles without progress",
        outcome="stalled",
        fix=f"{_RELAY}, and change it or the task",
        command="restart",
        between=True,
        choices=("TEXT", "retry", "done", "stop"),
        off_switch=_NO_PAUSE,
    ),
    "no-progress": ReasonRow(
        text="launches without progress", outcome="stalled", fix=_EVENTS, command="restart"
    ),
    "idle": ReasonRow(
        text="no progress lately",
        outcome="waiting",
        fix="`rekindle run {name}` waits until then; to start it now, `rekindle restart {name}`",
    ),
    "quota": ReasonRow(
        text="it must not use the quota now",
        outcome="waiting",
        fix="`rekindle restart {name}` starts it once anyway; to change the limits, edit `quota:`, "
        "then run `rekindle down {name}` and `rekindle up {name}`",
    ),
    "waiting": ReasonRow(
        text="its relay waits for a person",
        command="answer",
        between=True,
        choices=("TEXT", "stop"),
        off_switch=_NO_PAUSE,
    ),
    "stopped": ReasonRow(text="by the operator", outcome="stopped"),
    "settings": ReasonRow(
        text="rekindle.yaml was changed",
        fix="check rekindle.yaml, and undo the change or accept it",
        command="restart",
        choices=("accept", "stop"),
        needs_edit=True,
    ),
    "tampered": ReasonRow(
        text="something other than Rekindle changed its log",
        state="broken",
        fix="check what the agent did (`rekindle doctor` shows what is wrong with its log)",
        command="restart",
    ),
    "host": ReasonRow(text="no host can start it", fix="check the hosts of its pool"),
}
"""All stop reasons, kinds of exit first. The documentation lists them in the same order."""


EXIT_KINDS = tuple(why for why, stop_reason in STOP_REASONS.items() if stop_reason.reaction)
require_rows(STOP_REASONS, ExitKind, SupervisorReason)
require_rows(REACTIONS, Reaction)
require_rows(OUTCOMES, Outcome)
require_rows(set(EXIT_KINDS) - {"lost"}, ExitKind)


def parse_reason(why: str) -> StopReason:
    """Parse a recorded reason. One that this version does not know counts as a crash."""
    return why if why in STOP_REASONS else "crash"


def find_reaction(exit_kind: str) -> Reaction:
    """Return the reaction to a recorded kind of exit."""
    return STOP_REASONS[parse_reason(exit_kind)].reaction or "restart"


def needs_checkpoint(exit_kind: str) -> bool:
    """Return whether a checkpoint is written after a recorded kind of exit."""
    return bool(exit_kind) and REACTIONS[find_reaction(exit_kind)].checkpoints


def find_outcome(why: str) -> OutcomeRow:
    """Return the outcome of a run that stops or pauses for the given reason."""
    return OUTCOMES[STOP_REASONS[parse_reason(why)].outcome]
