"""Run a fleet agent's cycle in a separate process, using the same flow as on a single host.

The process commits events through its worker, and exits when the worker does. It has no threads,
because a process that forks to start programs must not have any.
"""

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.connection import Connection

from rekindle.errors import OwnershipError, RekindleError, SupervisedError
from rekindle.fleet.agent.host_orders import HostOrder, HostResult
from rekindle.fleet.hosts.host_folder import HostFolder
from rekindle.fleet.hosts.host_messages import ProcessFailure
from rekindle.fleet.hosts.hosted_agent import HostedAgent
from rekindle.flows.supervision.supervisor_steps import SupervisorSteps
from rekindle.policy.exits.restart import WaitUntil
from rekindle.policy.exits.session_choice import ResumeSession, StartFresh, choose_session
from rekindle.policy.fleet.scheduled_run import FLEET_ZONE
from rekindle.policy.projection.sessions import select_cycle_launches
from rekindle.policy.settings.runtime_settings import STOP_SECONDS, FleetSettings
from rekindle.policy.supervision.next_move import select_open_launches
from rekindle.policy.supervision.run_moves import CloseCycle, HandOff
from rekindle.system.processes import stop_signals
from rekindle.system.processes.child_processes import Interruption
from rekindle.thresholds.fleet_limits import FLEET_INBOX_SECONDS
from rekindle.wiring import brief_setup
from rekindle.wiring import supervisor_setup as wiring


def run_cycle(order: HostOrder, place: HostFolder, line: Connection) -> None:
    """Run one cycle, or as many of its steps as possible without waiting."""
    _prepare_process()

    def run_steps() -> HostResult:
        # Take the lock before copying anything to this host, because the previous lease's process
        # may still be shutting down.
        with place.supervising(STOP_SECONDS) as is_alone:
            if not is_alone:
                raise SupervisedError(order.agent)
            return _run_steps(HostedAgent(order, place, line), order, interruption)

    with Interruption() as interruption:
        _send_result(line, run_steps)


def write_brief(order: HostOrder, place: HostFolder, line: Connection) -> None:
    _prepare_process()

    def write_new_brief() -> HostResult:
        with place.supervising(0) as is_alone:
            here = HostedAgent(order, place, line, beside=not is_alone)
        store = here.open_replica()  # a brief does not change the workspace
        writer = brief_setup.make_brief_writer(
            here.project, store, order.agent, by_hand=False, default_zone=FLEET_ZONE
        )
        writer.write(writer.due())
        return HostResult(store.read(order.agent).committed.seq)

    _send_result(line, write_new_brief)


def _run_steps(here: HostedAgent, order: HostOrder, interruption: Interruption) -> HostResult:
    store = here.store()
    here.require_own_workspace()
    steps = wiring.make_steps(
        here.project,
        store,
        order.agent,
        here.tell,
        interruption,
        fold_every=FLEET_INBOX_SECONDS,
        reports_wait=float((here.project.settings.fleet or FleetSettings()).fold_seconds),
    )
    # Until the launch's end is recorded, the engine cannot know which wait applies.
    is_first = all(launch.exit for launch in select_open_launches(steps.log.known()))
    steps.cycle.settle()
    try:
        while not interruption.count and _run_step(steps, is_first=is_first):
            is_first = False
    finally:
        steps.cycle.end_kept_processes()  # another host may run the next cycle
        steps.cycle.note_spending()
        steps.cycle.snapshots.finish()
    return HostResult(steps.log.known().seq, is_leaving=bool(interruption.count))


def _run_step(steps: SupervisorSteps, *, is_first: bool) -> bool:
    """Take one step. Return False if the cycle ended or the engine must decide the next step."""
    projection = steps.log.known()
    move = steps.decide(projection)
    if is_first and isinstance(move, WaitUntil):
        # The engine waited before it granted the lease, so this host's clock must be slow.
        move = choose_session(select_open_launches(projection))
    match move:
        case StartFresh() | ResumeSession() as step:
            steps.launch(step, projection)
            return True
        case HandOff():
            halts = steps.hand_off_session(
                select_cycle_launches(projection.attempts, projection.current_cycle)
            )
            if halts is not None:
                steps.enter_safe_mode(projection.current_cycle, halts)
            return halts is None
        case CloseCycle():
            steps.end(projection.current_cycle)
    return False


def _send_result(line: Connection, work: Callable[[], HostResult]) -> None:
    """Send the result to the worker. If the worker is gone, the engine detects that itself."""
    try:
        result: HostResult | ProcessFailure = work()
    except RekindleError as error:
        result = ProcessFailure(str(error), error.hint, isinstance(error, OwnershipError))
    except Exception as error:  # noqa: BLE001 - reports a bug to the worker
        result = ProcessFailure(f"a bug in Rekindle: {type(error).__name__}: {error}")
    try:
        line.send(result)
    except OSError:
        raise SystemExit(1) from None


def _prepare_process() -> None:
    """Leave the worker's process group, and exit when the worker does.

    Keys pressed in the worker's terminal must not reach the agent. The parent of this process is
    not the worker but the fork server, which runs as long as any of its children does.
    """
    os.setpgid(0, 0)
    worker = multiprocessing.parent_process()
    if worker is not None:
        stop_signals.end_with_pipe(worker.sentinel)
