"""Run a fleet host. Its workers poll for decisions and for agents to run."""

import asyncio
import contextlib
import logging
import signal
import warnings
from collections.abc import Callable, Coroutine
from datetime import timedelta
from pathlib import Path

from temporalio.client import Client
from temporalio.runtime import Runtime
from temporalio.worker import FixedSizeSlotSupplier, UnsandboxedWorkflowRunner, Worker, WorkerTuner

from rekindle import __version__
from rekindle.errors import OwnershipError, translate_os_errors
from rekindle.fleet.agent.host_orders import (
    DECISION_QUEUE,
    HostReport,
    make_host_queue,
    make_pool_queue,
)
from rekindle.fleet.agent.host_workflow import HostWorkflow
from rekindle.fleet.agent.workflow import AgentWorkflow
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.fleet.engine.deployments import claim_first, make_deployment_config
from rekindle.fleet.hosts import host_admission
from rekindle.fleet.hosts.activities import Activities
from rekindle.fleet.hosts.build_watch import watch_builds
from rekindle.fleet.hosts.cycle_slots import CycleSlots
from rekindle.fleet.hosts.health_server import WorkerHealth
from rekindle.fleet.hosts.host_metrics import HostMetrics
from rekindle.fleet.hosts.host_presence import HostPresence
from rekindle.fleet.hosts.host_processes import EngineClient
from rekindle.fleet.hosts.unused_folders import keep_clean
from rekindle.fleet.pipelines.pipeline_activities import PipelineActivities
from rekindle.fleet.pipelines.pipeline_tasks import make_pipeline_queue
from rekindle.fleet.pipelines.pipeline_workflow import PipelineWorkflow
from rekindle.fleet.schedules.schedule_activities import ScheduleActivities
from rekindle.fleet.schedules.scheduled_workflow import ScheduledRunWorkflow
from rekindle.fleet.teams.team_workflow import TeamWorkflow
from rekindle.formats.counts import render_count
from rekindle.formats.json_codec import hash_bytes
from rekindle.policy.sandbox.host_floor import render_floor
from rekindle.policy.sandbox.profile import SandboxFloor
from rekindle.policy.settings.runtime_settings import (
    FLEET_LEAVE_SECONDS,
    FLEET_STICKY_SECONDS,
    LOCK_WAIT_SECONDS,
)
from rekindle.system.files import durable_files, file_locks
from rekindle.system.host import identify_host
from rekindle.thresholds.fleet_limits import (
    FLEET_ACTIVITY_POLLS,
    FLEET_BESIDE,
    FLEET_DECISION_POLLS,
    FLEET_PIPELINE_TASKS,
    FLEET_THROTTLE_SECONDS,
)

WORKFLOWS: tuple[type, ...] = (
    AgentWorkflow,
    HostWorkflow,
    PipelineWorkflow,
    ScheduledRunWorkflow,
    TeamWorkflow,
)
_AT_ONCE = timedelta(seconds=FLEET_THROTTLE_SECONDS)


