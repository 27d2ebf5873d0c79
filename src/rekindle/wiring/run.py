"""Agents that are run."""

import os
import re
import sys
import time
import uuid
from collections.abc import Callable

import msgspec

from rekindle.config import Project, load
from rekindle.documents import manifest
from rekindle.documents.identity import one_line
from rekindle.documents.launch import Start
from rekindle.documents.manifest import PROMPT, Persona
from rekindle.errors import (
    ManifestError,
    NotifyError,
    RekindleError,
    UnenforceableError,
    UsageError,
)
from rekindle.flows.end_cycle import Ending
from rekindle.flows.keep_running import KeepRunning, RunResult
from rekindle.flows.measure_windows import measure_windows
from rekindle.flows.steps import Steps
from rekindle.flows.stopping import Stopping
from rekindle.flows.until import Until, UntilResult
from rekindle.flows.work_signs import read_signs
from rekindle.flows.world import Agent, Report, SettingsChanged, Trouble, World
from rekindle.harnesses import command
from rekindle.policy import endings, environment, handoff
from rekindle.policy.settings import AgentDefaults, cycles_of
from rekindle.ports import Harness
from rekindle.stores import private
from rekindle.stores.files import FileStore
from rekindle.system import clock, hook_program, programs
from rekindle.system.keyboard import Keyboard
from rekindle.system.notify import Notifier
from rekindle.system.processes import Interruption, Processes
from rekindle.system.terminal import OnTerminal
from rekindle.system.worktree import WorkTree
from rekindle.wiring import protected, trust, watch
from rekindle.wiring import summarize as summarizing
from rekindle.wiring.guarded_path import GuardedPath, guard_path
from rekindle.wiring.store import harness_of, text_of

_OURS = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]*\Z")
"""A value that stands for a variable of ours."""


def keep_running(
    project: Project,
    store: FileStore,
    name: str,
    tell: Callable[[Report], None],
    *,
    once: bool = False,
    kept: bool = False,
    said: bool = False,
    program: tuple[str, ...] = (),
    cycles: int | None = None,
    unbounded: bool = False,
) -> RunResult:
    """Be the supervisor of an agent; `program` replaces the CLI's own.

    `unbounded`: the operator has lifted the bounds on work without progress.
    """
    agent = _agent(project, store, name, program, cycles)
    if not (kept or said):
        _accept_command(project, store, name, tell)
    notifier = Notifier(trust.accepted_notify(project, name), store.redaction)
    if kept:
        _check_addresses(notifier, tell)
    else:
        watch.remember(store, name, agent.harness)
    # What a person has changed counts once she lets it go on.
    said_now = [project]

    def renewed() -> Agent | None:
        try:
            found = load(project.path)
            if trust.explain_unaccepted(found, name):
                return None  # it stays in safe mode: `restart` accepts the change
            made = _agent(found, store, name, program, cycles)
        except (RekindleError, KeyError) as error:
            tell(Trouble(f"goes on as it was set up before: {error}"))
            return None
        if made.stays != agent.stays:
            return None  # that is another program
        said_now[0] = found
        return made

    def unaccepted() -> str:
        try:
            return trust.explain_unaccepted(load(project.path), name)
        except (RekindleError, KeyError) as error:
            return f"rekindle.yaml cannot be read: {error}"

    def settings_stamp() -> object:
        return trust.stamp_settings(project, name)

    with Interruption() as interruption:
        world = _world(
            project, store, agent, tell=tell, notifier=notifier, interruption=interruption
        )
        world = msgspec.structs.replace(
            world, renewed=renewed, unaccepted=unaccepted, settings_stamp=settings_stamp
        )
        ending = _ending(lambda: said_now[0], store, agent, world)
        supervisor = KeepRunning(
            agent, world, once=once, kept=kept, said=said, unbounded=unbounded, ending=ending
        )
        return supervisor.run()


def check_settings(project: Project, store: FileStore, name: str) -> None:
    """Refuse settings that `run` would refuse, before a command accepts them.

    Raises:
        RekindleError: As `run` raises it.
    """
    check_agent(project, store, name)
    check_notify(project, store)


