"""`rekindle events`."""

import sys
import time
from collections.abc import Iterator
from itertools import islice

import click
import msgspec

from rekindle.cli.options import Store, as_json, how_many, open_agent, which_agent
from rekindle.cli.output import echo, print_json_line, styled
from rekindle.documents.identity import one_line
from rekindle.policy.settings import POLL_SECONDS
from rekindle.stores.files.log import Entry
from rekindle.thresholds.screens import EVENTS_HASH_CHARACTERS, EVENTS_POLL_SECONDS

_FRAME = {"v", "seq", "gen", "ts", "kind", "at", "more", "boot", "uptime"}
_HASHES = {"sha256", "previous", "session", "launch"}


@click.command()
@how_many
@click.option("-f", "--follow", is_flag=True, help="Go on printing as they happen; Ctrl-C ends.")
@which_agent
@as_json
def events(agent: str | None, last: int, follow: bool, as_json: bool) -> None:
    """What happened, newest last. With --json one event a line, as the log has it."""
    project, store, name = open_agent(agent)
    if not store.exists(name):
        echo("Nothing has happened yet.", err=True)
        return
    seen = store.read(name)
    shown = [one for one in _newest(store, name, last) if one.event.seq <= seen.committed.seq]
    for entry in shown:
        _print(entry, as_json=as_json)
    if shown and shown[0].event.seq > 1 and (last == 0 or len(shown) < last):
        echo("Note: older ones are in the logs of the hosts that it ran on.", err=True)
    end = seen.end
    while follow:
        for entry in store.entries_since(name, end):
            _print(entry, as_json=as_json)
            end = entry.end
        sys.stdout.flush()
        # On a fleet each look is a question to the engine.
        time.sleep(EVENTS_POLL_SECONDS if project.settings.fleet is None else POLL_SECONDS)


def _newest(store: Store, name: str, last: int) -> Iterator[Entry]:
    if last <= 0:
        return iter(store.entries_since(name, 0))
    return reversed(list(islice(store.newest_entries(name), last)))


def _print(entry: Entry, *, as_json: bool) -> None:
    if as_json:
        print_json_line(entry.line)
        return
    event = entry.event
    fields = msgspec.to_builtins(event)
    facts = "  ".join(
        f"{key}={one_line(str(value), 80)[: EVENTS_HASH_CHARACTERS if key in _HASHES else None]}"
        for key, value in fields.items()
        if key not in _FRAME
    )
    moment = event.ts.strftime("%Y-%m-%d %H:%M:%S")
    kind = styled(f"{event.kind:<22}", bold=True)
    echo(f"{event.seq:>7}  {moment}  ", kind, f" {facts}")
