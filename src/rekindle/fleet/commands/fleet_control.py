"""Define and command many agents of a fleet over one connection."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial

import msgspec
from temporalio.client import Client
from temporalio.common import TypedSearchAttributes
from temporalio.service import RPCError

from rekindle.documents.events import Event, PersonAnswered, QuestionAnswered
from rekindle.documents.screens.fleet_row import FleetRow
from rekindle.errors import (
    ClosedQuestionError,
    DefinitionError,
    NotOnFleetError,
    OwnershipError,
    RekindleError,
    UnknownQuestionError,
    UsageError,
)
from rekindle.fleet.agent.agent_listing import make_first_attributes
from rekindle.fleet.engine import run_schedules
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.fleet.engine.agent_list import (
    AgentFilter,
    list_agents,
    make_fleet_row,
    render_filter,
)
from rekindle.fleet.engine.bulk_calls import call_each
from rekindle.fleet.hosts.host_admission import find_missing_attributes
from rekindle.formats.identifiers import strip_invisible
from rekindle.policy.fleet import agent_registry
from rekindle.policy.fleet.agent_registry import AgentDefinition, RegisteredAgent
from rekindle.policy.fleet.agent_spec import (
    AgentSettings,
    make_definition,
    require_same_owner,
)
from rekindle.policy.fleet.bulk_result import BulkResult
from rekindle.policy.fleet.fleet_questions import FleetQuestion, FleetQuestions, make_questions
from rekindle.policy.operator import answers, questions
from rekindle.policy.operator.command_authors import sign_command
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.settings.runtime_settings import FLEET_STATUS_AGENTS, FleetSettings
from rekindle.policy.supervision import run_moves
from rekindle.policy.supervision.run_moves import RunState
from rekindle.system import clock, host
from rekindle.thresholds.control_limits import FLEET_BULK_SECONDS
from rekindle.thresholds.screens import ANSWER_CHARACTERS
from rekindle.wiring.open_store import HARNESSES


class FleetControl:
    """Sends at most one request per agent, except to change or answer an agent."""

    def __init__(self, client: Client, fleet: FleetSettings, *, by: str, origin: str) -> None:
        self.client, self._fleet, self._by, self._origin = client, fleet, by, origin
        self.agents = AgentClient(
            client,
            timedelta(seconds=FLEET_BULK_SECONDS),
            missing_hint="define it with `Fleet.define`; `Fleet.rows` lists all agents",
        )
        self._sent: dict[str, str] = {}
        """Hash of the last definition that was sent for each agent. The list may be older."""
        self._has_attributes: bool | None = None
        self.runs: dict[str, int] = {}
        """Number of the last command to run that was sent to each agent."""

    async def define(self, specs: Iterable[AgentSettings], *, replace: bool) -> BulkResult:
        """Define agents that are new or differ from their definition on the fleet."""
        definitions, failed = self._make_definitions(specs)
        hashes = {
            name: agent_registry.hash_definition(definition)
            for name, definition in definitions.items()
        }
        listed = await self._list_definitions(list(definitions))

        async def define_one(name: str) -> bool:
            wanted = hashes[name]
            if listed.get(name) == wanted == self._sent.get(name, wanted):
                return False
            is_changed = await self._define_one(
                name, definitions[name], is_there=name in listed, replace=replace
            )
            self._sent[name] = wanted
            return is_changed

        result = await call_each(definitions, define_one)
        return msgspec.structs.replace(result, failed=failed | dict(result.failed))

    def _make_definitions(
        self, specs: Iterable[AgentSettings]
    ) -> tuple[dict[str, AgentDefinition], dict[str, RekindleError]]:
        definitions: dict[str, AgentDefinition] = {}
        failed: dict[str, RekindleError] = {}
        for number, spec in enumerate(specs, 1):
            name = getattr(spec, "name", None)
            if not isinstance(name, str):
                name = f"#{number}"
            if name in definitions or name in failed:
                definitions.pop(name, None)
                hint = "give each agent its own name"
                failed[name] = DefinitionError(name, "name", "is used twice", hint=hint)
                continue
            try:
                definitions[name] = make_definition(spec, self._fleet)
                _require_harness(spec)
            except DefinitionError as error:
                definitions.pop(name, None)
                failed[name] = error
        return definitions, failed

    async def _list_definitions(self, names: Sequence[str]) -> dict[str, str]:
        """Return the hash of each listed definition, with one request for many agents."""
        if not names:
            return {}
        only = AgentFilter(names=names if len(names) <= FLEET_STATUS_AGENTS else ())
        query = render_filter(self.client, only)
        return {found.agent: found.definition async for found in list_agents(self.client, query)}

    async def _define_one(
        self, name: str, definition: AgentDefinition, *, is_there: bool, replace: bool
    ) -> bool:
        if not is_there:
            # The list may not show the agent yet.
            with suppress(OwnershipError):
                attributes = await self._find_attributes(definition)
                await self.agents.begin(name, definition, attributes=attributes)
                self.runs.pop(name, None)
                return True
        try:
            before = (await self.agents.kept(name)).definition
            if before == definition:
                return False
            if not replace:
                require_same_owner(name, before, definition)
            await self.agents.define(name, definition)
        except NotOnFleetError:  # the agent was just removed
            await self.agents.begin(name, definition)
        await run_schedules.drop_schedule(self.client, "agents", name)
        return True

    async def _find_attributes(self, definition: AgentDefinition) -> TypedSearchAttributes:
        """Return the attributes of a new agent, if a host has created them in the namespace."""
        if self._has_attributes is None:
            try:
                self._has_attributes = not await find_missing_attributes(self.client)
            except RPCError:  # not every user may ask
                self._has_attributes = False
        if self._has_attributes:
            return make_first_attributes(definition)
        return TypedSearchAttributes.empty

    async def run(self, names: Iterable[str], cycles: int) -> BulkResult:
        desired = run_moves.make_desired_event(
            RunState(), "running", clock.read_clock(), _require_cycles(cycles), unbounded=False
        )

        async def run_one(name: str) -> bool:
            self.runs[name] = await self._send(name, (desired,))
            return True

        return await call_each(names, run_one)

    async def stop(self, names: Iterable[str]) -> BulkResult:
        desired = run_moves.make_desired_event(RunState(), "stopped", clock.read_clock())
        return await call_each(names, partial(self._say, records=(desired,)))

    async def _say(self, name: str, records: Sequence[Event]) -> bool:
        await self._send(name, records)
        return True

    async def _send(self, name: str, records: Sequence[Event]) -> int:
        author, redaction = host.identify_author(), Redaction()
        signed = [sign_command(redaction.event(record), author) for record in records]
        return await self.agents.say(name, *signed)

    async def remove(self, names: Iterable[str]) -> BulkResult:
        async def remove_one(name: str) -> bool:
            self._sent.pop(name, None)
            self.runs.pop(name, None)
            try:
                await self.agents.discard(name)
            except NotOnFleetError:
                return False
            await run_schedules.drop_schedule(self.client, "agents", name)
            return True

        return await call_each(names, remove_one)

    async def answer(self, names: Iterable[str], words: str, question: str) -> BulkResult:
        return await call_each(names, partial(self._answer, words=words, question=question))

    async def _answer(self, name: str, words: str, question: str) -> bool:
        known, now = (await self.agents.kept(name)).projection, clock.read_clock()
        opened = questions.list_open_questions(known, now)
        newest = questions.find_blocking_question(known, now) or (opened[-1] if opened else None)
        asked = known.questions.get(question) if question else newest
        words = strip_invisible(words).strip()
        if asked is None:
            if question:
                raise UnknownQuestionError(question)
            answers.require_own_words(words)
            answers.require_length(words, ANSWER_CHARACTERS, "an answer")
            desired = run_moves.make_desired_event(known.run, "running", now)
            return await self._say(name, [PersonAnswered(ts=now, text=words), desired])
        if reason := answers.explain_closed(known, asked, now):
            raise ClosedQuestionError(asked.question, reason)
        answer = answers.make_answer(known, asked, words, now)
        by = self._by or host.identify_user()
        answer = msgspec.structs.replace(
            answer, by=by, host=host.identify_host(), origin=self._origin
        )
        await self._say(name, [answer])
        return self._require_counted(answer, await self.agents.kept(name))

    @staticmethod
    def _require_counted(answer: QuestionAnswered, after: RegisteredAgent) -> bool:
        """Raise ClosedQuestionError if another answer was first."""
        counts = after.projection.answers.get(answer.question)
        if counts is not None and (counts.choice, counts.ts) == (answer.choice, answer.ts):
            return True
        asked = after.projection.questions.get(answer.question)
        reason = answers.explain_closed(after.projection, asked, answer.ts) if asked else "it ended"
        raise ClosedQuestionError(answer.question, reason)

    async def rows(self, only: AgentFilter) -> list[FleetRow]:
        query = render_filter(self.client, only)
        found = [make_fleet_row(listed) async for listed in list_agents(self.client, query)]
        selected = (row for row in found if only.state in {None, row.state})
        return sorted(selected, key=lambda row: row.agent)

    async def questions(self, only: AgentFilter) -> FleetQuestions:
        """Return the open questions, oldest first. Only agents that ask are queried."""
        opened: list[FleetQuestion] = []

        async def read_one(name: str) -> bool:
            try:
                known = (await self.agents.kept(name)).projection
            except NotOnFleetError:
                return False
            asked = questions.list_open_questions(known, clock.read_clock())
            opened.extend(make_questions(name, asked))
            return True

        rows = await self.rows(msgspec.structs.replace(only, asks=True))
        read = await call_each([row.agent for row in rows], read_one)
        ordered = sorted(opened, key=lambda question: question.asked)
        return FleetQuestions(tuple(ordered), read.failed)


def _require_cycles(cycles: object) -> int:
    if not isinstance(cycles, int) or isinstance(cycles, bool) or cycles < 0:
        hint = "use a whole number; 0 for no limit"
        raise UsageError(f"{cycles!r} is not a number of cycles", hint=hint)
    return cycles


def _require_harness(spec: AgentSettings) -> None:
    """Raise DefinitionError for a name without a harness. The agent would wait forever."""
    if spec.harness not in HARNESSES:
        raise DefinitionError(
            spec.name,
            "harness",
            f"there is no harness named {spec.harness!r}",
            hint=f"use one of: {HARNESSES.list_names()}; install the package of a plugin also "
            "where this program runs",
        )
