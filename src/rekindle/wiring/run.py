"""Agents that are run."""

import sys
import time
from collections.abc import Callable

import msgspec

from rekindle.config import Project, load
from rekindle.documents.event import ReviewMade
from rekindle.errors import (
    NotifyError,
    RekindleError,
)
from rekindle.flows.end_cycle import Ending
from rekindle.flows.keep_running import KeepRunning, RunResult
from rekindle.flows.measure_windows import measure_windows
from rekindle.flows.review import Review
from rekindle.flows.steps import Steps
from rekindle.flows.stopping import Stopping
from rekindle.flows.until import Until, UntilResult
from rekindle.flows.work_signs import read_signs
from rekindle.flows.world import Agent, Report, SettingsChanged, Trouble, World
from rekindle.policy import handoff
from rekindle.policy.budget import Spent
from rekindle.policy.notices import make_notice
from rekindle.policy.settings import AgentDefaults, cycles_of
from rekindle.stores import private
from rekindle.stores.files import FileStore
from rekindle.system import clock, hook_program, host
from rekindle.system.keyboard import Keyboard
from rekindle.system.notify import Notifier
from rekindle.system.processes import Interruption, Processes
from rekindle.system.terminal import OnTerminal
from rekindle.system.worktree import WorkTree
from rekindle.wiring import protected, trust, watch
from rekindle.wiring import summarize as summarizing
from rekindle.wiring.agent_environment import folder_of, make_environment
from rekindle.wiring.start_checks import (
    checkpoint_persona,
    prices_of,
    read_persona,
    read_program,
    read_task,
    refuse_obstacles,
    with_reviewer,
)
from rekindle.wiring.store import harness_of, text_of


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
    agent = _agent(project, store, name, program, cycles, on_this_host=not kept)
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
    _agent(project, store, name, (), on_this_host=True)


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
        notify=_notify(project, agent.name, notifier, tell),
        head=WorkTree(agent.folder).head,
        work=WorkTree(agent.folder).fingerprint,
        signs=lambda head, since: read_signs(agent.folder, head, since),
        windows=lambda: measure_windows(agent, Processes(), stops),
    )


def _ending(project: Callable[[], Project], store: FileStore, agent: Agent, world: World) -> Ending:
    name = agent.name

    def persona() -> str:
        return checkpoint_persona(project().manifest.agents[name])

    def until() -> UntilResult:
        # The operator may have accepted another command since the supervisor started.
        command = tuple(project().manifest.agents[name].until or ())
        return Until(command, agent, world).ask()

    def review(number: int, relay: str, spent: Spent) -> ReviewMade | None:
        reviewing = with_reviewer(project(), name)
        if reviewing is None:
            return None
        return Review(lambda: _agent(reviewing, store, name, ()), world).make(number, relay, spent)

    return Ending(
        review=review,
        summarizer=lambda: summarizing.summarizer(project(), store, name, stops=world.stops),
        checkpointer=lambda: summarizing.summarizer(
            project(), store, name, persona(), stops=world.stops
        ),
        known=lambda since: summarizing.known(project(), store, name, since),
        until=until,
    )


def _check_addresses(notifier: Notifier, tell: Callable[[Report], None]) -> None:
    """Report addresses that cannot be used: a watchdog may lack a variable that they name."""
    try:
        notifier.check()
    except NotifyError as error:
        tell(Trouble(f"{error}: {error.hint}"))


def _notify(
    project: Project, name: str, notifier: Notifier, tell: Callable[[Report], None]
) -> Callable[[str, str], None]:
    def notify(what: str, words: str) -> None:
        notice = make_notice(name, what, words, project=project.path.name, host=host.name())
        for failure in notifier.send(notice.title, notice.body, notice.severity):
            tell(Trouble(failure))

    return notify


def _agent(
    project: Project,
    store: FileStore,
    name: str,
    program: tuple[str, ...],
    cycles: int | None = None,
    *,
    on_this_host: bool = False,
) -> Agent:
    """Return the agent as the manifest describes it.

    `on_this_host`: refuse it also if its folder or its program is not here. A supervisor that a
    watchdog starts does not: the launch records what is missing.
    """
    refuse_obstacles(project, name, program, on_this_host=on_this_host)
    entry, harness = project.manifest.agents[name], harness_of(project, name)
    store.create(name)
    persona, instructions = read_persona(project, name)
    hook_program.provide()
    folder = folder_of(project, name)
    environment = make_environment(project, name)
    return Agent(
        name=name,
        harness=harness,
        folder=str(folder),
        task=read_task(project, name),
        rules=text_of(project, entry.rules, "rules"),
        persona=persona,
        persona_name=entry.persona or AgentDefaults().persona,
        instructions=instructions,
        environment=environment.variables,
        hook=(sys.executable, "-I", "-S", str(hook_program.path())),
        scratch=str(private.of_project(project.path).make_agent(name).launch),
        protected=(*protected.paths(project.path, folder), *environment.path.protected),
        path=environment.path.agent,
        program=program or read_program(project, name),
        budget=entry.budget,
        prices=prices_of(project, name),
        stays=entry.mode == "stay",
        cycles=cycles_of(entry) if cycles is None else cycles,
        drafts=True,
        threshold=handoff.threshold(entry.handover, project.settings.runtime.relay),
        project=str(project.path),
        relay=entry.relay or "",
        until_claimed=bool(entry.until_claimed),
        converges=bool(entry.convergence),
        keep=tuple(entry.keep or ()),
        may_control=bool(entry.may_control),
    )
