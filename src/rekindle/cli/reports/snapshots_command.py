"""`rekindle snapshots` and `rekindle diff`: list and compare work-tree snapshots."""

from typing import Any

import click

from rekindle.cli.fleet_refusal import refuse_fleet
from rekindle.cli.options import find_current_folder, json_option
from rekindle.cli.output import echo, print_json, render_moment
from rekindle.documents.commits.snapshot_commit import Snapshot, describe_occasion
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.snapshots import snapshot_names
from rekindle.thresholds.screens import SHORT_COMMIT_CHARACTERS
from rekindle.wiring import open_snapshots
from rekindle.wiring.open_snapshots import SnapshotPlace


@click.command()
@click.argument("agent", required=False)
@json_option
def snapshots(agent: str | None, as_json: bool) -> None:
    """List work-tree snapshots, oldest first, for AGENT or for all agents.

    Rekindle takes a snapshot before each cycle, at each handoff and at the end of each cycle. The
    snapshot contains all files that git does not ignore, whether they are tracked or not. Use
    `rekindle rewind` to restore it.
    """
    start = find_current_folder()
    places = (
        [open_snapshots.find_place(start, agent)] if agent else open_snapshots.list_places(start)
    )
    _refuse_fleet(places[0])
    found = [
        one
        for _, one in open_snapshots.iterate_snapshots(places)
        if agent in {None, one.label.agent}
    ]
    if agent and not found and places[0].project is not None:
        places[0].project.require_agent(agent)
    if as_json:
        print_json({"snapshots": [_make_row(one) for one in found]})
        return
    if not found:
        echo("There is no snapshot yet. The next cycle of an agent takes the first one.")
        return
    width = max(len(one.name) for one in found)
    occasion_width = max(len(describe_occasion(one.label)) for one in found)
    for one in found:
        left_out = len(one.left_out) + one.more_left_out
        echo(
            f"{one.name.ljust(width)}  {render_moment(one.label.at)}  "
            f"{describe_occasion(one.label).ljust(occasion_width)}  "
            f"{describe_head(one)}" + (f"  ({left_out} left out)" if left_out else "")
        )
    echo(f"Next: `rekindle diff {found[-1].name}`, or `rekindle rewind {found[-1].name}`.")


@click.command()
@click.argument("before", metavar="A")
@click.argument("after", metavar="[B]", required=False)
@click.option("--stat", is_flag=True, help="List only the changed files.")
def diff(before: str, after: str | None, stat: bool) -> None:
    """Show what changed between snapshot A and snapshot B, or the current state.

    `rekindle snapshots` prints the names, such as trades/12. A number alone refers to a snapshot of
    the agent that works in the current folder.
    """
    start = find_current_folder()
    place = open_snapshots.find_place(start, snapshot_names.find_agent(before) or None)
    _refuse_fleet(place)
    opened = place.open()
    listed = opened.list()
    agent = snapshot_names.find_agent(before)
    if not agent:
        agent = open_snapshots.choose_snapshot_agent(place, start, listed)
    first = snapshot_names.find_snapshot(listed, before, agent)
    tree = (
        snapshot_names.find_snapshot(listed, after, agent).tree if after else opened.capture_tree()
    )
    text = opened.compare(first.tree, tree, stat=stat)
    if not text:
        echo("No file differs.")
        return
    for line in text.splitlines():
        echo(line)


def describe_head(snapshot: Snapshot) -> str:
    """Describe a snapshot's branch and commit on one line."""
    commit = snapshot.head[:SHORT_COMMIT_CHARACTERS] or "no commit"
    return f"{to_one_line(snapshot.branch) or 'detached HEAD'} {commit}"


def _refuse_fleet(place: SnapshotPlace) -> None:
    if place.project is not None:
        refuse_fleet(place.project)


def _make_row(one: Snapshot) -> dict[str, Any]:
    return {
        "name": one.name,
        "agent": one.label.agent,
        "number": one.number,
        "at": one.label.at,
        "reason": one.label.reason,
        "cycle": one.label.cycle or None,
        "launch": one.label.launch or None,
        "branch": one.branch or None,
        "head": one.head or None,
        "commit": one.commit,
        "left_out": [{"path": left.path, "why": left.why} for left in one.left_out],
        "more_left_out": one.more_left_out,
    }