def check_agent(project: Project, store: FileStore, name: str) -> None:
    """Refuse settings of one agent, without `notify:`, which all of a project share.

    Raises:
        RekindleError: As `run` raises it.
    """
    _agent(project, store, name, ())


def check_notify(project: Project, store: FileStore) -> None:
    """Refuse addresses that no notification could be sent to.

    Raises:
        NotifyError: An address cannot be used, or what sends to it is not installed.
    """
    Notifier(project.manifest.notify, store.redaction).check()


def _accept_command(
    project: Project, store: FileStore, name: str, tell: Callable[[Report], None]
) -> None:
    """Accept the settings of an agent that a person runs, and where: not in a window of ours."""
    check_notify(project, store)
    if changes := trust.accept_settings(project, name):
        tell(SettingsChanged(changes))
    watch.note_window(store, name, is_wanted=False)


def steps(
    project: Project,
    store: FileStore,
    name: str,
    tell: Callable[[Report], None],
    interruption: Interruption,
    *,
    fold_every: float,
) -> Steps:
    """What is done for an agent on this host, where somebody else says when."""
    agent = _agent(project, store, name, ())
    notifier = Notifier(project.manifest.notify, store.redaction)
    world = _world(project, store, agent, tell=tell, notifier=notifier, interruption=interruption)
    world = msgspec.structs.replace(world, fold_every=fold_every)
    return Steps(agent, world, _ending(lambda: project, store, agent, world))


def _world(
    project: Project,
    store: FileStore,
    agent: Agent,
    *,
    tell: Callable[[Report], None],
    notifier: Notifier,
    interruption: Interruption,
) -> World:
    keyboard = Keyboard()
    stops = Stopping(store, agent.name, lambda: interruption.count, time.monotonic)
    return World(
        store=store,
        processes=(OnTerminal if agent.stays else Processes)(keep=agent.keep, adopts=True),
        settings=project.settings,
        clock=clock.now,
        elapsed=time.monotonic,
        rest=keyboard.rest,
        interrupted=lambda: interruption.count,
        by_hand=lambda: interruption.by_hand,
        goes_on=keyboard.was_pressed,
        stops=stops,
        tell=tell,
        notify=_notify(agent.name, notifier, tell),
        head=WorkTree(agent.folder).head,
        work=WorkTree(agent.folder).fingerprint,
        signs=lambda head, since: read_signs(agent.folder, head, since),
        windows=lambda: measure_windows(agent, Processes(), stops),
    )


def _ending(project: Callable[[], Project], store: FileStore, agent: Agent, world: World) -> Ending:
    name = agent.name

    def persona() -> str:
        return _persona_of(project().manifest.agents[name])

    def until() -> UntilResult:
        # The operator may have accepted another command since the supervisor started.
        command = tuple(project().manifest.agents[name].until or ())
        return Until(command, agent, world).ask()

    return Ending(
        summarizer=lambda: summarizing.summarizer(project(), store, name, stops=world.stops),
        checkpointer=lambda: summarizing.summarizer(
            project(), store, name, persona(), stops=world.stops
        ),
        known=lambda since: summarizing.known(project(), store, name, since),
        until=until,
    )


def _persona_of(entry: manifest.Agent) -> str:
    """Who writes the agent's checkpoints."""
    compaction = entry.handover.compaction if entry.handover else None
    named = compaction.persona if isinstance(compaction, manifest.Compaction) else None
    return named or summarizing.PERSONA


def _check_addresses(notifier: Notifier, tell: Callable[[Report], None]) -> None:
    """Report addresses that cannot be used: a watchdog may lack a variable that they name."""
    try:
        notifier.check()
    except NotifyError as error:
        tell(Trouble(f"{error}: {error.hint}"))


def _notify(
    name: str, notifier: Notifier, tell: Callable[[Report], None]
) -> Callable[[str, str], None]:
    def notify(what: str, words: str) -> None:
        title, severity = endings.notice(what)
        for failure in notifier.send(f"{name}: {title}", words, severity):
            tell(Trouble(failure))

    return notify


