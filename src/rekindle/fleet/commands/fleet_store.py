"""Store that gives commands access to a fleet's agents, like the file store on a single host."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from temporalio.service import RPCError

from rekindle.config import Project
from rekindle.documents import events
from rekindle.documents.events import AnyEvent, Event
from rekindle.errors import EngineError, OwnershipError, RekindleError, UsageError
from rekindle.fleet.commands.define_agent import define_agent, publish_workspace
from rekindle.fleet.engine import deployments, queue_pollers, run_schedules
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.fleet.engine.agent_list import ListedAgent
from rekindle.fleet.engine.connect import connect
from rekindle.fleet.teams.refused_offers import explain_refused_offer
from rekindle.policy.fleet import agent_registry
from rekindle.policy.fleet.agent_registry import RegisteredAgent
from rekindle.policy.fleet.fleet_builds import explain_abandoned
from rekindle.policy.operator.command_authors import sign_command
from rekindle.policy.projection.projection import Projection
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.settings.runtime_settings import POLL_SECONDS, FleetSettings
from rekindle.policy.supervision import run_moves as runs
from rekindle.stores.log.event_log import LogEntry
from rekindle.stores.log.view import AgentView
from rekindle.system import clock, host
from rekindle.thresholds.fleet_limits import FLEET_GLANCE_SECONDS
from rekindle.wiring.open_store import open_store

_GLANCE = timedelta(seconds=FLEET_GLANCE_SECONDS)
T = TypeVar("T")


class FleetStore:
    """Connection to the engine for a single command. Every call queries the engine."""

    def __init__(
        self,
        project: Project,
        fleet: FleetSettings,
        environ: Mapping[str, str],
        say: Callable[[str], None],
    ) -> None:
        self.redaction = Redaction(tuple(project.manifest.redact.allow))
        self._project, self._fleet, self._environ = project, fleet, environ
        self._say = say
        self._runner = asyncio.Runner()
        self._agents: AgentClient | None = None

    @property
    def agents(self) -> AgentClient:
        """Return the client. It connects on first use."""
        if self._agents is None:
            connecting = connect(self._fleet, self._project.path, self._environ)
            self._agents = AgentClient(self.wait_for(connecting))
        return self._agents

    def wait_for(self, answer: Coroutine[Any, Any, T]) -> T:
        try:
            return self._runner.run(answer)
        except RPCError as failed:
            raise EngineError(
                "unreachable",
                f"the request to the engine at {self._fleet.address} failed: {failed.message}",
                hint="`rekindle doctor` checks the connection",
            ) from failed

    def close(self) -> None:
        self._runner.close()

    def exists(self, agent: str) -> bool:
        return self.wait_for(self.agents.is_there(agent))

    def create(self, agent: str) -> None:
        """Raise NotOnFleetError if the agent is missing. Only `run` and `import` create agents."""
        self.kept(agent)

    def kept(self, agent: str) -> RegisteredAgent:
        return self.wait_for(self.agents.kept(agent))

    def explain_silence(self, error: RekindleError, build: str) -> RekindleError:
        """Return a better error if an agent did not answer because no worker runs its build."""
        if not isinstance(error, EngineError) or error.cause != "unanswered":
            return error
        builds = self.wait_for(deployments.read_builds(self.agents.client))
        problems = explain_abandoned(builds, only=build or builds.current)
        return (
            EngineError(error.cause, problems[0].what, hint=problems[0].fix) if problems else error
        )

    def listed(self, only: Sequence[str] = ()) -> dict[str, ListedAgent]:
        """Return all agents, or `only` the named ones, in a single request that needs no worker."""
        agents = self.agents

        async def read_list() -> dict[str, ListedAgent]:
            return {agent.agent: agent async for agent in agents.listed(only)}

        return self.wait_for(read_list())

    def read(self, agent: str) -> AgentView:
        return make_view(self.kept(agent))

    def submit(self, agent: str, *records: Event, take_over: bool = False) -> bool:
        if take_over:
            raise UsageError("the fleet decides which host runs an agent", hint="omit --take-over")
        author = host.identify_author()
        cleaned = [sign_command(self.redaction.event(record), author) for record in records]
        self.wait_for(self.agents.say(agent, *cleaned))
        return True

    def is_supervised(self, agent: str) -> bool:
        """Return whether a host is running the agent, or will run it without another command."""
        return self.is_kept_alive(self.kept(agent))

    @staticmethod
    def is_kept_alive(registered: RegisteredAgent) -> bool:
        run = registered.projection.run
        return registered.lease is not None or (run.desired == "running" and not run.is_over)

    def document(self, agent: str, name: str) -> bytes | None:
        registered = self.kept(agent)
        committed = registered.projection.documents.get(name)
        text = registered.documents.get(committed.path) if committed else None
        return None if text is None else text.encode()

    def adopt_edits(self, agent: str) -> None:
        """Do nothing, because the files on a host are copies that people do not edit."""

    def prepare_start(self, agent: str, *, fresh: bool = False) -> None:
        """Send the current manifest to the fleet. `fresh` has no effect here."""
        del fresh
        self._update_definition(self.kept(agent))

    def newest_entries(self, agent: str) -> Iterator[LogEntry]:
        return iter(reversed(make_entries(self.kept(agent))))

    def entries_since(self, agent: str, offset: int) -> Iterator[LogEntry]:
        """Return the log entries after `offset`. On a fleet, the offset is an event number."""
        return (entry for entry in make_entries(self.kept(agent)) if entry.event.seq > offset)

    def run(self, agent: str, cycles: int, *, unbounded: bool = False) -> RegisteredAgent | None:
        """Start the agent, and return its previous state, or None if it is new on the fleet.

        With `unbounded`, the agent is not paused for lack of progress.
        """
        desired = runs.make_desired_event(
            runs.RunState(), "running", clock.read_clock(), cycles, unbounded=unbounded
        )
        if self._begin(agent, desired):
            return None
        registered = self.kept(agent)
        self._update_definition(registered)
        run, now = registered.projection.run, clock.read_clock()
        self.submit(
            agent, runs.make_desired_event(run, "running", now, cycles, unbounded=unbounded)
        )
        return registered

    def accept(self, agent: str) -> None:
        """Send the current manifest to the fleet, but do not start the agent."""
        if not self._begin(agent):
            self._update_definition(self.kept(agent))

    def _begin(self, agent: str, *commands: AnyEvent) -> bool:
        """Register an agent on the fleet. Return False if it is already there.

        Raises:
            OwnershipError: The agent's history exists only in this folder.
        """
        if self.exists(agent):
            return False
        if open_store(self._project).has_history(agent):
            raise OwnershipError(
                f"agent {agent} is not on the fleet yet, and its history is in this folder",
                hint=f"`rekindle fleet import {agent}` moves it to the fleet, with its history",
            )
        definition = define_agent(self._project, self._fleet, agent)
        author = host.identify_author()
        signed = [sign_command(command, author) for command in commands]
        new_events = [*self.publish(agent), *signed]
        try:
            self.wait_for(self.agents.begin(agent, definition, new_events=new_events))
        except OwnershipError:
            return False  # another command registered the agent first
        self.keep_schedule(agent)
        return True

    def has_host(self) -> bool:
        """Return whether a host in the pool has a free slot; True if the engine does not answer."""
        try:
            return self._runner.run(
                queue_pollers.has_host(self.agents.client, self._fleet.pool, _GLANCE)
            )
        except RPCError:
            return True

    def explain_refusal(self, agent: str) -> str:
        """Return why hosts refuse an agent that waits for one, or "" if they do not."""
        try:
            return self._runner.run(
                explain_refused_offer(self.agents.client, self.agents.workflow(agent))
            )
        except RPCError:
            return ""

    def publish(self, agent: str, generation: int = 0) -> list[AnyEvent]:
        """Push the agent's folder, report the push, and return the events to record."""
        return publish_workspace(self._project, self._fleet, agent, generation, self._say)

    def write_brief(self, agent: str, patience: float) -> bytes | None:
        """Let a host write a brief. Return None if no brief is ready after `patience` seconds."""
        before = self.kept(agent)
        self.wait_for(self.agents.ask_for_brief(agent))
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            time.sleep(POLL_SECONDS / 2)
            now = self.kept(agent)
            if _find_brief_seq(now) != _find_brief_seq(before):
                return self.document(agent, "brief")
            if now.generation > before.generation and now.lease is None:
                break  # A host has checked, and there was nothing to report
        return None

    def keep_schedule(self, agent: str) -> None:
        """Update the schedule of the agent's runs to match the manifest."""
        client = self.agents.client
        every = self._project.manifest.agents[agent].every
        self.wait_for(run_schedules.update_agent_schedule(client, agent, every, self._fleet))

    def _update_definition(self, registered: RegisteredAgent) -> None:
        definition = define_agent(self._project, self._fleet, registered.agent)
        if agent_registry.hash_definition(definition) != agent_registry.hash_definition(
            registered.definition
        ):
            self.wait_for(self.agents.define(registered.agent, definition))
        self.keep_schedule(registered.agent)


def make_view(registered: RegisteredAgent) -> AgentView:
    entries = make_entries(registered)
    return AgentView(
        projection=registered.projection,
        committed=registered.projection,
        pending=(),
        proposed=None,
        start=Projection(agent=registered.agent),
        tail=tuple(entry.event for entry in entries),
        bad=(),
        unreadable=0,
        end=registered.projection.seq,
        snapshot_end=0,
    )


def make_entries(registered: RegisteredAgent) -> list[LogEntry]:
    """Return the newest entries in an agent's log. An entry's position is its event number."""
    entries = []
    for line in registered.tail:
        event = events.parse(line.encode())
        entries.append(LogEntry(line.encode(), event, event.seq))
    return entries


def _find_brief_seq(registered: RegisteredAgent) -> int:
    committed = registered.projection.documents.get("brief")
    return committed.seq if committed else 0
