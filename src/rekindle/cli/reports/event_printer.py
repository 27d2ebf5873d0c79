"""Print new events from an agent's log."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

import msgspec

from rekindle.api.agent_store import AgentStore
from rekindle.cli.output import (
    echo,
    print_json_line,
    render_moment,
    style_text,
)
from rekindle.documents.event_output import (
    render_output,
    round_numbers,
)
from rekindle.documents.events import Event
from rekindle.documents.events.event import UnknownEvent
from rekindle.formats.identifiers import to_one_line
from rekindle.stores.log.event_log import LogEntry
from rekindle.thresholds.screens import EVENTS_HASH_CHARACTERS, EVENTS_VALUE_CHARACTERS

_FRAME = {"v", "seq", "gen", "ts", "kind", "at", "more", "boot", "uptime"}
_HASHES = {"sha256", "previous", "session", "launch"}


class EventPrinter:
    """Prints each of an agent's events once, in log order."""

    def __init__(
        self, store: AgentStore, agent: str, end: int, *, as_json: bool, width: int = 0
    ) -> None:
        """Start after the log offset `end`, and pad agent names to `width` characters."""
        self._store, self._agent, self._end = store, agent, end
        self._as_json, self._width = as_json, width

    def print_new(self) -> None:
        """Print the events that were added to the log since the last call."""
        for entry in self._store.entries_since(self._agent, self._end):
            self.print(entry)
            self._end = entry.end

    def print(self, entry: LogEntry) -> None:
        if self._as_json:
            print_json_line(render_output(entry.line, self._agent))
        else:
            self._print_readable(entry)

    def _print_readable(self, entry: LogEntry) -> None:
        name = f"{self._agent:<{self._width}}  " if self._width else ""
        print_event(entry.event, f"{entry.event.seq:>7}  {render_moment(entry.event.ts)}  {name}")


def print_event(event: Event | UnknownEvent, start: str, hidden: Collection[str] = ()) -> None:
    """Print an event in readable form after the text `start`, without the hidden fields."""
    fields = round_numbers(msgspec.to_builtins(event, builtin_types=(datetime,)))
    facts = "  ".join(
        f"{key}={to_one_line(_render_value(value), EVENTS_VALUE_CHARACTERS)[: _find_limit(key)]}"
        for key, value in fields.items()
        if key not in _FRAME and key not in hidden
    )
    echo(start, style_text(f"{event.kind:<22}", bold=True), f" {facts}")


def _render_value(value: Any) -> str:
    """Format a field's value: strings unchanged, times in local time, everything else as JSON."""
    match value:
        case str():
            return value
        case datetime():
            return render_moment(value)
        case _:
            return msgspec.json.encode(value).decode()


def _find_limit(key: str) -> int | None:
    return EVENTS_HASH_CHARACTERS if key in _HASHES else None