async def run_host(
    client: Client,
    *,
    host: str,
    pool: str,
    slots: int,
    root: Path,
    say: Callable[[str], None],
    heartbeat_seconds: float,
    drain_seconds: float = 0.0,
    build: str = __version__,
    teams: frozenset[str] = frozenset(),
    floor: SandboxFloor | None = None,
    credentials: str = "",
    decides: bool = True,
    health: WorkerHealth | None = None,
) -> None:
    """Run a host until it receives SIGTERM or SIGINT, then return its agents to the fleet.

    With `drain_seconds`, the host first finishes its running cycles, for at most this long.
    """
    with translate_os_errors(root):
        root.parent.mkdir(parents=True, exist_ok=True)
    durable_files.make_folder(root)
    with file_locks.hold_lock(root / "worker", LOCK_WAIT_SECONDS) as lock:
        if lock is None:
            raise OwnershipError(
                f"another worker is using {root}", hint="start this worker with another --root"
            )
        await host_admission.require_admission(client)
        if decides:
            await claim_first(client, build)
        runtime = client.service_client.config.runtime or Runtime.default()
        metrics = HostMetrics(runtime.metric_meter, root, host)
        reporting = EngineClient(client, metrics)
        about = HostReport(
            beat=0,
            host=host,
            place=identify_place(root),
            pool=pool,
            slots=slots,
            build=build,
            heartbeat_seconds=heartbeat_seconds,
            sandbox=render_floor(floor),
        )
        presence = HostPresence(client, about, say)
        own = Activities(
            reporting,
            presence,
            CycleSlots(slots),
            root=root,
            host=host,
            say=say,
            teams=teams,
            floor=floor,
            credentials=credentials,
        )
        *workers, offering = _make_workers(client, own, presence, about)
        pipelines = PipelineActivities(client, root, host, floor)
        schedules = ScheduleActivities(client, root, host, pipelines.clone, floor)
        workers.insert(0, make_pipeline_worker(client, pipelines, schedules, pool))
        if decides:
            workers.insert(0, make_deciding_worker(client, *WORKFLOWS, build=build))
        stopping = StopRequests()
        # The workers end in reverse order. The host first stops taking agents, and then returns its
        # agents while a worker can still decide what happens to them.
        async with contextlib.AsyncExitStack() as stack:
            for worker in workers:
                await stack.enter_async_context(worker)
            keeping = asyncio.create_task(presence.keep())
            stack.callback(keeping.cancel)
            stack.callback(presence.leave)
            _run_beside(stack, keep_clean(AgentClient(client), root, host))
            _run_beside(stack, metrics.keep_current(client, slots, own.list_running))
            if decides:
                _run_beside(stack, watch_builds(client, build, say))
            if not await stopping.wait_for(presence.is_ready, keeping):
                return
            async with offering, (health or WorkerHealth()).polling(client, host):
                only = f" of {', '.join(sorted(teams))}" if teams else ""
                takes = f"takes up to {render_count(slots, 'agent')}{only}"
                say(f"host {host} of pool {pool} {takes} ({about.sandbox})")
                await stopping.wait_for(own.drain, keeping)
                if drain_seconds and not own.drain.is_set():
                    own.start_draining(drain_seconds)
            if own.drain.is_set():
                say(f"draining: finishing {render_count(presence.leases, 'cycle')}")
                await stopping.wait_again(own.wait_for_sessions(own.drain_seconds), keeping)
            say("shutting down; other hosts will continue its agents")
            await own.end_sessions()
            if keeping.done():
                keeping.result()


def _run_beside(stack: contextlib.AsyncExitStack, work: Coroutine[None, None, None]) -> None:
    """Run a task until the host's workers end."""
    stack.callback(asyncio.create_task(work).cancel)


