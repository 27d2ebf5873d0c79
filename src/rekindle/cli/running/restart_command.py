"""`rekindle restart`: restart agents now."""

from collections.abc import Mapping
from typing import Literal

import click

from rekindle import config
from rekindle.cli.options import (
    accept_log,
    find_current_folder,
    json_option,
    open_store_of,
    require_operator,
    resolve_agent,
)
from rekindle.cli.output import echo, print_json
from rekindle.cli.trust_prompt import (
    ensure_trust,
    print_changes,
    trust_option,
)
from rekindle.config import Project
from rekindle.documents.events import RestartRequested
from rekindle.errors import (
    RekindleError,
)
from rekindle.policy.supervision import run_moves as policy
from rekindle.stores.files import FileStore
from rekindle.system import (
    clock,
)
from rekindle.wiring.access.trust_checks import (
    accept_settings,
)

_Restart = Literal["supervised", "unsupervised", "new", "done", "stopped"]
"""Result of a restart request: whether the agent has a supervisor, or why it cannot be
restarted.
"""
_NOTHING_TO_RESTART: dict[_Restart, str] = {
    "new": "it was never started",
    "done": "its work is done",
    "stopped": "you stopped it",
}


@click.command()
@click.argument("agents", nargs=-1)
@click.option("--fresh", is_flag=True, help="Start a fresh session instead of resuming.")
@trust_option
@json_option
def restart(agents: tuple[str, ...], fresh: bool, trust: bool, as_json: bool) -> None:
    """Restart AGENTS now, whether they are in safe mode, waiting or working.

    The run's earlier spending still counts toward its budget. If the run was over, a new run starts
    with its spending at zero. If an agent is stopped or its work is done, use `run` or `up`
    instead.
    """
    project = config.load_project(find_current_folder())
    require_operator(project)
    named = [project.require_agent(name) for name in dict.fromkeys(agents)]
    names = named or [resolve_agent(project, None)]
    ensure_trust(project, trust=trust)
    restarted: dict[str, _Restart] = {}
    failed = []
    for name in names:
        try:
            restarted[name] = _request_restart(project, name, fresh=fresh)
        except RekindleError as error:
            failed.append(error)
    _print_restarted(restarted, as_json=as_json, is_list=len(names) > 1, fresh=fresh)
    for other in failed[1:]:
        echo(f"Error: {other}", err=True)
    if failed:
        raise failed[0]


def _request_restart(project: Project, name: str, *, fresh: bool) -> _Restart:
    """Request a restart of an agent, and return the expected result."""
    # The operator must accept the connection settings first.
    if project.settings.fleet is not None:
        print_changes(name, accept_settings(project, name))
    store = open_store_of(project)
    accept_log(store, name)
    idle = None
    if isinstance(store, FileStore):
        idle = _find_nothing_to_restart(store, name, fresh=fresh)
    if not idle:
        store.create(name)
    if isinstance(store, FileStore):
        from rekindle.wiring.supervisor_setup import check_settings  # noqa: PLC0415 - `stop` must start fast

        check_settings(project, store, name)
    print_changes(name, accept_settings(project, name))
    if idle:
        return idle
    store.prepare_start(name, fresh=fresh)
    now, run = clock.read_clock(), store.read(name).projection.run
    store.submit(
        name, RestartRequested(ts=now, fresh=fresh), policy.make_desired_event(run, "running", now)
    )
    return "supervised" if store.is_supervised(name) else "unsupervised"


def _find_nothing_to_restart(
    store: FileStore, name: str, *, fresh: bool
) -> Literal["new", "done", "stopped"] | None:
    """Return why the agent cannot be restarted, or None if it can."""
    if store.is_supervised(name):
        return None
    projection = store.read(name).projection if store.exists(name) else None
    if projection is None or (projection.run.command is None and not projection.attempts):
        return "new"
    if policy.is_done(projection.run):
        return "done"
    run = projection.run
    holds = run.is_safe or run.is_over or (run.waiting and run.waiting.seq > run.since)
    # A restart of a stopped agent still ends safe mode or a wait, and can choose a fresh session.
    return "stopped" if run.desired == "stopped" and not (holds or fresh) else None


def _print_restarted(
    restarted: Mapping[str, _Restart], *, as_json: bool, is_list: bool, fresh: bool
) -> None:
    """Print what will happen to each agent."""
    if as_json:
        rows = [
            {
                "agent": name,
                "desired": None if state in _NOTHING_TO_RESTART else "running",
                "supervised": state == "supervised",
            }
            for name, state in restarted.items()
        ]
        for row in [{"agents": rows}] if is_list else rows:
            print_json(row)
        return
    how = " in a fresh session" if fresh else ""
    for name, state in restarted.items():
        if state == "supervised":
            echo(f"✓ {name}: will be started again{how}")
            continue
        if state in _NOTHING_TO_RESTART:
            echo(f"· {name}: nothing is running: {_NOTHING_TO_RESTART[state]}")
        else:
            echo(f"✓ {name}: nothing is running; a watchdog may start it again{how}")
        echo(f"Next: `rekindle run {name}`, or `rekindle up {name}` to run it in the background.")
