"""Run one agent without a manifest."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from rekindle import config
from rekindle.api.operator import Operator
from rekindle.documents.manifest import MANIFEST_FILE
from rekindle.documents.manifest_keys import Budget
from rekindle.documents.screens.agent_row import AgentRow
from rekindle.errors import UsageError
from rekindle.stores.folders.private_files import find_private_project
from rekindle.system.files import durable_files
from rekindle.wiring.access.operator_check import refuse_agent
from rekindle.wiring.open_store import open_store
from rekindle.wiring.row_setup import make_row_reader
from rekindle.wiring.supervisor_setup import run_supervisor


def run(
    name: str,
    *,
    harness: str,
    task: str,
    folder: str | Path = ".",
    cycles: int = 1,
    command: Sequence[str] = (),
    until: Sequence[str] = (),
    budget: Budget | None = None,
    operator: Operator | None = None,
) -> AgentRow:
    """Run an agent in a folder without rekindle.yaml, and return its state after the run.

    The agent's log and its relay are in the folder's `.rekindle`, so that another call continues
    the work. The run also ends if the agent needs a person, or would have to wait. The caller is
    the operator: this accepts the settings for this agent, but the folder is not trusted for other
    commands. Call this from the main thread, because it handles signals.

    Raises:
        UsageError: The folder, or one above it, has a rekindle.yaml.
        ManifestError: A setting is not valid.
    """
    path, operator = Path(folder).absolute(), operator or Operator()
    manifest = config.find_project(path)
    if manifest is not None and (manifest / MANIFEST_FILE).exists():
        raise UsageError(
            f"{manifest} has a rekindle.yaml, so its agents are named there",
            hint=f"use rekindle.connect(folder).agent({name!r}).start()",
        )
    private = find_private_project(path)
    prompt = private.agent(name).path / "task.md"
    settings: dict[str, Any] = {"harness": harness, "prompt": str(prompt)}
    settings |= {"command": list(command)} if command else {}
    settings |= {"until": list(until)} if until else {}
    settings |= {"budget": msgspec.to_builtins(budget)} if budget else {}
    # JSON is also YAML, so that the settings are checked like those in a manifest.
    text = msgspec.json.encode({"version": 1, "agents": {name: settings}}).decode()
    project = config.make_project(path, text)
    refuse_agent(project, "rekindle run")
    private.make_agent(name)
    durable_files.replace_file(prompt, task.encode())
    durable_files.replace_file(private.agent(name).manifest, text.encode())  # for its hooks
    store = open_store(project)
    operator.accept_log(store, name)
    run_supervisor(
        project,
        store,
        name,
        lambda _: None,
        once=True,
        cycles=cycles,
        load=lambda _: project,
    )
    return make_row_reader(project, store).row(name)
