"""`rekindle forget` and `rekindle uninstall`: remove every trace of Rekindle."""

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
    "--dry-run", is_flag=True, help="List what would be removed, without removing it."
)
_yes = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
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

    This removes hooks from agent CLI settings, service units, crontab lines, locks, the trust
    record, snapshots, and .rekindle with the agents' logs, relays, transcripts and exports. Your
    files, rekindle.yaml and the audit trail's branches are not removed. An agent's own clone is
    removed after all its work is saved on the agent's branch, which stays. A crontab line that also
    starts other commands is shown but not removed. The command refuses to run while an agent or the
    daemon is running there.
    """
    folder = (find_current_folder() / folder).resolve()
    names = RekindleFolder(folder).names()
    refuse_agent_of(folder, names, "rekindle forget")
    wiring.refuse_running(folder)
    branches = _list_branches(folder, names)
    traces = list(wiring.find_traces(folder, keep_history=keep_history))
    if not traces:
        shown = to_one_line(render_path(folder))
        echo(f"No trace of {shown} is left. `rekindle status --all` lists your other projects.")
        return
    if _remove_traces(traces, dry_run=dry_run, yes=yes) and (names or branches):
        _tell_left(branches)


@click.command()
@_keep_history
@_dry_run
@_yes
def uninstall(keep_history: bool, dry_run: bool, yes: bool) -> None:
    """Remove every trace of Rekindle on this host: `forget` for all projects, then your user files.

    This also removes your user hooks, the plugins from `rekindle plugin install`, the service unit
    for `rekindle daemon --all`, and your Rekindle folder. Plugins and extensions from `hooks
    export` are not removed.
    """
    folders = trust_records.list_recorded()
    for folder in folders:
        refuse_agent_of(folder, RekindleFolder(folder).names(), "rekindle uninstall")
    for folder in folders:
        wiring.refuse_running(folder)
    wiring.refuse_daemon()
    branches = [
        branch
        for folder in folders
        for branch in _list_branches(folder, RekindleFolder(folder).names())
    ]
    traces = [
        trace
        for folder in folders
        for trace in wiring.find_traces(folder, keep_history=keep_history)
    ]
    descriptions = {trace.words for trace in traces}
    traces += [trace for trace in wiring.find_user_traces() if trace.words not in descriptions]
    if _remove_traces(traces, dry_run=dry_run, yes=yes):
        _tell_left(branches)
        echo("Next: remove the program, for instance with `uv tool uninstall rekindle-agents`.")


def _remove_traces(
    listed: Sequence[InstalledTrace | Leftover], *, dry_run: bool, yes: bool
) -> bool:
    """List the traces, ask for confirmation and remove them. Return whether they were removed."""
    traces = [trace for trace in listed if isinstance(trace, InstalledTrace)]
    _show_leftovers(trace for trace in listed if isinstance(trace, Leftover))
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
    """Return the branches of the audit trail and of agents' own checkouts."""
    is_repository = any((above / ".git").exists() for above in (folder, *folder.parents))
    relays = [make_branch_name(name) for name in names] if is_repository else []
    return [*relays, *wiring.list_work_branches(folder)]


def _tell_left(branches: Sequence[str]) -> None:
    left = ", ".join(dict.fromkeys(branches))
    echo(
        "· rekindle.yaml and your own files stay"
        + (f"; so do these git branches: {left}" if left else "")
    )
