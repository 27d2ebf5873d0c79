"""What a harness should make of its recordings: `expected.json`, in their folder.

It is written by who has looked at the recording, not by the harness. By case:

    {"tool": {"seen": [["Opened", "6f1c…"], ["Called", "Bash", "toolu_1", "ls"],
                       ["Returned", "toolu_1"], ["Said", "done"],
                       ["Used", 3230, null, "unknown", "opus", 15, "msg_2"],
                       ["Finished", true, {}, 0.02, null]],
              "hooked": [["session.started", "6f1c…", "startup"], ["heartbeat", "6f1c…", "Bash"]],
              "usage": [3230, 200000, "reported", "opus", 15],
              "exit": ["limit", "You've hit your limit, it resets at 5pm", null]},
     "asked": {"answer": ["it works", 0.02, 3245]}}

Each row is the kind of a thing and what tells most of it, as `SEEN` and `HOOKED` have it. `hooked`
is what the hooks told that the harness installs; `usage` is what the transcript tells; of an end
that is no limit the kind is all. Of a question `answer` is all: its text, what it cost, how many
tokens it took. What is left out is expected not to be there.
"""

from pathlib import Path
from typing import Any

import msgspec

from rekindle.documents.event import AnyEvent
from rekindle.documents.launch import (
    Called,
    Compacted,
    Exit,
    Finished,
    Opened,
    Refused,
    RefusedCall,
    Retried,
    Returned,
    Said,
    Seen,
    Usage,
    Used,
    Warned,
)
from rekindle.documents.question import Answer
from rekindle.ports import Harness
from rekindle.testing.recording import Recording

FILE = "expected.json"
SEEN: dict[type, tuple[str, ...]] = {
    Opened: ("session",),
    Said: ("text",),
    Called: ("tool", "call", "about"),
    Returned: ("call",),
    RefusedCall: ("tool", "call"),
    Retried: ("status",),
    Warned: ("text",),
    Refused: ("resets_at",),
    Compacted: ("before", "after"),
    Finished: ("ok", "windows", "usd", "tokens"),
}
"""What tells most of each thing that a stream shows; of `Used`, it is its usage."""
HOOKED = {
    "session.started": "source",
    "session.ended": "reason",
    "prompt.submitted": "text",
    "session.compacted": "trigger",
    "heartbeat": "tool",
}
"""What tells most of each fact that a hook may report, beside its session."""

Row = list[Any]


class Expected(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    exit: Row = []
    seen: list[Row] = []
    hooked: list[Row] = []
    usage: Row | None = None
    answer: Row | None = None


def load(folder: Path) -> dict[str, Expected]:
    """What is expected, by case."""
    return msgspec.json.decode((folder / FILE).read_bytes(), type=dict[str, Expected])


def found(recording: Recording, harness: Harness, *, supervised: bool = True) -> Expected:
    """What a harness makes of a recording, in the same form."""
    if recording.asked:
        return Expected(answer=_answer(harness.answer(recording.stream)))
    used = harness.usage(recording.transcript, {})
    lines = recording.hook_lines(harness, supervised=supervised)
    return Expected(
        exit=_exit(recording.exit(harness)),
        seen=[_seen(one) for one in recording.seen(harness)],
        hooked=[_hooked(fact) for line in lines if (fact := harness.read_hook(line))],
        usage=_usage(used) if used else None,
    )


def _seen(one: Seen) -> Row:
    if isinstance(one, Used):
        return ["Used", *_usage(one.usage), one.turn]
    return [type(one).__name__, *(getattr(one, name) for name in SEEN[type(one)])]


def _hooked(fact: AnyEvent) -> Row:
    named = ("session", HOOKED.get(fact.kind, "kind"))
    return [fact.kind, *(getattr(fact, name, None) for name in named)]


def _usage(used: Usage) -> Row:
    return [used.tokens, used.window, used.known, used.model, used.written]


def _answer(found: Answer | None) -> Row | None:
    return [found.text, found.usd, found.tokens] if found else None


def _exit(ended: Exit) -> Row:
    return [ended.kind, ended.hint, ended.resets_at] if ended.kind == "limit" else [ended.kind]