def _agent(
    project: Project,
    store: FileStore,
    name: str,
    program: tuple[str, ...],
    cycles: int | None = None,
) -> Agent:
    entry, harness = project.manifest.agents[name], harness_of(project, name)
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
    persona, instructions = _persona(project, name, entry)
    hook_program.provide()
    folder = (project.path / (entry.dir or AgentDefaults().dir)).resolve()
    programs.exclude(folder)
    passed_on = environment.allowed(os.environ, harness.PASSED_ON, harness.NEVER_PASSED_ON)
    own = _own_environment(project, name, entry.env or {})
    guarded = guard_path(passed_on.get("PATH", ""), folder, harness.CAN, stays=entry.mode == "stay")
    if "PATH" in own or harness.NAME == command.NAME:  # as the operator says; has no sandbox
        guarded = GuardedPath(passed_on.get("PATH", ""))
    if "PATH" in passed_on:
        passed_on["PATH"] = guarded.cli
    agent = Agent(
        name=name,
        harness=harness,
        folder=str(folder),
        task=task,
        rules=text_of(project, entry.rules, "rules"),
        persona=persona,
        persona_name=entry.persona or AgentDefaults().persona,
        instructions=instructions,
        environment={**passed_on, **own},
        hook=(sys.executable, "-I", "-S", str(hook_program.path())),
        scratch=str(private.of_project(project.path).make_agent(name).launch),
        protected=(*protected.paths(project.path, folder), *guarded.protected),
        path=guarded.agent,
        program=program,
        budget=entry.budget,
        prices=project.manifest.prices,
        stays=entry.mode == "stay",
        cycles=cycles_of(entry) if cycles is None else cycles,
        drafts=True,
        threshold=handoff.threshold(entry.handover, project.settings.runtime.relay),
        until_claimed=bool(entry.until_claimed),
        converges=bool(entry.convergence),
        keep=tuple(entry.keep or ()),
        may_control=bool(entry.may_control),
    )
    for role in dict.fromkeys((summarizing.PERSONA, _persona_of(entry))):
        summarizing.check(project, name, role)
    _refuse_unpriced(project, agent)
    _refuse_unenforced(project, agent, entry.persona or AgentDefaults().persona)
    return agent


def _refuse_unpriced(project: Project, agent: Agent) -> None:
    """A cap on money that nobody could hold it to."""
    cap = agent.budget.usd if agent.budget else None
    tells = agent.harness.CAN.reports_money and not agent.stays
    if cap is not None and not tells and not agent.prices:
        where = " in a terminal" if agent.stays else ""
        raise ManifestError(
            f"agent {agent.name}: {agent.harness.NAME} does not say{where} what it costs,"
            " and `prices:` is empty",
            line=project.marked.line(("agents", agent.name, "budget")),
            hint="add `prices: {MODEL: {input: …, output: …}}`, in dollars for a million tokens,"
            " or cap `tokens:` instead",
        )


def _own_environment(project: Project, name: str, own: dict[str, str]) -> dict[str, str]:
    """What the manifest adds; `$NAME` takes a variable of ours over, so that no secret is in it."""
    found = {}
    for key, value in own.items():
        wanted = value.removeprefix("$") if _OURS.match(value) else None
        unfit = "\0" in key + value or "=" in key or not key
        if unfit or (wanted is not None and wanted not in os.environ):
            raise ManifestError(
                f"agent {name}: {one_line(key)!r} cannot be set"
                + (f": ${wanted} is not there" if wanted and not unfit else ""),
                line=project.marked.line(("agents", name, "env")),
                hint=f"export {wanted} first, or remove it" if wanted else "correct it",
            )
        found[key] = os.environ[wanted] if wanted is not None else value
    return found


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
    start = Start(
        session=session,
        persona=agent.persona,
        instructions=agent.instructions,
        program=agent.program,
    )
    try:
        agent.harness.command(start)
    except (UsageError, UnenforceableError) as error:
        said = error.message if isinstance(error, ManifestError) else error
        raise ManifestError(
            f"agent {agent.name}: {said}",
            line=project.marked.line(("personas", persona, "permissions")),
            hint=error.hint,
        ) from error


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
