"""Hosts that only send heartbeats; the engine's client counts what it sends."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from temporalio import activity
from temporalio.client import Client
from temporalio.runtime import MetricBuffer, Runtime, TelemetryConfig
from temporalio.worker import Worker

from fleet.bare import BeatingWorkflow
from fleet.deciding import deciding
from fleet.pace import HOST
from rekindle.fleet.agent.host_orders import DECISION_QUEUE, make_host_queue
from rekindle.fleet.engine.payload_converter import make_data_converter
from rekindle.policy.settings.runtime_settings import FLEET_BEAT_SHARE


class Beating:
    """A number of activities that send heartbeats at the interval of this timeout."""

    def __init__(self, number: int, timeout: float) -> None:
        self.number, self.timeout = number, timeout
        self.interval = timeout * FLEET_BEAT_SHARE
        self.begun = 0
        """Number of activities that began, with those that began again after a timeout."""
        self._counted = MetricBuffer(100_000)
        self._all_run, self._ends = asyncio.Event(), asyncio.Event()
        self._client: Client | None = None
        self._names = [f"beating-{one}" for one in range(number)]

    @asynccontextmanager
    async def working(self, address: str) -> AsyncIterator[None]:
        """Run the workers; nothing is sent before `start`."""
        self._client = client = await Client.connect(
            address,
            data_converter=make_data_converter(()),
            runtime=Runtime(telemetry=TelemetryConfig(metrics=self._counted)),
        )
        throttle = timedelta(seconds=self.interval)
        running = Worker(
            client,
            task_queue=make_host_queue(HOST),
            activities=[self.beats],
            max_concurrent_activities=self.number,
            max_heartbeat_throttle_interval=throttle,
            default_heartbeat_throttle_interval=throttle,
        )
        async with running, deciding(client, BeatingWorkflow):
            yield
            for name in self._names:
                await client.get_workflow_handle(name).terminate()
            self._ends.set()

    async def start(self) -> None:
        """Start all of them, and return one interval after the last has begun."""
        assert self._client is not None, "no worker runs"
        for name in self._names:
            await self._client.start_workflow(
                BeatingWorkflow.run,
                args=[make_host_queue(HOST), self.timeout],
                id=name,
                task_queue=DECISION_QUEUE,
            )
        await asyncio.wait_for(self._all_run.wait(), 120)
        await asyncio.sleep(self.interval)

    def take_sent(self) -> int:
        """Return the number of heartbeats that the client has sent since the last call."""
        return sum(
            int(one.value)
            for one in self._counted.retrieve_updates()
            if one.metric.name == "temporal_request"
            and one.attributes.get("operation") == "RecordActivityTaskHeartbeat"
        )

    @activity.defn(name="beats")
    async def beats(self) -> None:
        self.begun += 1
        if self.begun == self.number:
            self._all_run.set()
        while not self._ends.is_set():
            activity.heartbeat()
            await asyncio.sleep(self.timeout / 8)