class StopRequests:
    """SIGTERM and SIGINT: the first one stops the host, and the second one stops waiting."""

    def __init__(self) -> None:
        self._first, self._second = asyncio.Event(), asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._receive)

    def _receive(self) -> None:
        (self._second if self._first.is_set() else self._first).set()

    async def wait(self) -> None:
        """Wait for the first signal."""
        await self._first.wait()

    async def wait_for(self, event: asyncio.Event, keeping: "asyncio.Task[None]") -> bool:
        """Wait for an event or the first signal, and return whether the event came first.

        If the task that keeps the host alive fails, raise its error.
        """
        waits = [asyncio.create_task(one.wait()) for one in (event, self._first)]
        await asyncio.wait({*waits, keeping}, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        if keeping.done():
            keeping.result()
        return event.is_set()

    async def wait_again(
        self, work: Coroutine[None, None, None], keeping: "asyncio.Task[None]"
    ) -> None:
        """Wait until the work is done, a second signal arrives, or the heartbeats have failed."""
        waits = [asyncio.create_task(work), asyncio.create_task(self._second.wait())]
        await asyncio.wait({*waits, keeping}, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()


def identify_place(root: Path) -> str:
    """Return an id for this machine and the worker's folder on it."""
    return hash_bytes(f"{identify_host()} {root}".encode())[:16]


def make_deciding_worker(client: Client, *workflows: type, build: str = __version__) -> Worker:
    """Return the worker that makes the decisions for all workflows of a build."""
    return Worker(
        client,
        task_queue=DECISION_QUEUE,
        workflows=workflows,
        deployment_config=make_deployment_config(build),
        # The sandbox would double the cost of loading an agent, and when a host dies, all of its
        # agents are loaded at the same time. The tests run `workflow.py` in the sandbox, which
        # detects any use of clocks or randomness. Import rules exclude both from policy and
        # documents.
        workflow_runner=UnsandboxedWorkflowRunner(),
        # A task that a frozen worker has polled is delayed. Therefore, use only one poll at a time
        # for agents that are not in this worker's cache.
        max_concurrent_workflow_task_polls=FLEET_DECISION_POLLS,
        nonsticky_to_sticky_poll_ratio=1 / FLEET_DECISION_POLLS,
        # More concurrent tasks would only delay each other, because they share one processor.
        max_concurrent_workflow_tasks=FLEET_DECISION_POLLS,
        # If a worker dies, its cached agents must not wait long for another worker.
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=FLEET_STICKY_SECONDS),
    )


def make_pipeline_worker(
    client: Client, own: PipelineActivities, schedules: ScheduleActivities, pool: str
) -> Worker:
    """Return the worker that does a pool's tasks for pipelines and schedules."""
    return Worker(
        client,
        task_queue=make_pipeline_queue(pool),
        activities=[
            own.begin_worker,
            own.check_worker,
            own.stop_worker,
            own.find_items,
            own.merge_commits,
            own.ask_person,
            own.find_merge,
            own.end_run,
            schedules.start_due,
            schedules.report_outcomes,
        ],
        max_concurrent_activities=FLEET_PIPELINE_TASKS,
        max_concurrent_activity_task_polls=1,
        max_heartbeat_throttle_interval=_AT_ONCE,
        default_heartbeat_throttle_interval=_AT_ONCE,
    )


def _make_workers(
    client: Client, own: Activities, presence: HostPresence, about: HostReport
) -> list[Worker]:
    """Return the workers for this host's own queue and for the pool's queue."""
    # Rekindle reports an agent's problem on one line. The SDK would log a traceback.
    logging.getLogger("temporalio").setLevel(logging.ERROR)
    # The SDK warns if an activity had already ended when it was cancelled.
    warnings.filterwarnings("ignore", "Cannot find activity to cancel", UserWarning)
    leave = timedelta(seconds=FLEET_LEAVE_SECONDS)
    usual = FixedSizeSlotSupplier(FLEET_BESIDE)
    tuner = WorkerTuner.create_composite(
        workflow_supplier=usual,
        activity_supplier=own.slots,
        local_activity_supplier=usual,
        nexus_supplier=usual,
    )
    return [
        Worker(
            client,
            task_queue=make_host_queue(about.host),
            activities=[
                presence.attend,
                own.begin_cycle,
                own.drop_lease,
                own.drain_host,
                own.write_brief,
                own.hear,
            ],
            max_concurrent_activities=about.slots + FLEET_BESIDE,
            max_concurrent_activity_task_polls=FLEET_ACTIVITY_POLLS,
            # Do not throttle, because `activities` sends heartbeats at each agent's own interval.
            max_heartbeat_throttle_interval=_AT_ONCE,
            default_heartbeat_throttle_interval=_AT_ONCE,
            graceful_shutdown_timeout=leave,
        ),
        Worker(
            client,
            task_queue=make_pool_queue(about.pool),
            activities=[own.offer, own.notify],
            tuner=tuner,
            max_concurrent_activity_task_polls=1,
        ),
    ]
