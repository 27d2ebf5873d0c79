"""Events: everything that happens to an agent, as one JSON line per event.

The union `AnyEvent` is closed: it lists every kind. Each kind has an explicit tag, which commands
print and programs read, and a summary for the reference; the import fails if either is missing. A
log written by a later Rekindle with the same schema may contain kinds that this version does not
know. They are read as `UnknownEvent`, have no effect, and stay in the log.

The log assigns `seq`, `gen` and `at` when it accepts an event; in the inbox they have no value.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any, get_args

import msgspec

from rekindle.documents.events.document_events import (
    BriefCommitted,
    BriefedPosition,
    BriefMade,
    CheckpointCommitted,
    DocumentCommitted,
    DocumentRejected,
    InboxRejected,
    LoopAdded,
    LoopCorrection,
    LoopResolved,
    Proposal,
    ProposalMade,
    RelayCommitted,
    RelayProposed,
    SourceAdopted,
    StateAdopted,
)
from rekindle.documents.events.event import (
    SCHEMA,
    Event,
    UnknownEvent,
)
from rekindle.documents.events.handoff_events import (
    HandoffFailed,
    HandoffHalted,
    HandoffResumed,
    HandoffTriggered,
    RepetitionDetected,
    SummaryMade,
    WindowMeasured,
    WindowSizeReported,
)
from rekindle.documents.events.operator_events import (
    AnswerEffect,
    BudgetRaised,
    CallPermitted,
    DesiredSet,
    HandoffRequested,
    MessageDelivered,
    MessageSent,
    PersonAnswered,
    QuestionAnswered,
    QuestionAsked,
    RestartRequested,
    WorkRewound,
)
from rekindle.documents.events.ownership_events import (
    AgentCreated,
    AgentReceived,
    OwnerChanged,
    WorkspacePushed,
    WorkspacePushFailed,
)
from rekindle.documents.events.quota_events import QuotaReported
from rekindle.documents.events.run_events import (
    CallRefused,
    CycleEnded,
    CycleStarted,
    HangDetected,
    HostRefused,
    LaunchEnded,
    LaunchStarted,
    ReviewMade,
    RunEnded,
    RunStarted,
    SafeModeEntered,
    SnapshotTaken,
    SpendRecorded,
    WaitStarted,
    WorkSigns,
    WorkspaceCreated,
)
from rekindle.documents.events.session_events import (
    Heartbeat,
    PrimerGiven,
    PromptSubmitted,
    SessionCompacted,
    SessionEnded,
    SessionLost,
    SessionStarted,
)
from rekindle.errors import DocumentError
from rekindle.formats import json_codec

__all__ = [
    "EVENT_KINDS",
    "HOOK_REPORTS",
    "OPERATOR_COMMANDS",
    "SCHEMA",
    "SUBMITTED_EVENTS",
    "AgentCreated",
    "AgentReceived",
    "AnswerEffect",
    "AnyEvent",
    "BriefCommitted",
    "BriefMade",
    "BriefedPosition",
    "BudgetRaised",
    "CallPermitted",
    "CallRefused",
    "CheckpointCommitted",
    "CycleEnded",
    "CycleStarted",
    "DesiredSet",
    "DocumentCommitted",
    "DocumentRejected",
    "Event",
    "HandoffFailed",
    "HandoffHalted",
    "HandoffRequested",
    "HandoffResumed",
    "HandoffTriggered",
    "HangDetected",
    "Heartbeat",
    "HostRefused",
    "InboxRejected",
    "LaunchEnded",
    "LaunchStarted",
    "LoopAdded",
    "LoopCorrection",
    "LoopResolved",
    "MessageDelivered",
    "MessageSent",
    "OwnerChanged",
    "PersonAnswered",
    "PrimerGiven",
    "PromptSubmitted",
    "Proposal",
    "ProposalMade",
    "QuestionAnswered",
    "QuestionAsked",
    "QuotaReported",
    "RelayCommitted",
    "RelayProposed",
    "RepetitionDetected",
    "RestartRequested",
    "ReviewMade",
    "RunEnded",
    "RunStarted",
    "SafeModeEntered",
    "SessionCompacted",
    "SessionEnded",
    "SessionLost",
    "SessionStarted",
    "SnapshotTaken",
    "SourceAdopted",
    "SpendRecorded",
    "StateAdopted",
    "SummaryMade",
    "UnknownEvent",
    "WaitStarted",
    "WindowMeasured",
    "WindowSizeReported",
    "WorkRewound",
    "WorkSigns",
    "WorkspaceCreated",
    "WorkspacePushFailed",
    "WorkspacePushed",
    "parse",
    "parse_untrusted",
    "render",
]

OPERATOR_COMMANDS = (
    DesiredSet,
    RestartRequested,
    PersonAnswered,
    QuestionAnswered,
    HandoffRequested,
    BudgetRaised,
    MessageSent,
)
"""The operator's commands. Records of these kinds count only if they come from outside the
workspace.
"""

HOOK_REPORTS = (SessionStarted, SessionEnded, PromptSubmitted, SessionCompacted, Heartbeat)
"""Session events that the CLI's hooks report."""

