"""Start a scheduled agent, and find out what prevents a start."""

from datetime import datetime

import msgspec

from rekindle.config import Project
from rekindle.errors import RekindleError
from rekindle.policy.schedules.decide_run import RunFacts
from rekindle.policy.schedules.schedule_record import PendingRun
from rekindle.policy.settings.runtime_settings import find_cycle_limit
from rekindle.policy.supervision import run_moves, watchdog_table
from rekindle.policy.supervision.run_moves import TAMPERED_REASON
from rekindle.policy.supervision.watchdog_table import WatchFacts
from rekindle.stores.files import FileStore
from rekindle.system import clock
from rekindle.wiring.access import trust_checks
from rekindle.wiring.starting import background_start
from rekindle.wiring.starting.start_checks import refuse_obstacles


def start_agent(project: Project, store: FileStore, name: str, due: datetime) -> None:
    """Record that the agent should run, like `up`. The watchdog then starts its supervisor.

    The command contains the due time, so that the log shows whether this run was started.
    """
    store.create(name)
    run = store.read(name).projection.run
    cycles = find_cycle_limit(project.manifest.agents[name])
    store.submit(
        name,
        run_moves.make_desired_event(
            run, "running", clock.read_clock(), cycles, unbounded=False, due=due
        ),
    )


def inspect_agent(
    project: Project, store: FileStore, name: str, pending: PendingRun | None
) -> RunFacts:
    """Return whether the agent is running, and why it cannot be started."""
    if name not in project.manifest.agents:
        return RunFacts(obstacle="rekindle.yaml does not contain the agent any more")
    if not store.exists(name):
        return _find_refusal(project, name)
    projection = store.read(name).projection
    run = projection.run
    is_running = store.is_supervised(name) or (run.desired == "running" and not run.is_over)
    facts = _find_refusal(project, name)
    if run.desired == "stopped":
        facts = RunFacts(obstacle=f"you stopped the agent; `rekindle up {name}` starts it again")
    elif not facts.obstacle and not is_running:
        stays = project.manifest.agents[name].mode == "stay"
        watched = WatchFacts(
            supervised=False,
            desired="running",
            is_tampered=run.is_safe and run.safe.why == TAMPERED_REASON,
            may_miss_stop=projection.may_miss_stop,
            stays=stays and not background_start.is_in_window(store, name),
        )
        row = watchdog_table.decide_start(watched)
        facts = RunFacts(obstacle="" if row.starts else row.words)
    return msgspec.structs.replace(
        facts,
        is_running=is_running,
        has_started=pending is not None
        and run.scheduled is not None
        and run.scheduled.due == pending.due,
    )


def _find_refusal(project: Project, name: str) -> RunFacts:
    """Return whether the agent's settings allow a start."""
    try:
        trust_checks.require_accepted(project, name)
        refuse_obstacles(project, name)
    except RekindleError as error:
        return RunFacts(obstacle=str(error), hint=error.hint)
    return RunFacts()
