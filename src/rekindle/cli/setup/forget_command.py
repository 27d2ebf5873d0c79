"""`rekindle forget` and `rekindle uninstall`."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from rekindle.cli.options import find_current_folder
from rekindle.cli.output import (
    echo,
    style_text,
)
from rekindle.errors import RekindleError, UsageError
from rekindle.formats.identifiers import to_one_line
from rekindle.stores.audit_trail import make_branch_name
from rekindle.stores.folders import trust_records
from rekindle.stores.folders.agent_folder import RekindleFolder
from rekindle.stores.folders.private_files import render_path
from rekindle.wiring import forget_project as wiring
from rekindle.wiring.access.operator_check import refuse_agent_of
from rekindle.wiring.forget_project import (
    InstalledTrace,
    Leftover,
)

_dry_run = click.option(
    "--dry-run", is_flag=True, help="List what would be removed, but remove nothing."
)
_yes = click.option("--yes", is_flag=True, help="Remove without asking first.")
_keep_history = click.option(
    "--keep-history",
    is_flag=True,
    help="Keep .rekindle, with its logs, relays, briefs and transcripts.",
)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@_keep_history
@_dry_run
@_yes
def forget(folder: Path, keep_history: bool, dry_run: bool, yes: bool) -> None:
    """Remove every trace of Rekindle for the project in FOLDER, even if FOLDER is already gone.

    This removes hooks from the settings of agent CLIs, units, lines of your crontab, locks, the
    record that you trust the folder, and .rekindle with the agents' logs, relays and transcripts.
    Your files, rekindle.yaml and the branches of the audit trail stay. A crontab line that also
    starts other commands is shown, not removed. The command refuses while an agent or the daemon is
    running there.
    """
    folder = (find_current_folder() / folder).resolve()
    names = RekindleFolder(folder).names()
    refuse_agent_of(folder, names, "rekindle forget")
    wiring.refuse_running(folder)
    traces = list(wiring.find_traces(folder, keep_history=keep_history))
    if not traces:
        shown = to_one_line(render_path(folder))
        echo(f"No trace of {shown} is left. `rekindle status --all` lists your other projects.")
        return
    if _remove(traces, dry_run=dry_run, yes=yes) and names:
        _tell_left(_list_branches(folder, names))


@click.command()
@_keep_history
@_dry_run
@_yes
def uninstall(keep_history: bool, dry_run: bool, yes: bool) -> None:
    """Remove every trace of Rekindle on this host: `forget` for all projects, then your user files.

    This also removes your user hooks, the unit of the daemon for all projects, and your Rekindle
    folder. Plugins and extensions made by `hooks export` stay where you put them.
    """
    folders = trust_records.list_recorded()
    for folder in folders:
        refuse_agent_of(folder, RekindleFolder(folder).names(), "rekindle uninstall")
    for folder in folders:
        wiring.refuse_running(folder)
    wiring.refuse_daemon()
    traces = [
        trace
        for folder in folders
        for trace in wiring.find_traces(folder, keep_history=keep_history)
    ]
    branches = [
        branch
        for folder in folders
        for branch in _list_branches(folder, RekindleFolder(folder).names())
    ]
    known = {trace.words for trace in traces}
    traces += [one for one in wiring.find_user_traces() if one.words not in known]
    if _remove(traces, dry_run=dry_run, yes=yes):
        _tell_left(branches)
        echo("Next: remove the program, for instance with `uv tool uninstall rekindle-agents`.")


def _remove(found: Sequence[InstalledTrace | Leftover], *, dry_run: bool, yes: bool) -> bool:
    """List the traces, ask for confirmation, and remove them; return whether they were removed."""
    traces = [one for one in found if isinstance(one, InstalledTrace)]
    _show_leftovers(one for one in found if isinstance(one, Leftover))
    if dry_run or not yes:
        for trace in traces:
            echo(f"· {trace.words}")
    if dry_run:
        return False
    if traces and not yes:
        if not sys.stdin.isatty():
            raise UsageError(
                "nothing was removed, because there is no terminal to ask for confirmation",
                hint="repeat the command with --yes",
            )
        if not click.confirm("Remove all of this?", default=False):
            return False
    failed: RekindleError | None = None
    for trace in traces:
        try:
            trace.remove()
            echo(f"✓ removed {trace.words}")
        except RekindleError as error:
            failed = failed or error
            echo(f"✗ {trace.words}: {error}", err=True)
    if failed is not None:
        raise failed
    return True


def _show_leftovers(leftovers: Iterable[Leftover]) -> None:
    for left in dict.fromkeys(leftovers):
        echo(
            style_text("!", fg="yellow"), f" not removed: {left.words}: {left.reason}; {left.hint}"
        )


def _list_branches(folder: Path, names: Sequence[str]) -> list[str]:
    """Return the branches of the audit trail, which only a git repository has."""
    is_repository = any((above / ".git").exists() for above in (folder, *folder.parents))
    return [make_branch_name(name) for name in names] if is_repository else []


def _tell_left(branches: Sequence[str]) -> None:
    left = ", ".join(dict.fromkeys(branches))
    echo(
        "· rekindle.yaml and your own files stay"
        + (f"; so do these git branches: {left}" if left else "")
    )
