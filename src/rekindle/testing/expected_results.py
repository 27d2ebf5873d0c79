"""The expected results for recordings, stored in `expected.json` in their folder.

A person writes the file after looking at the recordings, so it does not repeat the harness's
mistakes. It maps each case to its results:

    {"tool": {"seen": [["SessionOpened", "6f1c…"], ["ToolCallStarted", "Bash", "toolu_1", "ls"],
                       ["ToolCallFinished", "toolu_1"], ["AssistantText", "done"],
                       ["UsageReport", 3230, null, "unknown", "opus", 15, "msg_2"],
                       ["FinalReport", true, {}, 0.02, null]],
              "hooked": [["session.started", "6f1c…", "startup"], ["heartbeat", "6f1c…", "Bash"]],
              "usage": [3230, 200000, "reported", "opus", 15],
              "exit": ["limit", "You've hit your limit, it resets at 5pm", null]},
     "asked": {"answer": ["it works", 0.02, 3245]}}

Each row has an item's kind and its main fields, as listed in `OUTPUT_FIELDS` and `HOOK_FIELDS`.
`hooked` are the reports of the hooks that the harness installs; `usage` is from the transcript. An
exit's row is its kind and, for a limit, also the hint and the reset time. A question has only an
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
from rekindle.documents.launches.quota_windows import QuotaReport
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
    QuotaReport: ("windows",),
    CompactionReport: ("before", "after"),
    FinalReport: ("ok", "windows", "usd", "tokens"),
}
"""Main fields of each kind of output item. For `UsageReport`, these are fields of its usage."""
HOOK_FIELDS = {
    "session.started": "source",
    "session.ended": "reason",
    "prompt.submitted": "text",
    "session.compacted": "trigger",
    "heartbeat": "tool",
}
"""Main field of each event that a hook may report, besides the session."""

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
    """Return a harness's results for a recording, in the format of `expected.json`."""
    if recording.asked:
        return ExpectedResult(answer=_make_answer_row(harness.answer(recording.stream)))
    used = harness.usage(recording.transcript, {})
    lines = recording.hook_lines(harness, supervised=supervised)
    return ExpectedResult(
        exit=_make_exit_row(recording.exit(harness)),
        seen=[_make_output_row(item) for item in recording.seen(harness)],
        hooked=[_make_hook_row(fact) for line in lines if (fact := harness.read_hook(line))],
        usage=_make_usage_row(used) if used else None,
    )


def _make_output_row(item: OutputItem) -> ExpectedRow:
    if isinstance(item, UsageReport):
        return ["UsageReport", *_make_usage_row(item.usage), item.turn]
    return [type(item).__name__, *(getattr(item, name) for name in OUTPUT_FIELDS[type(item)])]


def _make_hook_row(fact: AnyEvent) -> ExpectedRow:
    named = ("session", HOOK_FIELDS.get(fact.kind, "kind"))
    return [fact.kind, *(getattr(fact, name, None) for name in named)]


def _make_usage_row(used: WindowUsage) -> ExpectedRow:
    return [used.tokens, used.window, used.known, used.model, used.written]


def _make_answer_row(answer: OneShotAnswer | None) -> ExpectedRow | None:
    return [answer.text, answer.usd, answer.tokens] if answer else None


def _make_exit_row(ended: LaunchExit) -> ExpectedRow:
    return [ended.kind, ended.hint, ended.resets_at] if ended.kind == "limit" else [ended.kind]
