"""Run a fleet host. Its workers poll for decisions and for agents to run."""

import asyncio
import contextlib
import logging
import signal
import warnings
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from temporalio.client import Client
from temporalio.runtime import Runtime
from temporalio.worker import FixedSizeSlotSupplier, UnsandboxedWorkflowRunner, Worker, WorkerTuner

from rekindle import __version__
from rekindle.errors import OwnershipError, translate_os_errors
from rekindle.fleet.agent.brief_workflow import BriefWorkflow
from rekindle.fleet.agent.host_orders import DECISION_QUEUE, make_host_queue, make_pool_queue
from rekindle.fleet.agent.workflow import AgentWorkflow
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.fleet.engine.deployments import claim_first, make_deployment_config
from rekindle.fleet.hosts import host_admission
from rekindle.fleet.hosts.activities import Activities, CycleSlots
from rekindle.fleet.hosts.host_metrics import HostMetrics
from rekindle.fleet.hosts.host_processes import EngineClient
from rekindle.fleet.hosts.unused_folders import keep_clean
from rekindle.fleet.pipelines.pipeline_activities import PipelineActivities
from rekindle.fleet.pipelines.pipeline_tasks import make_pipeline_queue
from rekindle.fleet.pipelines.pipeline_workflow import PipelineWorkflow
from rekindle.fleet.schedules.schedule_activities import ScheduleActivities
from rekindle.fleet.schedules.scheduled_workflow import ScheduledRunWorkflow
from rekindle.formats.counts import render_count
from rekindle.policy.settings.runtime_settings import (
    FLEET_LEAVE_SECONDS,
    FLEET_STICKY_SECONDS,
    LOCK_WAIT_SECONDS,
)
from rekindle.system.files import durable_files, file_locks
from rekindle.thresholds.fleet_limits import (
    FLEET_ACTIVITY_POLLS,
    FLEET_BESIDE,
    FLEET_DECISION_POLLS,
    FLEET_PIPELINE_TASKS,
    FLEET_THROTTLE_SECONDS,
)

WORKFLOWS: tuple[type, ...] = (
    AgentWorkflow,
    BriefWorkflow,
    PipelineWorkflow,
    ScheduledRunWorkflow,
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
    build: str = __version__,
    teams: frozenset[str] = frozenset(),
) -> None:
    """Run a host until it receives SIGTERM or SIGINT, then return its agents to the fleet."""
    with translate_os_errors(root):
        root.parent.mkdir(parents=True, exist_ok=True)
    durable_files.make_folder(root)
    with file_locks.hold_lock(root / "worker", LOCK_WAIT_SECONDS) as lock:
        if lock is None:
            raise OwnershipError(
                f"another worker is using {root}", hint="start this worker with another --root"
            )
        await host_admission.require_admission(client)
        await claim_first(client, build)
        runtime = client.service_client.config.runtime or Runtime.default()
        metrics = HostMetrics(runtime.metric_meter, root, host)
        reporting = EngineClient(client, metrics)
        own = Activities(reporting, CycleSlots(slots), root, host, say, teams=teams)
        workers = _make_workers(client, own, host=host, pool=pool, slots=slots, build=build)
        pipelines = PipelineActivities(client, root, host)
        schedules = ScheduleActivities(client, root, host, pipelines.clone)
        workers.insert(1, make_pipeline_worker(client, pipelines, schedules, pool))
        ended = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        # The workers end in reverse order. The host first stops taking agents, and then returns its
        # agents while a worker can still decide what happens to them.
        async with contextlib.AsyncExitStack() as stack:
            for worker in workers:
                await stack.enter_async_context(worker)
            cleaning = asyncio.create_task(keep_clean(AgentClient(client), root, host))
            stack.callback(cleaning.cancel)
            counting = asyncio.create_task(metrics.keep_current(client, slots, own.list_running))
            stack.callback(counting.cancel)
            only = f" of {', '.join(sorted(teams))}" if teams else ""
            say(f"host {host} of pool {pool} takes up to {render_count(slots, 'agent')}{only}")
            await ended.wait()
            say("shutting down; other hosts will continue its agents")


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
    """Return the worker that handles a pool's pipelines and schedules."""
    return Worker(
        client,
        task_queue=make_pipeline_queue(pool),
        workflows=[PipelineWorkflow, ScheduledRunWorkflow],  # those of older versions
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
        workflow_runner=UnsandboxedWorkflowRunner(),
        max_concurrent_activities=FLEET_PIPELINE_TASKS,
        max_concurrent_activity_task_polls=1,
        max_concurrent_workflow_task_polls=FLEET_PIPELINE_TASKS,
        nonsticky_to_sticky_poll_ratio=1 / FLEET_PIPELINE_TASKS,
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=FLEET_STICKY_SECONDS),
        max_heartbeat_throttle_interval=_AT_ONCE,
        default_heartbeat_throttle_interval=_AT_ONCE,
    )


def _make_workers(
    client: Client, own: Activities, *, host: str, pool: str, slots: int, build: str
) -> list[Worker]:
    """Return the workers for decisions, for this host's own queue and for the pool's queue."""
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
        make_deciding_worker(client, *WORKFLOWS, build=build),
        Worker(
            client,
            task_queue=make_host_queue(host),
            activities=[own.run_cycle, own.write_brief, own.hear, own.give_back],
            max_concurrent_activities=slots + FLEET_BESIDE,
            max_concurrent_activity_task_polls=FLEET_ACTIVITY_POLLS,
            # Do not throttle, because `activities` sends heartbeats at each agent's own interval.
            max_heartbeat_throttle_interval=_AT_ONCE,
            default_heartbeat_throttle_interval=_AT_ONCE,
            graceful_shutdown_timeout=leave,
        ),
        Worker(
            client,
            task_queue=make_pool_queue(pool),
            activities=[own.offer, own.notify],
            tuner=tuner,
            max_concurrent_activity_task_polls=1,
        ),
    ]
