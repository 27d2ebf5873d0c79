"""The progress file, which lists all cycles for people, newest first."""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from rekindle.formats import schema_mark

SCHEMA = 1


class ProgressLine(msgspec.Struct, frozen=True, kw_only=True):
    """A progress file's line for one finished cycle."""

    cycle: int
    ts: datetime
    verdict: str
    did: str
    evidence: str
    words: str


def render(agent: str, lines: Iterable[ProgressLine]) -> str:
    head = schema_mark.render_mark("progress", SCHEMA) + f"# Progress of {agent}\n"
    tail = "Earlier cycles and all other events: `rekindle events`\n"
    return "\n".join([head, *map(_render_cycle, lines), tail])


def _render_cycle(line: ProgressLine) -> str:
    title = f"## Cycle {line.cycle}, {line.ts:%Y-%m-%d %H:%M} UTC: {line.verdict or 'ended'}\n"
    texts = (line.did, line.evidence, line.words)
    return title + "".join(f"- {text}\n" for text in texts if text)
