"""`rekindle transcript`: print the conversations from an agent's sessions."""

import re
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

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
from rekindle.documents.transcripts.turns import (
    Turn,
    render,
)
from rekindle.errors import NotFoundError, UsageError
from rekindle.stores.files.transcript_archive import ArchivedTranscript
from rekindle.system import clock
from rekindle.thresholds.texts import QUOTED_CHARACTERS
from rekindle.wiring import transcript_setup

_AGO = re.compile(r"([0-9]{1,6})\s*(s|min|m|h|d|w)\Z")
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}


@click.command()
@click.argument("agent", required=False)
@click.option(
    "--since",
    metavar="TIME",
    help="Show only turns after this time: 2h, 3d, 2026-01-31, 2026-01-31T06:00.",
)
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
    after = _parse_since(since, clock.read_clock()) if since else None
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


def _parse_since(since: str, now: datetime) -> datetime:
    try:
        if ago := _AGO.match(since.strip()):
            return now - timedelta(seconds=int(ago[1]) * _SECONDS[ago[2]])
        return datetime.fromisoformat(since.strip()).astimezone(UTC)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)  # earlier than any turn
    except ValueError as error:
        raise UsageError(
            f"{since[:QUOTED_CHARACTERS]!r} is not a time",
            hint="write it as 2h, 3d, 2026-01-31 or 2026-01-31T06:00",
        ) from error


def _is_after(at: str, after: datetime) -> bool:
    try:
        return datetime.fromisoformat(at) >= after
    except (ValueError, TypeError):
        return True  # Turns without a time are always shown.
