"""`rekindle relay`: show, check, set and compare relays."""

import re
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from rekindle.cli.options import (
    add_agent_argument,
    adopt_edits,
    agent_option,
    choose_named,
    find_current_folder,
    is_typed,
    json_option,
    last_option,
    open_handle,
    take_over_option,
)
from rekindle.cli.output import (
    echo,
    print_json,
    print_styled,
    render_moment,
    style_text,
)
from rekindle.config import find_project, load_project
from rekindle.documents import relay as documents
from rekindle.documents.events import RelayCommitted
from rekindle.documents.relay import Relay, RelayField
from rekindle.errors import (
    CheckFailedError,
    NotFoundError,
    UsageError,
    translate_os_errors,
)
from rekindle.formats.counts import render_count
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.relay.relay_check import RelayReport, classify_relay
from rekindle.policy.settings.runtime_settings import RELAY_BYTES, Settings
from rekindle.stores.files import FileStore
from rekindle.thresholds.screens import RELAY_ID_CHARACTERS, RELAY_ID_SHORTEST

_REVISION = re.compile(r"[0-9]{1,18}|[0-9A-Fa-f]{4,64}")


@click.group()
def relay() -> None:
    """Show, check or set the relay: the document that the next cycle reads first."""


@relay.command()
@add_agent_argument
@json_option
def show(agent: str | None, as_json: bool) -> None:
    """Print AGENT's current relay.

    Control characters are escaped, even if the output is a pipe or a file. Use --json to get the
    exact text.
    """
    handle = open_handle(agent)
    name, text = handle.name, handle.relay.text()
    if as_json:
        parsed = documents.parse(text)
        fields = {str(field): parsed.content(field) for field in RelayField if parsed.places(field)}
        print_json({"agent": name, "text": text, "fields": fields})
    else:
        echo(text, nl=not text.endswith("\n"))


@relay.command("check", short_help="Check whether the next cycle can use a relay.")
@click.argument("word", required=False, metavar="[FILE|AGENT]")
@agent_option
@json_option
def check_relay(word: str | None, agent: str | None, as_json: bool) -> None:
    """Check whether the next cycle can use the relay in FILE, or AGENT's relay.

    If FILE is `-`, Rekindle reads the relay from standard input. The exit code is 0 if the relay is
    usable, and 8 if not.
    """
    redacted = 0
    file = word
    if word is not None and not Path(word).exists() and _is_agent(word):
        agent, file = choose_named(word, agent), None
    if file is None:
        handle = open_handle(agent)
        settings = handle.home.project.settings
        text = handle.relay.text()
        report = classify_relay(documents.parse(text), settings.runtime.relay.max_relay_tokens)
    else:
        settings, redaction = Settings(), Redaction()
        if find_project(find_current_folder()):
            project = load_project(find_current_folder())
            settings = project.settings
            redaction = Redaction(tuple(project.manifest.redact.allow))
        _require_file(file)
        written, redacted = _read_file(file, redaction)
        report = classify_relay(written, settings.runtime.relay.max_relay_tokens)
    if as_json:
        print_json(msgspec.to_builtins(report) | {"redacted": redacted})
    else:
        _print_checked(report)
        _print_redacted(redacted)
    if not report.usable:
        raise CheckFailedError(
            f"the relay is not usable: {report.kind}",
            hint="fix the lines marked ✗, then check again",
        )


