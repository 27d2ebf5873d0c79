"""The expected results of recordings, in `expected.json` in their folder.

A person who has looked at the recording writes the file, not the harness. By case:

    {"tool": {"seen": [["SessionOpened", "6f1c…"], ["ToolCallStarted", "Bash", "toolu_1", "ls"],
                       ["ToolCallFinished", "toolu_1"], ["AssistantText", "done"],
                       ["UsageReport", 3230, null, "unknown", "opus", 15, "msg_2"],
                       ["FinalReport", true, {}, 0.02, null]],
              "hooked": [["session.started", "6f1c…", "startup"], ["heartbeat", "6f1c…", "Bash"]],
              "usage": [3230, 200000, "reported", "opus", 15],
              "exit": ["limit", "You've hit your limit, it resets at 5pm", null]},
     "asked": {"answer": ["it works", 0.02, 3245]}}

Each row is the kind of an item and its main fields, as listed in `OUTPUT_FIELDS` and `HOOK_FIELDS`.
`hooked` are the reports of the hooks that the harness installs; `usage` is from the transcript. The
row of an exit is its kind, and for a limit also the hint and the reset time. A question has only an
`answer`: its text, cost in dollars and tokens. A key that is left out must be absent from the
result.
"""

from pathlib import Path
from typing import Any

import msgspec

from rekindle.documents.events import AnyEvent
from rekindle.documents.launches.launch_types import (
    AssistantText,
    CompactionReport,
    FinalReport,
    LaunchExit,
    LimitReport,
    OutputItem,
    RefusedCall,
    RetryReport,
    SessionOpened,
    ToolCallFinished,
    ToolCallStarted,
    UsageReport,
    WarningReport,
    WindowUsage,
)
from rekindle.documents.launches.one_shot import OneShotAnswer
from rekindle.ports import Harness
from rekindle.testing.recordings import Recording

FILE = "expected.json"
OUTPUT_FIELDS: dict[type, tuple[str, ...]] = {
    SessionOpened: ("session",),
    AssistantText: ("text",),
    ToolCallStarted: ("tool", "call", "about"),
    ToolCallFinished: ("call",),
    RefusedCall: ("tool", "call"),
    RetryReport: ("status",),
    WarningReport: ("text",),
    LimitReport: ("resets_at",),
    CompactionReport: ("before", "after"),
    FinalReport: ("ok", "windows", "usd", "tokens"),
}
"""Main fields of each kind of output item; for `UsageReport`, the fields of its usage."""
HOOK_FIELDS = {
    "session.started": "source",
    "session.ended": "reason",
    "prompt.submitted": "text",
    "session.compacted": "trigger",
    "heartbeat": "tool",
}
"""Main field, besides the session, of each event that a hook may report."""

ExpectedRow = list[Any]


class ExpectedResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    exit: ExpectedRow = []
    seen: list[ExpectedRow] = []
    hooked: list[ExpectedRow] = []
    usage: ExpectedRow | None = None
    answer: ExpectedRow | None = None


def load_expected(folder: Path) -> dict[str, ExpectedResult]:
    """Return the expected results, by case."""
    return msgspec.json.decode((folder / FILE).read_bytes(), type=dict[str, ExpectedResult])


def read_recording(
    recording: Recording, harness: Harness, *, supervised: bool = True
) -> ExpectedResult:
    """Return the results that a harness reads from a recording, in the form of `expected.json`."""
    if recording.asked:
        return ExpectedResult(answer=_make_answer_row(harness.answer(recording.stream)))
    used = harness.usage(recording.transcript, {})
    lines = recording.hook_lines(harness, supervised=supervised)
    return ExpectedResult(
        exit=_make_exit_row(recording.exit(harness)),
        seen=[_make_output_row(one) for one in recording.seen(harness)],
        hooked=[_make_hook_row(fact) for line in lines if (fact := harness.read_hook(line))],
        usage=_make_usage_row(used) if used else None,
    )


def _make_output_row(one: OutputItem) -> ExpectedRow:
    if isinstance(one, UsageReport):
        return ["UsageReport", *_make_usage_row(one.usage), one.turn]
    return [type(one).__name__, *(getattr(one, name) for name in OUTPUT_FIELDS[type(one)])]


def _make_hook_row(fact: AnyEvent) -> ExpectedRow:
    named = ("session", HOOK_FIELDS.get(fact.kind, "kind"))
    return [fact.kind, *(getattr(fact, name, None) for name in named)]


def _make_usage_row(used: WindowUsage) -> ExpectedRow:
    return [used.tokens, used.window, used.known, used.model, used.written]


def _make_answer_row(found: OneShotAnswer | None) -> ExpectedRow | None:
    return [found.text, found.usd, found.tokens] if found else None


def _make_exit_row(ended: LaunchExit) -> ExpectedRow:
    return [ended.kind, ended.hint, ended.resets_at] if ended.kind == "limit" else [ended.kind]
