"""Read the rows of agents on a fleet."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from rekindle.config import Project
from rekindle.documents.screens.agent_row import AgentRow
from rekindle.errors import RekindleError
from rekindle.policy.operator.build_row import (
    RowInputs,
    build_listed_row,
    build_new_row,
    build_row,
)
from rekindle.policy.settings.runtime_settings import FLEET_STATUS_AGENTS
from rekindle.wiring.open_store import open_store

if TYPE_CHECKING:
    from rekindle.fleet.commands.fleet_store import FleetStore
    from rekindle.fleet.engine.agent_list import ListedAgent
    from rekindle.policy.fleet.agent_registry import RegisteredAgent


class FleetReading(msgspec.Struct, frozen=True):
    """The row of an agent on a fleet, and the data behind it."""

    row: AgentRow
    listed: "ListedAgent | None" = None
    """Entry in the engine's list; None if the agent is not on the fleet."""
    registered: "RegisteredAgent | None" = None
    """State of the agent; None if it was not queried."""
    is_supervised: bool = False
    """Whether a host is running the agent, or will run it without another command."""
    lives_here: bool = False
    """Whether the agent's history is in this folder instead."""
    error: RekindleError | None = None
    """Why the agent's state could not be queried."""


def read_fleet_rows(
    project: Project, store: "FleetStore", names: Sequence[str], now: datetime
) -> list[FleetReading]:
    """Return the agents on a fleet. The state of each is queried only if there are few agents."""
    asks = len(names) <= FLEET_STATUS_AGENTS
    listed, files = store.listed(names if asks else ()), open_store(project)
    return [
        _read_listed(project, store, name, listed[name], now if asks else None)
        if name in listed
        else _read_new(project, name, lives_here=files.has_history(name))
        for name in names
    ]


def _read_new(project: Project, name: str, *, lives_here: bool) -> FleetReading:
    row = build_new_row(name, project.manifest.agents[name].harness)
    if lives_here:
        words, command = "is in this folder, not on the fleet", f"rekindle fleet import {name}"
        row = msgspec.structs.replace(row, reason=words, command=command)
    else:
        row = msgspec.structs.replace(row, reason="is not on the fleet")
    return FleetReading(row, lives_here=lives_here)


def _read_listed(
    project: Project, store: "FleetStore", name: str, listed: "ListedAgent", now: datetime | None
) -> FleetReading:
    """Return an agent on a fleet. Without `now`, its row has only facts from the engine's list."""
    entry = project.manifest.agents[name]
    row = build_listed_row(name, entry.harness, listed.state, listed.cycle, listed.why)
    if listed.problem:
        words = f"stuck: build {listed.build} fails to decide ({listed.problem})"
        row = msgspec.structs.replace(
            row, state="broken", label="broken", reason=words, command="rekindle doctor"
        )
    if now is None or listed.problem:
        return FleetReading(row, listed)
    try:
        registered = store.kept(name)
    except RekindleError as error:
        return FleetReading(row, listed, error=store.explain_silence(error, listed.build))
    is_supervised = store.is_kept_alive(registered)
    inputs = RowInputs(
        now=now,
        is_supervised=is_supervised,
        budget=entry.budget,
        loops=project.settings.runtime.loops,
    )
    if listed.state == "queued" and (refusal := store.explain_refusal(name)):
        row = msgspec.structs.replace(row, reason=refusal)
    elif listed.state != "capped":
        row = build_row(registered.projection, inputs, entry.harness)
    return FleetReading(row, listed, registered, is_supervised)