@relay.command("set")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@add_agent_argument
@click.option(
    "--base",
    metavar="SHA256",
    default="",
    help="Refuse the relay unless it replaces the one with this hash.",
)
@take_over_option
@json_option
def set_relay(file: str, agent: str | None, base: str, take_over: bool, as_json: bool) -> None:
    """Use FILE as AGENT's relay.

    If FILE is `-`, Rekindle reads the relay from standard input. If the relay is too long, Rekindle
    moves the excess to the archive, but never the Next Action.

    To keep an edit from overwriting a newer relay, use --base with the hash of the relay that you
    edited. `rekindle relay history --json` shows it.
    """
    handle = open_handle(agent)
    name, store = handle.name, handle.home.require_files("relay set")
    proposed, redacted = _read_file(file, store.redaction)
    folded = handle.relay.set(documents.render(proposed), base=base, take_over=take_over)
    if not folded:
        if as_json:
            print_json({"agent": name, "folded": False, "redacted": redacted})
        else:
            echo("✓ relay recorded; the agent's supervisor will commit it")
            _print_redacted(redacted)
        return
    standing = store.read(name).committed.documents["relay"]
    if as_json:
        row = {"agent": name, "folded": True, "redacted": redacted}
        print_json(row | msgspec.to_builtins(standing))
        return
    echo(f"✓ relay committed: ~{render_count(standing.tokens, 'token')}, next: {standing.headline}")
    _print_redacted(redacted)
    if standing.trimmed:
        folder = store.folder(name).path
        echo(f"  trimmed to its cap; the rest is in {folder / standing.trimmed}")
    if standing.over_cap:
        print_styled("  ! the relay is still over its cap: shorten its Next Action", fg="yellow")


@relay.command()
@last_option
@add_agent_argument
@json_option
def history(agent: str | None, last: int, as_json: bool) -> None:
    """List AGENT's relays, newest first.

    If a relay is in the git audit trail, the list shows its commit.
    """
    handle = open_handle(agent)
    name, store = handle.name, handle.home.require_files("relay history")
    adopt_edits(store, name)
    relays = handle.relay.revisions(last or None)
    in_git = store.audit_commits(name) if relays else {}
    if as_json:
        rows = [
            {
                "seq": revision.seq,
                "ts": revision.ts,
                "by": revision.by,
                "tokens": revision.tokens,
                "sha256": revision.sha256,
                "next_action": revision.headline,
                "path": revision.path,
                "commit": in_git.get((revision.seq, revision.sha256)),
            }
            for revision in relays
        ]
        print_json({"relays": rows})
        return
    if not relays:
        echo(f"{name} has no relay yet. Set one with `rekindle relay set FILE`.")
    for revision in relays:
        when = render_moment(revision.ts, "%Y-%m-%d %H:%M")
        commit = in_git.get((revision.seq, revision.sha256), "")[:RELAY_ID_CHARACTERS]
        column = f"{commit:<{RELAY_ID_CHARACTERS}}  " if in_git else ""
        echo(
            f"{revision.seq:>7}  {column}{when}  {revision.by:<10} ~{revision.tokens:>6,}"
            f"  {revision.headline}"
        )


@relay.command()
@click.argument("words", nargs=-1, metavar="[AGENT] [OLDER] [NEWER]")
@agent_option
@json_option
def diff(words: tuple[str, ...], agent: str | None, as_json: bool) -> None:
    """Show what changed between two relays.

    OLDER and NEWER are relay numbers from `history`, or commits in the git audit trail. By default,
    the command compares the last two relays. With OLDER alone, it compares that relay with the
    newest.
    """
    named, older, newer = _choose_relays(words, agent)
    handle = open_handle(named)
    name, store = handle.name, handle.home.require_files("relay diff")
    adopt_edits(store, name)
    commits = handle.relay.revisions(2 if older is None else None)
    if not commits or (len(commits) == 1 and older is None):
        raise NotFoundError(
            f"{name} has fewer than two relays, so there is nothing to compare",
            hint=f"list the relays with `rekindle relay history {name}`",
        )
    after = commits[0] if newer is None else _find_commit(store, name, commits, newer)
    before = commits[1] if older is None else _find_commit(store, name, commits, older)
    lines = handle.relay.compare(before, after)
    if as_json:
        print_json({"older": before.seq, "newer": after.seq, "diff": lines})
        return
    if not lines:
        echo(f"Relays {before.seq} and {after.seq} are the same.")
    for line in lines:
        print_styled(line, fg={"+": "green", "-": "red"}.get(line[:1]))


