"""Agents that are run."""

import os
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import msgspec

from rekindle import hook
from rekindle.config import Project
from rekindle.documents import manifest
from rekindle.documents.launch import Start
from rekindle.documents.manifest import PROMPT, Persona
from rekindle.errors import ManifestError, UsageError
from rekindle.flows.launch import Agent, Report, World
from rekindle.flows.run_cycle import Outcome, RunCycle
from rekindle.harnesses import command
from rekindle.policy import environment
from rekindle.policy.settings import AgentDefaults
from rekindle.ports import Harness
from rekindle.stores.files import FileStore
from rekindle.system import bytecode, clock, disk
from rekindle.system.processes import Interruption, Processes
from rekindle.wiring.store import HARNESSES, text_of

_ALIASES = {"claude": "claude-code"}


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
    harness = HARNESSES.get(_ALIASES.get(entry.harness, entry.harness))
    if harness is None:
        raise ManifestError(
            f"agent {name}: there is no harness named {entry.harness!r}",
            line=project.marked.line(("agents", name, "harness")),
            hint=f"one of: {', '.join(HARNESSES)}",
        )
    _refuse_unkept(project, name, entry)
    program = program or tuple(_program(project, name, entry, harness))
    prompt = entry.prompt or AgentDefaults().prompt
    task = text_of(project, prompt, "prompt")
    if not task.strip() or task == PROMPT:
        raise ManifestError(
            "says no task yet",
            file=prompt,
            hint="say there, in your words, what the agent is to do",
        )
    store.create(name)
    hook_program = store.folder(name).run / "hook.pyc"
    disk.replace(hook_program, bytecode.compiled(Path(hook.__file__)))
    passed_on = environment.allowed(os.environ, harness.PASSED_ON, harness.NEVER_PASSED_ON)
    agent = Agent(
        name=name,
        harness=harness,
        folder=str((project.path / (entry.dir or AgentDefaults().dir)).resolve()),
        task=task,
        rules=text_of(project, entry.rules, "rules"),
        persona=_persona(project, name, entry),
        environment={**passed_on, **(entry.env or {})},
        hook=(sys.executable, "-I", "-S", str(hook_program)),
        program=program,
    )
    _refuse_unenforced(project, agent, entry.persona or AgentDefaults().persona)
    return agent


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


def _program(project: Project, name: str, entry: manifest.Agent, harness: Harness) -> list[str]:
    """What is started in the place of the CLI's own program; for `command`, the only one."""
    if not entry.command and harness.NAME == command.NAME:
        raise ManifestError(
            f"agent {name}: there is no `command:` to start",
            line=project.marked.line(("agents", name, "command")),
            hint='say the program and its arguments, as in `command: ["./agent", "--once"]`',
        )
    return entry.command or []


def _refuse_unenforced(project: Project, agent: Agent, persona: str) -> None:
    """Ask for a command before anything is begun: what a CLI cannot be held to is refused."""
    session = str(uuid.uuid4()) if agent.harness.CAN.names_sessions else ""
    start = Start(session=session, persona=agent.persona, program=agent.program)
    try:
        agent.harness.command(start)
    except UsageError as error:
        raise ManifestError(
            f"agent {agent.name}: {error}",
            line=project.marked.line(("personas", persona, "permissions")),
            hint=error.hint,
        ) from error


def _persona(project: Project, name: str, entry: manifest.Agent) -> Persona:
    """The agent's persona, with its files where they are, wherever the agent works."""
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
        return persona
    text_of(project, persona.system_prompt_file, "system_prompt_file")
    whole = str((project.path / persona.system_prompt_file).resolve())
    return msgspec.structs.replace(persona, system_prompt_file=whole)
