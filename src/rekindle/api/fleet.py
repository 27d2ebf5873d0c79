"""A fleet without a project folder, as programs use it to control thousands of agents."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self, get_args

import msgspec

from rekindle.api.fleet_agent import FleetAgent
from rekindle.api.fleet_changes import FleetChanges, FleetPolls
from rekindle.api.operator import Operator
from rekindle.documents.screens.agent_row import AgentState
from rekindle.documents.screens.fleet_row import (
    FleetChange,
    FleetRow,
    FleetUsage,
    UsageKey,
    sum_usage,
)
from rekindle.errors import EngineError, ManifestError, StoreError, UsageError
from rekindle.fleet.commands.fleet_control import FleetControl
from rekindle.fleet.commands.fleet_watch import FleetWatch
from rekindle.fleet.engine.agent_list import AgentFilter
from rekindle.fleet.engine.connect import connect
from rekindle.fleet.engine.engine_thread import EngineThread
from rekindle.formats import validation
from rekindle.formats.yaml_lines import MarkedData
from rekindle.policy.fleet.agent_spec import AgentSettings
from rekindle.policy.fleet.bulk_result import BulkResult
from rekindle.policy.fleet.connection_check import require_valid_fleet
from rekindle.policy.fleet.fleet_questions import FleetQuestions
from rekindle.policy.settings.runtime_settings import AgentDefaults, FleetSettings
from rekindle.wiring.access.operator_check import refuse_any_agent

_SOURCE = "rekindle.connect"
_KEY = re.compile(r"`fleet: (\w+):[^`]*`")
"""Name of a setting in a hint, as in rekindle.yaml."""


def open_fleet(address: str, operator: Operator, settings: Mapping[str, object]) -> "Fleet":
    """Check the settings of a connection, and connect.

    Raises:
        ManifestError: A setting is not valid.
        StoreError: A certificate or a key cannot be read.
        EngineError: The engine could not be reached, or refused the connection.
    """
    chosen = _read_settings(address, settings)
    require_valid_fleet(chosen, MarkedData({}, {}, _SOURCE))
    thread = EngineThread(address)
    try:
        client = thread.wait_for(connect(chosen, Path.cwd(), os.environ))
    except BaseException as error:
        thread.close()
        if isinstance(error, EngineError):
            error.hint = _KEY.sub(r"`\1=`", error.hint)
        elif isinstance(error, StoreError):
            error.hint = "name a file that this program can read, from its current folder"
        raise
    control = FleetControl(client, chosen, by=operator.by, origin=operator.origin)
    return Fleet(control, thread)


def _read_settings(address: str, settings: Mapping[str, object]) -> FleetSettings:
    """Check types and names like those of `fleet:` in rekindle.yaml."""
    known = {key: value for key, value in settings.items() if value is not None}
    seconds = known.get("heartbeat_timeout")
    if isinstance(seconds, int | float) and not isinstance(seconds, bool):
        if not 0 <= seconds < float("inf"):
            hint = f"use seconds, such as {float(FleetSettings().heartbeat_timeout):g}"
            raise ManifestError(
                f"a heartbeat_timeout of {seconds} is not valid", file=_SOURCE, hint=hint
            )
        known["heartbeat_timeout"] = f"{float(seconds)!r}s"
    try:
        data = msgspec.to_builtins(
            {"fleet": {"address": address} | known}, enc_hook=validation.encode_custom
        )
    except (TypeError, NotImplementedError) as error:
        hint = "use numbers, texts, lists and mappings, as in rekindle.yaml"
        raise ManifestError(str(error), file=_SOURCE, hint=hint) from error
    try:
        return validation.validate_data(MarkedData(data, {}, _SOURCE), FleetSettings, ("fleet",))
    except ManifestError as error:
        error.hint = validation.advise_program(error.hint)
        raise


class Fleet:
    """The agents of a fleet, which a program defines, runs and watches.

    A program that connects is an operator: what it defines and commands is accepted, without a
    question to a person. An agent's own program is refused. All methods can be called from several
    threads. Close the connection after use, or use it in a `with` statement.

    Methods that take names accept one name or many. For one name, they raise its error. For many,
    they never raise for a single agent: the result tells which agents failed, and why.
    """

    def __init__(self, control: FleetControl, thread: EngineThread) -> None:
        self._control, self._thread = control, thread
        self._is_operator = False

    def close(self) -> None:
        """Close the connection. The agents continue."""
        self._thread.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def define(self, spec: AgentSettings, *, replace: bool = False) -> bool:
        """Define one agent without starting it, and return whether this changed something.

        An agent that is on the fleet gets the new definition for its next cycle. Its git remote
        changes only with `replace`, and so does an agent that a rekindle.yaml defined.

        Raises:
            DefinitionError: A field of the spec is not valid.
            EngineError: The engine or its workers do not answer, or refuse the agent.
        """
        result = self.define_all([spec], replace=replace)
        result.require()
        return bool(result.done)

    def define_all(self, specs: Iterable[AgentSettings], *, replace: bool = False) -> BulkResult:
        """Define many agents without starting them.

        Agents that are defined in the same way need no request, so a program can define all of its
        agents again. No worker has to be running for new agents. A definition without a name that
        is a text fails under its number, such as `#3`.

        Raises:
            UsageError: `specs` is not a list of definitions.
        """
        self._require_operator("define")
        if isinstance(specs, AgentSettings) or not isinstance(specs, Iterable):
            raise UsageError(
                f"define_all needs many definitions, not one {type(specs).__name__}",
                hint="use `define` for one agent, or a list",
            )
        return self._thread.wait_for(self._control.define(list(specs), replace=replace))

    def run(
        self, names: str | Iterable[str], *, cycles: int = AgentDefaults().cycles
    ) -> BulkResult:
        """Start agents, each for up to this many cycles; 0 for no limit.

        Raises:
            NotOnFleetError: The only agent is not defined.
            UsageError: `cycles` is not a whole number, or is negative.
        """
        self._require_operator("run")
        return self._finish(names, self._control.run(_list_names(names), cycles))

    def stop(self, names: str | Iterable[str]) -> BulkResult:
        """Record that agents are to stop, and keep them stopped. Their hosts end the sessions.

        Raises:
            NotOnFleetError: The only agent is not defined.
        """
        self._require_operator("stop")
        return self._finish(names, self._control.stop(_list_names(names)))

    def answer(self, names: str | Iterable[str], words: str, *, question: str = "") -> BulkResult:
        """Answer the question that each agent is waiting for, or the named one.

        If an agent has no open question, send the words to its next cycle.

        Raises:
            AnswerError: The question of the only agent does not offer this answer.
            ClosedQuestionError: It is closed.
            UnknownQuestionError: There is no such question.
        """
        self._require_operator("answer")
        if not isinstance(words, str):
            raise UsageError(f"an answer is a text, not {words!r}", hint='use `"yes"`, for example')
        return self._finish(names, self._control.answer(_list_names(names), words, question))

    def remove(self, names: str | Iterable[str]) -> BulkResult:
        """Remove agents from the fleet. Their work stays on the git remote."""
        self._require_operator("remove")
        return self._finish(names, self._control.remove(_list_names(names)))

    def agent(self, name: str) -> FleetAgent:
        """Return a handle to read one agent. This reads nothing."""
        return FleetAgent(self._control.agents, self._thread, name)

    def rows(
        self,
        *,
        team: str | None = None,
        state: AgentState | None = None,
        pool: str = "",
        host: str = "",
        asks: bool = False,
    ) -> list[FleetRow]:
        """Return all agents, or those that match, by name.

        The engine selects them, with one request per 1,000 agents. Its list may be a second behind.

        Raises:
            UsageError: A name or the state is not valid.
        """
        only = AgentFilter(team=team, state=state, pool=pool, host=host, asks=asks)
        return self._thread.wait_for(self._control.rows(only))

    def questions(self, *, team: str | None = None) -> FleetQuestions:
        """Return the open questions of all agents, oldest first. Only agents that ask are read.

        Agents that could not be read are in `failed`, each with its error.
        """
        return self._thread.wait_for(self._control.questions(AgentFilter(team=team)))

    def usage(self, *, by: UsageKey = "team") -> list[FleetUsage]:
        """Return how many agents of each team, pool or host run and wait, and what they spent.

        The figures are those of `rows`.
        """
        keys = get_args(UsageKey)
        if by not in keys:
            raise UsageError(
                f"usage by {by!r} is not possible", hint=f"use one of: {', '.join(keys)}"
            )
        return sum_usage(self.rows(), by)

    def watch(self, *, after: str = "", team: str | None = None) -> Iterator[FleetChange]:
        """Yield changes of agents forever: new states, questions and ends.

        Without `after`, the first changes are all agents as they are now. An end is reported only
        for the run that this connection has last asked for, or a later one. With the cursor of a
        change, continue after it: nothing is missed, and changes of the last half minute may come
        again. There is one request per second, for any number of agents.

        After an EngineError, the same iterator continues where it was.
        """
        return FleetChanges(self.polls(after=after, team=team))

    def polls(self, *, after: str = "", team: str | None = None) -> Iterator[list[FleetChange]]:
        """Yield the changes since the previous step, for a program with a loop of its own.

        Each step is one request, without a pause. After an EngineError, the same iterator continues
        where it was.
        """
        watch = FleetWatch(self._control.client, after, team, self._control.runs)
        return FleetPolls(watch, self._thread)

    def _finish(self, names: str | Iterable[str], operation: Any) -> BulkResult:
        result: BulkResult = self._thread.wait_for(operation)
        if isinstance(names, str):
            result.require()
        return result

    def _require_operator(self, action: str) -> None:
        """Refuse the action if an agent runs this program."""
        if not self._is_operator:
            refuse_any_agent(f"rekindle.Fleet.{action}")
            self._is_operator = True


def _list_names(names: str | Iterable[str]) -> list[str]:
    listed = [names] if isinstance(names, str) or not isinstance(names, Iterable) else list(names)
    for name in listed:
        if not isinstance(name, str):
            hint = "use one name, or a list of names"
            raise UsageError(f"{name!r} is not the name of an agent", hint=hint)
    return listed