@relay.command()
@click.argument("source")
@json_option
def replay(source: str, as_json: bool) -> None:
    """Show where a relay history got stuck.

    SOURCE is a JSONL file with one revision per line, each with a `text` key. The file may be
    compressed with xz. SOURCE can also be REPO:PATH, to read a file's history from the current
    branch of any git repository. The command works outside a project. With --json, it prints one
    line for each pair of consecutive relays, counted from 0, followed by one line for each stretch
    of three or more pairs without progress.
    """
    # The stall check's word lists are slow to load.
    from rekindle.cli.documents.relay_replay import print_replay as replayed  # noqa: PLC0415

    replayed(source, as_json=as_json)


def _is_agent(name: str) -> bool:
    folder = find_project(find_current_folder())
    return folder is not None and name in load_project(folder).manifest.agents


def _require_file(file: str) -> None:
    """Raise click's "file does not exist" error, unless the path is a file or a dash."""
    kind = click.Path(exists=True, dir_okay=False, allow_dash=True)
    kind.convert(file, None, click.get_current_context())


def _choose_relays(
    words: Sequence[str], agent: str | None
) -> tuple[str | None, str | None, str | None]:
    """Return the agent and the two relays that the arguments of `diff` name.

    Raises:
      UsageError: The first argument is neither an agent nor a relay.
    """
    is_given = agent is not None and is_typed("agent")
    if words and not is_given:
        names = load_project(find_current_folder()).manifest.agents
        if words[0] in names:
            agent, words = words[0], words[1:]
        elif not _REVISION.fullmatch(words[0]):
            raise UsageError(
                f"{words[0]!r} is not an agent, a relay number or a git commit",
                hint=(
                    "list agents with `rekindle status`, and relays with `rekindle relay history "
                    "AGENT`"
                ),
            )
    if len(words) > 2:  # noqa: PLR2004 - OLDER and NEWER
        raise UsageError(
            "`relay diff` compares exactly two relays",
            hint="use `rekindle relay diff [AGENT] OLDER NEWER`",
        )
    older, newer = (*words, None, None)[:2]
    return agent, older, newer


def _read_file(file: str, redaction: Redaction) -> tuple[Relay, int]:
    """Return the redacted text of a relay file, and the number of secrets removed."""
    with translate_os_errors(file), click.open_file(file, "rb") as source:
        data = source.read(RELAY_BYTES + 1)
    if len(data) > RELAY_BYTES:
        raise UsageError(
            f"{file} is larger than {RELAY_BYTES:,} bytes",
            hint="shorten it; a relay should be about one page",
        )
    cleaned = redaction.data(data)
    return documents.parse(cleaned), redaction.count(data, cleaned)


def _print_redacted(count: int) -> None:
    if count:
        many = "1 secret was" if count == 1 else f"{count:,} secrets were"
        print_styled(f"  ! {many} redacted: `rekindle redact` shows where", fg="yellow")


def _print_checked(report: RelayReport) -> None:
    mark = style_text("✓", fg="green") if report.usable else style_text("✗", fg="red")
    echo(
        mark,
        f" {report.kind}: ~{render_count(report.tokens, 'token')},"
        f" {len(report.fields)} of 7 fields",
    )
    if report.headline:
        echo(f"  next: {report.headline}")
    for finding in report.findings:
        echo(f"  {'·' if report.usable else '✗'} {finding.message}")


def _find_commit(
    store: FileStore, name: str, commits: list[RelayCommitted], text: str
) -> RelayCommitted:
    """Return the relay with this number or, failing that, with this commit in the audit trail."""
    if not _REVISION.fullmatch(text):
        raise UsageError(
            f"{text!r} is not a relay number or a git commit",
            hint=f"list the relays with `rekindle relay history {name} --last 0`",
        )
    matches = [commit for commit in commits if text.isdecimal() and commit.seq == int(text)]
    if not matches and len(text) >= RELAY_ID_SHORTEST:
        in_git = store.audit_commits(name)
        matches = [
            commit
            for commit in commits
            if in_git.get((commit.seq, commit.sha256), "").startswith(text.lower())
        ]
    if len(matches) == 1:
        return matches[0]
    what = f"{text} matches several commits" if matches else f"relay {text} does not exist"
    if not matches and not text.isdecimal():
        what = f"the git audit trail has no relay with commit {text}"
    raise NotFoundError(what, hint=f"list the relays with `rekindle relay history {name} --last 0`")
