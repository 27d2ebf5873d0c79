"""Agents that are run, and sessions that are primed."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from rekindle import hook
from rekindle.config import Project
from rekindle.documents.event import SessionStarted
from rekindle.documents.manifest import PROMPT, Persona
from rekindle.errors import ManifestError
from rekindle.flows.launch import Agent, Report, World
from rekindle.flows.prime_session import PrimeSession
from rekindle.flows.run_cycle import Outcome, RunCycle
from rekindle.policy import environment
from rekindle.policy.settings import AgentDefaults
from rekindle.stores.files import FileStore
from rekindle.system import bytecode, clock, disk
from rekindle.system.processes import Interruption, Processes
from rekindle.wiring.store import HARNESSES, open_store

_ALIASES = {"claude": "claude-code"}


def prime_session(project: Project, name: str, start: SessionStarted) -> str:
    """What a session is told that begins without a supervisor, or was compacted."""
    entry = project.manifest.agents.get(name)
    return PrimeSession(
        agent=name,
        store=open_store(project),
        settings=project.settings,
        clock=clock.now,
        is_alive=Processes().is_alive,
        rules=_told_of(project, entry.rules, "rules") if entry else "",
        task=_told_of(project, entry.prompt or AgentDefaults().prompt, "prompt")
        if entry and start.launch
        else "",
    ).prime(start)


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
    prompt = entry.prompt or AgentDefaults().prompt
    task = _text_of(project, prompt, "prompt")
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
    persona = project.manifest.personas.get(entry.persona or AgentDefaults().persona, Persona())
    return Agent(
        name=name,
        harness=harness,
        folder=str((project.path / (entry.dir or AgentDefaults().dir)).resolve()),
        task=task,
        rules=_text_of(project, entry.rules, "rules"),
        persona=persona,
        environment={**passed_on, **(entry.env or {})},
        hook=(sys.executable, "-I", "-S", str(hook_program)),
        program=program,
    )


def _told_of(project: Project, file: str | None, key: str) -> str:
    """The same for a session that has begun already: one file must not cost it all the others."""
    try:
        return _text_of(project, file, key)
    except ManifestError as error:
        return f"({error}; tell the person)"


def _text_of(project: Project, file: str | None, key: str) -> str:
    """A file that the manifest names."""
    if not file:
        return ""
    try:
        return (project.path / file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
        raise ManifestError(
            f"cannot be read: {reason}", file=file, hint=f"write it, or correct `{key}:`"
        ) from error
