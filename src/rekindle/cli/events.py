"""`rekindle events`."""

import time
from collections.abc import Iterator
from itertools import islice

import click
import msgspec

from rekindle.cli.options import as_json, how_many, open_agent, which_agent
from rekindle.documents import event as documents
from rekindle.documents.event import AnyEvent, Event, Unrecognised
from rekindle.documents.identity import one_line
from rekindle.stores.files import FileStore

_POLL_SECONDS = 0.2
_FRAME = {"v", "seq", "gen", "ts", "kind", "at"}


@click.command()
@how_many
@click.option("-f", "--follow", is_flag=True, help="Go on printing as they happen; Ctrl-C ends.")
@which_agent
@as_json
def events(agent: str | None, last: int, follow: bool, as_json: bool) -> None:
    """What happened, newest last. With --json one event a line, as the log has it."""
    _, store, name = open_agent(agent)
    if not store.exists(name):
        click.echo("Nothing has happened yet.", err=True)
        return
    end = store.log_size(name)
    for event in _newest(store, name, last):
        _print(event, as_json=as_json)
    while follow:
        tail = store.events_since(name, end)
        for event in tail.events:
            _print(event, as_json=as_json)
        end = tail.end
        time.sleep(_POLL_SECONDS)


def _newest(store: FileStore, name: str, last: int) -> Iterator[AnyEvent | Unrecognised]:
    if last <= 0:
        return iter(store.events_since(name, 0).events)
    return reversed(list(islice(store.newest_events(name), last)))


def _print(event: AnyEvent | Unrecognised, *, as_json: bool) -> None:
    if as_json:
        data = documents.render(event) if isinstance(event, Event) else msgspec.json.encode(event)
        click.echo(data)
        return
    fields = msgspec.to_builtins(event)
    facts = "  ".join(
        f"{key}={one_line(str(value), 80)}" for key, value in fields.items() if key not in _FRAME
    )
    moment = event.ts.strftime("%Y-%m-%d %H:%M:%S")
    click.echo(f"{event.seq:>7}  {moment}  {click.style(event.kind, bold=True):<22} {facts}")
