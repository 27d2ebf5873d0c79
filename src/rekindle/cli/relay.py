"""`rekindle relay`."""

import re
from difflib import unified_diff
from itertools import islice
from typing import Any

import click
import msgspec

from rekindle.cli.options import (
    Store,
    as_json,
    here,
    how_many,
    open_agent,
    open_files,
    take_over,
    take_over_edits,
    which_agent,
)
from rekindle.cli.output import echo, print_json, render_moment, secho, styled
from rekindle.config import Project, find, load
from rekindle.documents import relay as documents
from rekindle.documents.event import RelayCommitted, RelayProposed
from rekindle.documents.relay import Field, Relay
from rekindle.errors import CheckFailedError, NotFoundError, UsageError, storing
from rekindle.policy.check import Checked, check
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.settings import RELAY_BYTES, Settings
from rekindle.stores.files import FileStore
from rekindle.system import clock
from rekindle.thresholds.screens import RELAY_ID_CHARACTERS, RELAY_ID_SHORTEST

_REVISION = re.compile(r"[0-9]{1,18}|[0-9A-Fa-f]{4,64}")


@click.group()
def relay() -> None:
    """The document between cycles: what the next cycle reads first."""


@relay.command()
@which_agent
@as_json
def show(agent: str | None, as_json: bool) -> None:
    """Print the relay as it stands.

    Control characters are shown escaped, in a pipe or a file too; --json has the exact text.
    """
    project, store, name = open_agent(agent)
    text = _current(project, store, name)
    if as_json:
        found = documents.parse(text)
        fields = {str(field): found.content(field) for field in Field if found.places(field)}
        print_json({"agent": name, "text": text, "fields": fields})
    else:
        echo(text, nl=not text.endswith("\n"))


@relay.command("check")
@click.argument(
    "file", required=False, type=click.Path(exists=True, dir_okay=False, allow_dash=True)
)
@which_agent
@as_json
def check_relay(file: str | None, agent: str | None, as_json: bool) -> None:
    """Say what kind of relay FILE is.

    A dash reads standard input; without FILE the agent's own relay is checked. Ends with 0 when it
    can be used, with 8 when the next cycle could not follow it.
    """
    redacted = 0
    if file is None:
        project, store, name = open_agent(agent)
        settings = project.settings
        text = _current(project, store, name)
        found = check(documents.parse(text), settings.runtime.relay.max_relay_tokens)
    else:
        settings, redaction = Settings(), Redaction()
        if find(here()):
            project = load(here())
            settings = project.settings
            redaction = Redaction(tuple(project.manifest.redact.allow))
        written, redacted = _read(file, redaction)
        found = check(written, settings.runtime.relay.max_relay_tokens)
    if as_json:
        print_json(msgspec.to_builtins(found) | {"redacted": redacted})
    else:
        _print_checked(found)
        _print_redacted(redacted)
    if not found.usable:
        raise CheckFailedError(
            f"not usable: {found.kind}", hint="fix what is marked ✗, then check again"
        )


@relay.command("set")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@which_agent
@take_over
@as_json
def set_relay(file: str, agent: str | None, take_over: bool, as_json: bool) -> None:
    """Make FILE the relay.

    A dash reads standard input. What is over the cap is trimmed into the archive; the Next Action
    stays.
    """
    project, store, name = open_files(agent)
    proposed, redacted = _read(file, store.redaction)
    _require_usable(project, proposed)
    record = RelayProposed(ts=clock.now(), text=documents.render(proposed), by="person")
    folded = store.submit(name, record, take_over=take_over)
    if not folded:
        if as_json:
            print_json({"agent": name, "folded": False, "redacted": redacted})
        else:
            echo("✓ kept; the agent's writer is busy and will commit it")
            _print_redacted(redacted)
        return
    standing = store.read(name).committed.documents["relay"]
    if as_json:
        told = {"agent": name, "folded": True, "redacted": redacted}
        print_json(told | msgspec.to_builtins(standing))
        return
    echo(f"✓ relay committed: ~{standing.tokens:,} tokens, next: {standing.headline}")
    _print_redacted(redacted)
    if standing.trimmed:
        folder = store.folder(name).path
        echo(f"  trimmed to its cap; what went is in {folder / standing.trimmed}")
    if standing.over_cap:
        secho("  ! still over its cap: shorten its Next Action", fg="yellow")


@relay.command()
@how_many
@which_agent
@as_json
def history(agent: str | None, last: int, as_json: bool) -> None:
    """The relays there were, newest first.

    Those that are in the git audit trail are shown with their commit.
    """
    _, store, name = open_files(agent)
    take_over_edits(store, name)
    found = _commits(store, name, last or None)
    in_git = store.audit_commits(name) if found else {}
    if as_json:
        print_json(
            [
                {
                    "seq": one.seq,
                    "ts": one.ts,
                    "by": one.by,
                    "tokens": one.tokens,
                    "sha256": one.sha256,
                    "next_action": one.headline,
                    "path": one.path,
                    "commit": in_git.get((one.seq, one.sha256)),
                }
                for one in found
            ]
        )
        return
    if not found:
        echo(f"{name} has no relay yet. Set one with `rekindle relay set FILE`.")
    for one in found:
        when = render_moment(one.ts, "%Y-%m-%d %H:%M")
        commit = in_git.get((one.seq, one.sha256), "")[:RELAY_ID_CHARACTERS]
        column = f"{commit:<{RELAY_ID_CHARACTERS}}  " if in_git else ""
        echo(f"{one.seq:>7}  {column}{when}  {one.by:<10} ~{one.tokens:>6,}  {one.headline}")


