"""Restart agents that are in safe mode, waiting or working."""

from collections.abc import Callable
from typing import Literal

from rekindle.api.agent_store import AgentStore
from rekindle.api.operator import Operator
from rekindle.config import Project
from rekindle.documents.events import RestartRequested
from rekindle.policy.supervision import run_moves as policy
from rekindle.stores.files import FileStore
from rekindle.system import clock

NothingToRestart = Literal["new", "done", "stopped"]
RestartResult = Literal["supervised", "unsupervised"] | NothingToRestart
"""Result of a restart request: whether the agent has a supervisor, or why it cannot be
restarted.
"""


def request_restart(
    project: Project,
    open_store: Callable[[], AgentStore],
    name: str,
    operator: Operator,
    *,
    fresh: bool,
) -> RestartResult:
    """Request a restart of an agent, and return the expected result."""
    # The operator must accept the connection settings before the store is opened.
    if project.settings.fleet is not None:
        operator.accept_settings(project, name)
    store = open_store()
    operator.accept_log(store, name)
    idle = None
    if isinstance(store, FileStore):
        idle = _find_nothing_to_restart(store, name, fresh=fresh)
    if not idle:
        store.create(name)
    if isinstance(store, FileStore):
        from rekindle.wiring.supervisor_setup import check_settings  # noqa: PLC0415 - `stop` must start fast

        check_settings(project, store, name)
    operator.accept_settings(project, name)
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
) -> NothingToRestart | None:
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
