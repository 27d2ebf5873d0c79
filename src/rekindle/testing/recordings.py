"""Recordings of agent CLI launches: their output, exit and hook input.

A recording has one JSON object per line. The first has `session`, `resumes`, `code` and `stderr`;
it is followed by `{"stream": LINE}`, `{"hook": "EVENT[:SOURCE]", "payload": {…}}`, `{"transcript":
LINE}` and, for transcripts of sub-agents, `{"aside": LINE}`. A LINE is the recorded object, or a
string if the line was not an object. EVENT is the CLI's own name, even for an event that the
harness does not use. If the first line has `"asked": true`, the recording is of a one-shot question
and has only a stream.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from rekindle.documents.hooks.hook_record import HookRecord
from rekindle.documents.hooks.hook_settings import (
    HOOK_PROGRAM,
    list_wanted,
    parse_hook_command,
)
from rekindle.documents.launches.launch_types import (
    FinalReport,
    LaunchExit,
    LimitReport,
    OutputItem,
    ProcessResult,
    SessionOpened,
    SpokenItem,
)
from rekindle.ports import Harness
from rekindle.thresholds.supervision import TELLING_KEPT

_WHEN = datetime(2026, 1, 1, tzinfo=UTC)


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    session: str
    resumes: bool
    code: int
    stderr: str
    stream: tuple[bytes, ...]
    hooks: tuple[tuple[str, Any], ...]
    transcript: bytes
    aside: bytes = b""
    asked: bool = False

    def seen(self, harness: Harness) -> list[OutputItem]:
        """Return the items that a harness reads from recorded output."""
        return [item for line in self.stream for item in harness.read_stream(line)]

    def ended(self, harness: Harness, *, stopped: bool = False) -> ProcessResult:
        items = self.seen(harness)
        opened = _find_last(items, SessionOpened)
        return ProcessResult(
            code=self.code,
            session=self.session,
            resumes=self.resumes,
            opened=opened.session if opened else "",
            finished=_find_last(items, FinalReport),
            refused=_find_last(items, LimitReport),
            errors=self.stderr,
            last=tuple(item for item in items if isinstance(item, SpokenItem))[-TELLING_KEPT:],
            stopped=stopped,
        )

    def exit(self, harness: Harness) -> LaunchExit:
        return harness.classify(self.ended(harness))

    def hook_lines(self, harness: Harness, *, supervised: bool = True) -> Iterator[HookRecord]:
        """Yield the records of the hooks that the harness installs, as in our inbox."""
        entries = list_wanted(harness.hooks(("/python", f"/{HOOK_PROGRAM}"), supervised=supervised))
        installed = [
            (name, matcher, parse_hook_command(hook["command"])) for name, matcher, hook in entries
        ]
        for recorded, payload in self.hooks:
            event, _, source = recorded.partition(":")
            values = {value for value in payload.values() if isinstance(value, str)}
            for name, matcher, ours in installed:
                if ours and name == event and matcher in {"", source, *values}:
                    word, _, kind = ours.event.partition(":")
                    yield HookRecord(
                        harness=harness.NAME,
                        event=word,
                        source=kind,
                        ts=_WHEN,
                        payload=json.dumps(payload).encode(),
                    )


def load_recording(path: Path) -> Recording:
    run, *rows = [json.loads(row) for row in path.read_text(encoding="utf-8").splitlines()]
    return Recording(
        name=path.stem,
        **run,
        stream=tuple(_render_line(row["stream"]) for row in rows if "stream" in row),
        hooks=tuple((row["hook"], row["payload"]) for row in rows if "hook" in row),
        transcript=b"\n".join(
            _render_line(row["transcript"]) for row in rows if "transcript" in row
        ),
        aside=b"\n".join(_render_line(row["aside"]) for row in rows if "aside" in row),
    )


@cache
def load_recordings(folder: Path) -> tuple[Recording, ...]:
    return tuple(load_recording(path) for path in sorted(folder.glob("*.jsonl")))


def _render_line(line: Any) -> bytes:
    return (line if isinstance(line, str) else json.dumps(line)).encode()


def _find_last(items: list[OutputItem], kind: type[Any]) -> Any:
    return next((item for item in reversed(items) if isinstance(item, kind)), None)
