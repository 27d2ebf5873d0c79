"""`rekindle transcript`: print the conversations from an agent's sessions."""

from collections import deque
from collections.abc import Iterator
from datetime import datetime

import click
import msgspec

from rekindle.cli.options import (
    json_option,
    last_option,
    open_files,
)
from rekindle.cli.output import (
    echo,
    print_json,
    print_styled,
)
from rekindle.cli.reports.since_option import parse_since, since_option
from rekindle.documents.transcripts.turns import (
    Turn,
    render,
)
from rekindle.errors import NotFoundError
from rekindle.stores.files.transcript_archive import ArchivedTranscript
from rekindle.system import clock
from rekindle.wiring import transcript_setup


@click.command()
@click.argument("agent", required=False)
@since_option
@click.option(
    "--session", metavar="ID", help="Show only this session. A prefix of its id is enough."
)
@last_option
@json_option
def transcript(
    agent: str | None, since: str | None, session: str | None, last: int, as_json: bool
) -> None:
    """Print the conversations from AGENT's sessions, newest last. This works for any CLI.

    With --json, each line is one turn. The output includes sessions that the CLI has deleted.
    """
    project, store, name = open_files(agent)
    after = parse_since(since, clock.read_clock()) if since else None
    selected: list[tuple[ArchivedTranscript, Turn]] = []
    sessions = transcript_setup.read_sessions(project, store, name)
    for archived, turns in sessions:
        if session is None or archived.session.startswith(session):
            selected += _select_turns(archived, turns, after, last)
    if not selected:
        where = "for that time or session" if since or session else "yet"
        raise NotFoundError(
            f"{name} has no transcript {where}",
            hint=f"`rekindle run {name}` archives transcripts; for sessions that you start "
            "yourself, run `rekindle hooks install`, so the watchdog or this command can "
            "archive them",
        )
    selected.sort(key=lambda item: item[1].at)
    _print_turns(selected[-last:] if last else selected, as_json=as_json)


def _select_turns(
    archived: ArchivedTranscript, turns: Iterator[Turn], after: datetime | None, last: int
) -> deque[tuple[ArchivedTranscript, Turn]]:
    """Return the last turns of a session, without loading a long transcript into memory."""
    newer = ((archived, turn) for turn in turns if after is None or _is_after(turn.at, after))
    return deque(newer, maxlen=last or None)


def _print_turns(selected: list[tuple[ArchivedTranscript, Turn]], *, as_json: bool) -> None:
    before = ""
    for archived, turn in selected:
        if as_json:
            more = {"session": archived.session, "harness": archived.harness}
            print_json({**more, **msgspec.to_builtins(turn)})
            continue
        if archived.session != before:
            before = archived.session
            print_styled(f"── {archived.harness} {archived.session}", bold=True)
        echo(render(turn))


def _is_after(at: str, after: datetime) -> bool:
    try:
        return datetime.fromisoformat(at) >= after
    except (ValueError, TypeError):
        return True  # Turns without a time are always shown.
