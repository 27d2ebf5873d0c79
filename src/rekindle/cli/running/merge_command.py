"""`rekindle merge` and `rekindle clean`: merge an agent's work, or remove its checkout."""

import click

from rekindle.cli.options import json_option, open_files, require_operator
from rekindle.cli.output import echo, print_json
from rekindle.config import Project
from rekindle.errors import MergeConflictError, OwnershipError
from rekindle.formats.counts import render_count
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.projection import open_loops
from rekindle.stores.files import FileStore
from rekindle.system import clock
from rekindle.wiring import merge_work
from rekindle.wiring.merge_work import WorkMerge
from rekindle.wiring.running_agents import RunningAgents
from rekindle.wiring.save_work import save_for_removal

_LOOP = "merge-conflict"


@click.command()
@click.argument("agent", required=False)
@click.option("--check", is_flag=True, help="Show the changes or conflicts without merging.")
@click.option(
    "--ask-agent", is_flag=True, help="If there is a conflict, ask the agent to resolve it."
)
@json_option
def merge(agent: str | None, check: bool, ask_agent: bool, as_json: bool) -> None:
    """Merge the work from AGENT's own clone or work tree into your branch.

    The merge includes the agent's uncommitted files, unless the agent is working right now. If
    there is a conflict, your checkout does not change.
    """
    project, store, name = open_files(agent)
    require_operator(project)
    planned = merge_work.plan_merge(project, name)
    if planned.is_needed and not check:
        if not planned.conflicts:
            merge_work.bring_in(project, planned)
        merge_work.commit_work(project, planned)
    if as_json:
        print_json(_make_row(planned, is_merged=not check and not planned.conflicts))
    if planned.conflicts and planned.is_needed:
        if ask_agent:
            _ask_agent(store, planned)
        raise _make_conflict(planned, is_asked=ask_agent)
    if not as_json:
        _print_merge(planned, check=check)


@click.command()
@click.argument("agents", nargs=-1, required=True, metavar="AGENT...")
def clean(agents: tuple[str, ...]) -> None:
    """Remove each AGENT's own clone or work tree, after saving the work in your repository.

    Commits stay on the agent's branch, and uncommitted files are saved in a snapshot. If you start
    the agent again, it continues from there.
    """
    project, _, _ = open_files(agents[0])
    require_operator(project)
    for name in dict.fromkeys(agents):
        _clean(project, project.require_agent(name))


def _clean(project: Project, name: str) -> None:
    workspace = merge_work.require_workspace(project, name)
    if name in RunningAgents().find(project.path):
        raise OwnershipError(
            f"{name} is working in {workspace.folder}", hint=f"stop it: `rekindle stop {name}`"
        )
    saved = save_for_removal(workspace)
    workspace.remove()
    echo(f"✓ removed {workspace.folder}")
    echo(f"· its commits are on {workspace.checkout.branch}, its files in snapshot {saved}")


def _print_merge(planned: WorkMerge, *, check: bool) -> None:
    if not planned.is_needed:
        echo(f"Nothing to merge: {planned.target} has all work of {planned.agent}.")
        return
    for line in planned.stat.splitlines():
        echo(line)
    counts = ((planned.commits, "commit"), (planned.uncommitted, "uncommitted file"))
    what = " and ".join(render_count(number, noun) for number, noun in counts if number)
    did = f"· {what} of {planned.agent} can be merged" if check else f"✓ merged {what}"
    echo(f"{did} into {planned.target}")
    if planned.is_working:
        echo(f"· {planned.agent} is working: files that it has not committed are not included")


def _ask_agent(store: FileStore, planned: WorkMerge) -> None:
    """Open a loop for the agent, so that its next cycle resolves the conflict."""
    text = (
        f"Merge {planned.source} into {planned.branch}, resolve the conflicts in"
        f" {', '.join(map(to_one_line, planned.conflicts))}, and commit."
    )
    known = store.read(planned.agent).projection.loops
    event = open_loops.propose_loop(known, _LOOP, store.redaction.text(text), clock.read_clock())
    if event is not None:
        store.submit(planned.agent, event)


def _make_conflict(planned: WorkMerge, *, is_asked: bool) -> MergeConflictError:
    asks = f"its next cycle resolves them: `rekindle up {planned.agent}`"
    offers = f"let the agent resolve them: `rekindle merge {planned.agent} --ask-agent`"
    return MergeConflictError(
        planned.branch,
        planned.target,
        tuple(map(to_one_line, planned.conflicts)),
        hint=asks if is_asked else f"resolve them with `git merge {planned.branch}`, or {offers}",
    )


def _make_row(planned: WorkMerge, *, is_merged: bool) -> dict[str, object]:
    return {
        "agent": planned.agent,
        "branch": planned.branch,
        "target": planned.target,
        "commits": planned.commits,
        "uncommitted": planned.uncommitted,
        "is_working": planned.is_working,
        "is_merged": is_merged and planned.is_needed,
        "commit": planned.commit or None,
        "conflicts": list(planned.conflicts),
    }
