"""`rekindle rewind`: restore a snapshot of the work tree."""

import sys
from pathlib import Path

import click

from rekindle.cli.fleet_refusal import refuse_fleet
from rekindle.cli.options import find_current_folder, require_operator
from rekindle.cli.output import echo
from rekindle.cli.reports.snapshots_command import describe_head
from rekindle.documents.commits.snapshot_commit import (
    Snapshot,
    SnapshotLabel,
    describe_occasion,
    find_newest,
)
from rekindle.documents.events import WorkRewound
from rekindle.errors import RekindleError, UsageError
from rekindle.formats.counts import render_count
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.settings.runtime_settings import STOP_SECONDS
from rekindle.policy.snapshots import snapshot_names
from rekindle.system import clock
from rekindle.system.git.work_snapshots import WorkSnapshots
from rekindle.thresholds.screens import UNRESTORED_NAMED
from rekindle.wiring import open_snapshots
from rekindle.wiring.access.operator_check import refuse_agent_of
from rekindle.wiring.keeping.record_session import is_imported
from rekindle.wiring.open_snapshots import SnapshotPlace
from rekindle.wiring.open_store import open_store


@click.command()
@click.argument("agent", required=False)
@click.argument("to", required=False)
@click.option("--yes", is_flag=True, help="Rewind without asking first.")
def rewind(agent: str | None, to: str | None, yes: bool) -> None:
    """Restore AGENT's work tree (files, HEAD and branch) from snapshot TO.

    Without TO, Rekindle restores the state at the start of the last cycle. It first saves the
    current state as a snapshot, so you can undo a rewind. If the command is interrupted, run it
    again. It also works if rekindle.yaml and .rekindle are gone, but not while an agent is working
    in the work tree. The agent's next session starts fresh and is told about the rewind.
    """
    start = find_current_folder()
    if agent and to is None and snapshot_names.is_snapshot_name(agent):
        agent, to = None, agent
    named = snapshot_names.find_agent(to or "")
    place = open_snapshots.find_place(start, agent or named or None)
    _refuse_caller(place, start)
    opened = place.open()
    open_snapshots.refuse_working(place)
    if not yes and not sys.stdin.isatty():
        raise UsageError(
            "nothing was changed, because there is no terminal to ask for confirmation",
            hint="repeat the command with --yes",
        )
    listed = opened.list()
    name = agent or named or open_snapshots.choose_snapshot_agent(place, start, listed)
    open_snapshots.refuse_removed(place, name)
    target = (
        snapshot_names.find_snapshot(listed, to, name)
        if to
        else snapshot_names.find_target(listed, name, opened.worktree)
    )
    shown = f"{target.name} ({describe_occasion(target.label)})"
    with opened.hold() as held:
        saved = held.save(SnapshotLabel(name, "rewind", clock.read_clock()), target)
        is_needed = held.is_needed(target, saved)
    if not is_needed:
        echo(f"· {opened.top} is already as it was at {shown}")
        return
    _print_changes(opened, target, saved)
    if not yes and not click.confirm(f"Rewind {opened.top} to {shown}?", default=False):
        return
    open_snapshots.refuse_working(place)
    saved = _restore(place, name, target)
    echo(f"✓ {opened.top} is as it was at {shown}")
    echo(f"· to undo this: `rekindle rewind {saved.name}`")
    if place.project is not None:
        echo(f"· the relay is not rewound; `rekindle relay history {name}` shows earlier ones")


def _refuse_caller(place: SnapshotPlace, start: Path) -> None:
    """Refuse the command on a fleet, or if an agent calls it."""
    if place.project is not None:
        require_operator(place.project)
        refuse_fleet(place.project)
    else:
        for folder in (start, *start.parents):
            refuse_agent_of(folder, (), "rekindle rewind")


def _restore(place: SnapshotPlace, name: str, target: Snapshot) -> Snapshot:
    """Save the current state again in case it has changed, then restore the snapshot."""
    opened = place.open()
    exported = find_newest(opened.list(), name, opened.worktree, "export")
    with opened.hold() as held:
        saved = held.save(SnapshotLabel(name, "rewind", clock.read_clock()), target)
        # Record the event first. Even if the rewind is interrupted, a session that remembers the
        # old files must not be resumed.
        _record(place, target, saved, moved=name if target == exported else "")
        held.restore(target, saved)
    return saved


def _record(place: SnapshotPlace, target: Snapshot, saved: Snapshot, *, moved: str) -> None:
    """Record the rewind for each agent in the work tree, so that its next session is fresh.

    If the session of the agent `moved` was imported, it knows these files and continues.
    """
    if place.project is None:
        return
    store = open_store(place.project)
    for name in place.list_sharing():
        rewound = WorkRewound(
            ts=clock.read_clock(),
            snapshot=target.name,
            commit=target.commit,
            occasion=describe_occasion(target.label),
            saved=saved.name,
        )
        try:
            if store.exists(name):
                with store.writer(name, wait=STOP_SECONDS) as writer:
                    writer.fold()
                    if name != moved or not is_imported(writer.projection):
                        writer.append(rewound)
                    writer.project()
        except RekindleError as error:
            hint = f"start it with `rekindle restart --fresh {name}`"
            echo(f"Note: {name}: the rewind could not be recorded: {error}; {hint}", err=True)


def _print_changes(opened: WorkSnapshots, target: Snapshot, saved: Snapshot) -> None:
    """Print what the rewind changes, and what it does not restore."""
    for line in opened.compare(saved.tree, target.tree, stat=True).splitlines():
        echo(line)
    if saved.position != target.position:
        left = opened.count_commits(target.head, saved.head)
        verb = "stays" if left == 1 else "stay"
        kept = f"; {render_count(left, 'commit')} {verb} in {saved.name} only" if left else ""
        echo(f"HEAD: {describe_head(saved)} → {describe_head(target)}{kept}")
    echo("Not restored: pushed commits, files outside this folder, and what was staged.")
    unrestored = opened.list_unrestored(target, saved)
    more = target.more_left_out + saved.more_left_out
    _print_names(
        "Left out of the snapshots, and not changed",
        [f"{one.path} ({one.why})" for one in unrestored.left_out],
        more,
    )
    _print_names("Submodules and nested repositories, not changed", list(unrestored.repositories))
    _print_names("Ignored, and not changed", list(unrestored.ignored), most=UNRESTORED_NAMED)


def _print_names(title: str, names: list[str], more: int = 0, most: int | None = None) -> None:
    if names:
        shown = names if most is None else names[:most]
        more += len(names) - len(shown)
        rest = f" and {more} more" if more else ""
        echo(f"{title}: {', '.join(map(to_one_line, shown))}{rest}")
