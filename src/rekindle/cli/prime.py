"""`rekindle hooks prime`: what hook.py has said to a session that begins."""

import sys
from pathlib import Path

import click

from rekindle import config
from rekindle.documents.event import SessionStarted
from rekindle.stores.files.inbox import Record
from rekindle.wiring.run import prime_session
from rekindle.wiring.store import HARNESSES


@click.command(hidden=True)
@click.argument("folder", type=click.Path(path_type=Path))
def prime(folder: Path) -> None:
    """Print what the session is told whose start is the record on standard input."""
    line = sys.stdin.buffer.read().strip(b"\n")
    readers = {name: harness.read_hook for name, harness in HARNESSES.items()}
    start = Record("", 0, line).event(readers)
    if isinstance(start, SessionStarted):
        project = config.load(folder.parents[2])
        click.echo(prime_session(project, folder.name, start), nl=False)