SUBMITTED_EVENTS = (
    *HOOK_REPORTS,
    LoopAdded,
    LoopResolved,
    ProposalMade,
    RelayProposed,
    *OPERATOR_COMMANDS,
)
"""Events that hooks and commands may write to an inbox. All other events are recorded only by the
log's writer.
"""

AnyEvent = (
    AgentCreated
    | AgentReceived
    | OwnerChanged
    | WorkspacePushed
    | WorkspacePushFailed
    | SessionStarted
    | SessionLost
    | SessionEnded
    | PromptSubmitted
    | SessionCompacted
    | Heartbeat
    | PrimerGiven
    | CycleStarted
    | CycleEnded
    | LaunchStarted
    | LaunchEnded
    | SnapshotTaken
    | WorkRewound
    | WorkspaceCreated
    | CallPermitted
    | CallRefused
    | DesiredSet
    | RestartRequested
    | PersonAnswered
    | MessageSent
    | MessageDelivered
    | QuestionAsked
    | QuestionAnswered
    | RunStarted
    | RunEnded
    | SafeModeEntered
    | WaitStarted
    | HangDetected
    | HostRefused
    | WindowSizeReported
    | WindowMeasured
    | HandoffRequested
    | BudgetRaised
    | RepetitionDetected
    | HandoffTriggered
    | HandoffResumed
    | HandoffFailed
    | HandoffHalted
    | SpendRecorded
    | QuotaReported
    | SummaryMade
    | ReviewMade
    | LoopAdded
    | LoopResolved
    | ProposalMade
    | StateAdopted
    | SourceAdopted
    | RelayProposed
    | RelayCommitted
    | CheckpointCommitted
    | BriefCommitted
    | BriefMade
    | DocumentRejected
    | InboxRejected
)

EVENT_KINDS: tuple[type[Event], ...] = get_args(AnyEvent)
_TAG = re.compile(r"[a-z_]+(\.[a-z_]+)*")


def _require_rows(kinds: tuple[type[Event], ...]) -> None:
    """Raise TypeError for a kind that lacks a tag or summary, or is missing from AnyEvent."""
    for kind in kinds:
        if not _TAG.fullmatch(str(kind.__struct_config__.tag)) or not vars(kind).get("summary"):
            raise TypeError(f"event {kind.__name__}: needs its own `tag=` and `summary`")
    if unlisted := [kind.__name__ for kind in _find_innermost(Event) if kind not in kinds]:
        raise TypeError(f"events {', '.join(unlisted)}: not in AnyEvent")


def _find_innermost(kind: type[Event]) -> Iterator[type[Event]]:
    subclasses = kind.__subclasses__()
    for subclass in subclasses:
        yield from _find_innermost(subclass)
    if not subclasses:
        yield kind


