"""Agents that are run."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from rekindle import hook
from rekindle.config import Project
from rekindle.documents import manifest
from rekindle.documents.manifest import PROMPT, Persona
from rekindle.errors import ManifestError
from rekindle.flows.launch import Agent, Report, World
from rekindle.flows.run_cycle import Outcome, RunCycle
from rekindle.policy import environment
from rekindle.policy.settings import AgentDefaults
from rekindle.stores.files import FileStore
from rekindle.system import bytecode, clock, disk
from rekindle.system.processes import Interruption, Processes
from rekindle.wiring.store import HARNESSES, harness_of, text_of


def run_cycle(
    project: Project,
    store: FileStore,
    name: str,
    tell: Callable[[Report], None],
    *,
    program: tuple[str, ...] = (),
) -> Outcome:
    """Run one cycle of an agent; `program` stands in for the CLI's own."""
    agent = _agent(project, store, name, program)
    with Interruption() as interruption:
        world = World(
            store=store,
            processes=Processes(),
            settings=project.settings,
            clock=clock.now,
            interrupted=lambda: interruption.count,
            tell=tell,
        )
        return RunCycle(agent, world).run()


def _agent(project: Project, store: FileStore, name: str, program: tuple[str, ...]) -> Agent:
    entry = project.manifest.agents[name]
    harness = harness_of(entry.harness)
    if harness is None:
        raise ManifestError(
            f"agent {name}: there is no harness named {entry.harness!r}",
            line=project.marked.line(("agents", name, "harness")),
            hint=f"one of: {', '.join(HARNESSES)}",
        )
    _refuse_unkept(project, name, entry)
    prompt = entry.prompt or AgentDefaults().prompt
    task = text_of(project, prompt, "prompt")
    if not task.strip() or task == PROMPT:
        raise ManifestError(
            "says no task yet",
            file=prompt,
            hint="say there, in your words, what the agent is to do",
        )
    store.create(name)
    persona, instructions = _persona(project, name, entry)
    hook_program = store.folder(name).run / "hook.pyc"
    disk.replace(hook_program, bytecode.compiled(Path(hook.__file__)))
    passed_on = environment.allowed(os.environ, harness.PASSED_ON, harness.NEVER_PASSED_ON)
    return Agent(
        name=name,
        harness=harness,
        folder=str((project.path / (entry.dir or AgentDefaults().dir)).resolve()),
        task=task,
        rules=text_of(project, entry.rules, "rules"),
        persona=persona,
        instructions=instructions,
        environment={**passed_on, **(entry.env or {})},
        hook=(sys.executable, "-I", "-S", str(hook_program)),
        program=program,
    )


def _refuse_unkept(project: Project, name: str, entry: manifest.Agent) -> None:
    """What would be trusted and not be kept must not pass in silence: least of all money."""
    for key in ("budget", "until"):
        if getattr(entry, key) is not None:
            raise ManifestError(
                f"agent {name}: `{key}:` is not held to yet",
                line=project.marked.line(("agents", name, key)),
                hint=f"remove `{key}:`, and look after it yourself",
            )
    if entry.mode == "stay":
        raise ManifestError(
            f"agent {name}: `mode: stay` cannot be run yet",
            line=project.marked.line(("agents", name, "mode")),
            hint="start the agent yourself, and have it primed by `rekindle hooks install`",
        )


def _persona(project: Project, name: str, entry: manifest.Agent) -> tuple[Persona, str]:
    """The agent's persona, its files where they are, wherever the agent works; and its words."""
    wanted = entry.persona or AgentDefaults().persona
    found = project.manifest.personas.get(wanted)
    if found is None and wanted != AgentDefaults().persona:
        raise ManifestError(
            f"agent {name}: there is no persona named {wanted!r}",
            line=project.marked.line(("agents", name, "persona")),
            hint=f"one of: {', '.join(project.manifest.personas) or 'none is there'}",
        )
    persona = found or Persona()
    if persona.system_prompt_file is None:
        return persona, ""
    words = text_of(project, persona.system_prompt_file, "system_prompt_file")
    whole = str((project.path / persona.system_prompt_file).resolve())
    return msgspec.structs.replace(persona, system_prompt_file=whole), words