@relay.command()
@click.argument("older", required=False)
@click.argument("newer", required=False)
@which_agent
@as_json
def diff(older: str | None, newer: str | None, agent: str | None, as_json: bool) -> None:
    """What changed between two relays.

    OLDER and NEWER are the numbers that `history` shows, or commits of the git audit trail. Without
    them: the last two. With one: from that one to the newest.
    """
    _, store, name = open_files(agent)
    take_over_edits(store, name)
    commits = _commits(store, name, 2 if older is None else None)
    if not commits or (len(commits) == 1 and older is None):
        raise NotFoundError(
            f"{name} has no two relays yet: nothing to compare",
            hint="see them with `rekindle relay history`",
        )
    after = commits[0] if newer is None else _named(store, name, commits, newer)
    before = commits[1] if older is None else _named(store, name, commits, older)
    lines = list(
        unified_diff(
            _archived(store, name, before).splitlines(),
            _archived(store, name, after).splitlines(),
            f"relay {before.seq}",
            f"relay {after.seq}",
            lineterm="",
        )
    )
    if as_json:
        print_json({"older": before.seq, "newer": after.seq, "diff": lines})
        return
    if not lines:
        echo(f"Relays {before.seq} and {after.seq} are the same.")
    for line in lines:
        secho(line, fg={"+": "green", "-": "red"}.get(line[:1]))


@relay.command()
@click.argument("source")
@as_json
def replay(source: str, as_json: bool) -> None:
    """Say where a history of relays got stuck.

    SOURCE is a JSONL of revisions, each with its `text`, plain or xz; or REPO:PATH, a file of any
    git repository as the commits of its current branch changed it. Needs no project. With --json
    one line for each pair of consecutive relays, counted from 0, then one for each stretch in which
    three or more in a row took no step.
    """
    # Only who replays pays for the words of stalls.
    from rekindle.cli.replay import show as replayed  # noqa: PLC0415

    replayed(source, as_json=as_json)


def _current(project: Project, store: Store, name: str) -> str:
    data = store.document(name, "relay") if store.exists(name) else None
    if data is None:
        is_here = project.settings.fleet is None
        raise NotFoundError(
            f"{name} has no relay yet",
            hint="set one with `rekindle relay set FILE`"
            if is_here
            else "its first cycle ends with one",
        )
    return documents.render(documents.parse(data))


def _read(file: str, redaction: Redaction) -> tuple[Relay, int]:
    """A relay as it would be kept, and how many secrets went from it."""
    with storing(file), click.open_file(file, "rb") as source:
        data = source.read(RELAY_BYTES + 1)
    if len(data) > RELAY_BYTES:
        raise UsageError(
            f"{file} is larger than {RELAY_BYTES:,} bytes", hint="a relay is a page, not a log"
        )
    cleaned = redaction.data(data)
    return documents.parse(cleaned), redaction.count(data, cleaned)


def _print_redacted(count: int) -> None:
    if count:
        many = "1 secret was" if count == 1 else f"{count:,} secrets were"
        secho(f"  ! {many} redacted: `rekindle redact` shows which", fg="yellow")


def _require_usable(project: Project, proposed: Relay) -> None:
    found = check(proposed, project.settings.runtime.relay.max_relay_tokens)
    if not found.usable:
        raise CheckFailedError(
            f"this relay cannot be used: {found.findings[0].message}",
            hint="give it a `## Next Action` with one directive; the old relay stands",
        )


def _print_checked(found: Checked) -> None:
    mark = styled("✓", fg="green") if found.usable else styled("✗", fg="red")
    echo(mark, f" {found.kind}: ~{found.tokens:,} tokens, {len(found.fields)} of 7 fields")
    if found.headline:
        echo(f"  next: {found.headline}")
    for one in found.findings:
        echo(f"  {'·' if found.usable else '✗'} {one.message}")


def _commits(store: FileStore, name: str, last: int | None) -> list[RelayCommitted]:
    if not store.exists(name):
        return []
    found: Any = (one for one in store.newest_events(name) if isinstance(one, RelayCommitted))
    return list(islice(found, last))


def _named(store: FileStore, name: str, commits: list[RelayCommitted], text: str) -> RelayCommitted:
    """The relay that a number, or a commit of the audit trail, stands for: numbers come first."""
    if not _REVISION.fullmatch(text):
        raise UsageError(
            f"{text!r} is neither a relay's number nor a git commit",
            hint="see them with `rekindle relay history --last 0`",
        )
    found = [one for one in commits if text.isdecimal() and one.seq == int(text)]
    if not found and len(text) >= RELAY_ID_SHORTEST:
        in_git = store.audit_commits(name)
        found = [
            one for one in commits if in_git.get((one.seq, one.sha256), "").startswith(text.lower())
        ]
    if len(found) == 1:
        return found[0]
    what = f"{text} stands for several commits" if found else f"no relay has number {text}"
    if not found and not text.isdecimal():
        what = f"no relay is in the git audit trail as {text}"
    raise NotFoundError(what, hint="see them with `rekindle relay history --last 0`")


def _archived(store: FileStore, name: str, commit: RelayCommitted) -> str:
    data = store.committed_relay(name, commit)
    if data is None:
        raise NotFoundError(f"the archive has lost {commit.path}", hint="restore it from a backup")
    return data.decode("utf-8", "replace")