_require_rows(EVENT_KINDS)
_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)
_EARLIEST, _LATEST = 1970, 9000
_ORDER = ("v", "seq", "gen", "ts", "kind")
_EARLIER_KINDS = {
    "desired.said": "desired.set",
    "handoff.asked": "handoff.requested",
    "hang.noticed": "hang.detected",
    "restart.asked": "restart.requested",
    "spend.noted": "spend.recorded",
    "window.learnt": "window.reported",
    "workspace.kept": "workspace.push_failed",
}
"""Current name of each renamed kind, by the earlier name that old logs contain."""
_EARLIER_FIELDS = {"run.ended": {"outcome": "why"}, "brief.made": {"told": "covered"}}
"""Current names of renamed fields, by kind and earlier name."""


def parse(line: bytes) -> AnyEvent | UnknownEvent:
    """Parse the event in a line of the log or the inbox.

    Kinds that this version does not know are allowed.
    """
    try:
        event = _decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        if current := _translate_earlier(line):
            return parse(current)
        return _parse_unknown(line, error)
    json_codec.refuse_newer_schema(event.v, "event", SCHEMA)
    if isinstance(event, BriefMade) and b'"told"' in line and (current := _translate_earlier(line)):
        return parse(current)
    _require_time(event.ts)
    return event


def parse_untrusted(line: bytes) -> AnyEvent | UnknownEvent:
    """Parse the event in an inbox record, and keep its unknown fields.

    A record cannot choose its position in the log: `seq`, `gen` and `at` are reset.
    """
    event = parse(line)
    if isinstance(event, UnknownEvent):
        return msgspec.structs.replace(event, seq=0, gen=0, at="")
    raw = json_codec.decode_object(line, "event", schema=SCHEMA)
    return msgspec.structs.replace(event, seq=0, gen=0, at="", more=_select_unknown(event, raw))


def render(event: Event) -> bytes:
    """Render the event as one line, common fields first, without a newline at the end."""
    fields = msgspec.to_builtins(event)
    fields["v"] = event.v
    head = {key: fields.pop(key) for key in _ORDER if key in fields}
    unknown = _select_unknown(event, fields.pop("more", {}))
    return json_codec.encode(head | fields | unknown, "event")


def _select_unknown(event: Event, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that the event's kind does not define."""
    names = {field.encode_name for field in msgspec.structs.fields(event)} | {"kind"}
    return {key: value for key, value in fields.items() if key not in names}


def _translate_earlier(line: bytes) -> bytes | None:
    """Replace earlier names in a line with the current ones. Return None if there are none."""
    with suppress(DocumentError):
        raw = json_codec.decode_object(line, "event", schema=SCHEMA)
        kind = str(raw.get("kind"))
        names = _EARLIER_FIELDS.get(kind, {})
        current = {names.get(name, name): value for name, value in raw.items()}
        if kind in _EARLIER_KINDS:
            current["kind"] = _EARLIER_KINDS[kind]
        return msgspec.json.encode(current) if current != raw else None
    return None


def _parse_unknown(line: bytes, error: Exception) -> UnknownEvent:
    raw = json_codec.decode_object(line, "event", schema=SCHEMA)
    kind = raw.get("kind")
    tags = {str(cls.__struct_config__.tag) for cls in EVENT_KINDS}
    if not isinstance(kind, str) or kind in tags:
        raise DocumentError("event", f"is not valid for its kind ({error})") from error
    try:
        event = msgspec.convert(raw, UnknownEvent)
    except msgspec.ValidationError as unfit:
        raise DocumentError("event", f"is not valid for its kind ({unfit})") from unfit
    _require_time(event.ts)
    return event


def _require_time(ts: datetime) -> None:
    """Require a time zone and a year within datetime's limits, with some margin."""
    if ts.tzinfo is None:
        raise DocumentError("event", "has a time without a time zone")
    if not _EARLIEST <= ts.year <= _LATEST:
        raise DocumentError("event", f"has a time that is out of range ({ts.year})")
