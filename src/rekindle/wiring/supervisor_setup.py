"""Build an agent's supervisor from the manifest, the store and this host."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from rekindle.config import Project, load_project
from rekindle.documents.commits.snapshot_commit import Snapshot, SnapshotLabel
from rekindle.documents.events import ReviewMade
from rekindle.errors import NotifyError, RekindleError, WorkspaceError
from rekindle.flows.cycles.close_cycle import CycleEndPorts
from rekindle.flows.cycles.review_end import EndReviewer
from rekindle.flows.cycles.work_signs import read_work_signs
from rekindle.flows.handoff.measure_windows import measure_windows
from rekindle.flows.launches.checked_command import CheckedCommand, CommandResult
from rekindle.flows.operator.stop_check import StopCheck
from rekindle.flows.supervision.supervisor import RunResult, Supervisor
from rekindle.flows.supervision.supervisor_steps import SupervisorSteps
from rekindle.flows.supervisor_ports import (
    AgentSpec,
    SettingsReport,
    SupervisorPorts,
    SupervisorReport,
    TroubleReport,
)
from rekindle.policy.exits import explain_reasons
from rekindle.policy.exits.stop_reasons import StopReason
from rekindle.policy.operator.make_notification import make_notice
from rekindle.policy.operator.notification_kinds import NotificationKind
from rekindle.policy.settings.runtime_settings import (
    UNTIL_SECONDS,
)
from rekindle.policy.supervision.budget import RunSpending
from rekindle.stores.files import FileStore
from rekindle.system import clock, host
from rekindle.system.git.work_snapshots import WorkSnapshots
from rekindle.system.git.work_status import GitStatus
from rekindle.system.notifications import Notifier
from rekindle.system.processes.child_processes import HostProcesses, Interruption
from rekindle.system.terminal.keyboard import Keyboard
from rekindle.system.terminal.pty_process import TerminalProcesses
from rekindle.wiring import summarizer_setup as summarizing
from rekindle.wiring.access import (
    trust_checks,
)
from rekindle.wiring.agent_quota import AgentQuota
from rekindle.wiring.agent_workspaces import find_workspace, make_opener
from rekindle.wiring.credential_setup import make_host_notifier
from rekindle.wiring.make_agent import make_agent
from rekindle.wiring.starting import background_start
from rekindle.wiring.starting.reviewing_agent import with_reviewer
from rekindle.wiring.starting.routed_agent import RoutedAgent
from rekindle.wiring.starting.start_checks import (
    find_checkpoint_persona,
)


def run_supervisor(
    project: Project,
    store: FileStore,
    name: str,
    tell: Callable[[SupervisorReport], None],
    *,
    once: bool = False,
    for_watchdog: bool = False,
    for_up: bool = False,
    program: tuple[str, ...] = (),
    cycles: int | None = None,
    unbounded: bool = False,
    load: Callable[[Path], Project] = load_project,
) -> RunResult:
    """Run an agent's supervisor until it ends. `program` replaces the CLI's own program.

    `unbounded` lifts the limits on work without progress. `load` reads the project again.
    """
    routed = RoutedAgent(
        project, store, name, tell, cycles=cycles, program=program, on_this_host=not for_watchdog
    )
    agent = routed.agent
    if not (for_watchdog or for_up):
        _accept_command(project, store, name, tell)
    notifier = Notifier(trust_checks.find_accepted_notify(project, name), store.redaction)
    if for_watchdog:
        _check_addresses(notifier, tell)
    else:
        background_start.remember_environment(store, project, name)

    def reload_spec() -> AgentSpec | None:
        try:
            reloaded = load(project.path)
            if trust_checks.explain_unaccepted(reloaded, name):
                return None  # the agent stays in safe mode until `restart` accepts the change
            new_spec = routed.accept(reloaded)
        except (RekindleError, KeyError) as error:
            tell(TroubleReport(f"the agent keeps its previous settings: {error}"))
            return None
        if new_spec.stays != agent.stays:
            return None  # another mode needs another supervisor
        return new_spec

    def find_unaccepted() -> str:
        try:
            return trust_checks.explain_unaccepted(load(project.path), name)
        except (RekindleError, KeyError) as error:
            return f"rekindle.yaml cannot be read: {error}"

    def settings_stamp() -> object:
        return trust_checks.stamp_settings(project, name)

    quota = AgentQuota(lambda: routed.accepted, name)
    with Interruption() as interruption:
        world = _make_ports(
            project,
            store,
            agent,
            tell=tell,
            notifier=notifier,
            interruption=interruption,
            quota=quota,
        )
        world = msgspec.structs.replace(
            world,
            rechecks_quota=True,
            renewed=reload_spec,
            open_route=routed.open,
            windows=lambda: measure_windows(routed.agent, HostProcesses(), world.stops),
            unaccepted=find_unaccepted,
            settings_stamp=settings_stamp,
            take_snapshot=partial(_take_snapshot, project, agent),
            open_workspace=make_opener(project, name),
        )
        ending = _make_end_ports(lambda: routed.project, store, agent, world)
        supervisor = Supervisor(
            agent,
            world,
            once=once,
            by_watchdog=for_watchdog,
            is_recorded=for_up,
            unbounded=unbounded,
            ending=ending,
        )
        try:
            return supervisor.run()
        finally:
            quota.leave()


def check_settings(project: Project, store: FileStore, name: str) -> None:
    """Refuse settings that `run` would refuse, before a command accepts them.

    Raises:
        RekindleError: The error that `run` would raise.
    """
    check_agent(project, store, name)
    check_notify(project, store)


def check_agent(project: Project, store: FileStore, name: str) -> None:
    """Refuse an agent's settings if `run` would refuse them; `notify:` is not checked.

    Raises:
        RekindleError: The error that `run` would raise.
    """
    make_agent(project, store, name, (), on_this_host=True)


def check_notify(project: Project, store: FileStore) -> None:
    """Refuse `notify:` addresses that cannot receive notifications.

    Raises:
        NotifyError: An address cannot be used, or the program that sends to it is not installed.
    """
    Notifier(project.manifest.notify, store.redaction).check()


def _accept_command(
    project: Project, store: FileStore, name: str, tell: Callable[[SupervisorReport], None]
) -> None:
    """Accept the settings of an agent that the operator runs here rather than in a tmux window."""
    check_notify(project, store)
    if changes := trust_checks.accept_settings(project, name):
        tell(SettingsReport(changes))
    background_start.note_window(store, name, is_wanted=False)


def make_steps(
    project: Project,
    store: FileStore,
    name: str,
    tell: Callable[[SupervisorReport], None],
    interruption: Interruption,
    *,
    fold_every: float,
    reports_wait: float = 0.0,
) -> SupervisorSteps:
    """Return a supervisor's steps on this host. The fleet decides when to run them."""
    agent = make_agent(project, store, name, ())
    notifier = make_host_notifier(project.manifest.notify, store.redaction)
    world = _make_ports(
        project, store, agent, tell=tell, notifier=notifier, interruption=interruption
    )
    world = msgspec.structs.replace(world, fold_every=fold_every, reports_wait=reports_wait)
    return SupervisorSteps(agent, world, _make_end_ports(lambda: project, store, agent, world))


def make_command_ports(
    project: Project, store: FileStore, name: str, interruption: Interruption
) -> tuple[AgentSpec, SupervisorPorts]:
    """Return the agent and ports for a command that runs in the agent's folder and sandbox."""
    agent = make_agent(project, store, name, ())
    quiet, notifier = (lambda _: None), Notifier((), store.redaction)
    return agent, _make_ports(
        project, store, agent, tell=quiet, notifier=notifier, interruption=interruption
    )


def _make_ports(
    project: Project,
    store: FileStore,
    agent: AgentSpec,
    *,
    tell: Callable[[SupervisorReport], None],
    notifier: Notifier,
    interruption: Interruption,
    quota: AgentQuota | None = None,
) -> SupervisorPorts:
    answers = explain_reasons.render_answer(agent.name)
    unread = f"your input here is not read; answer in another terminal: {answers}"
    keyboard = Keyboard(lambda: tell(TroubleReport(unread)))
    stops = StopCheck(store, agent.name, lambda: interruption.count, time.monotonic)
    quota = quota or AgentQuota(lambda: project, agent.name)
    tree = GitStatus(agent.folder)
    return SupervisorPorts(
        store=store,
        processes=(TerminalProcesses if agent.stays else HostProcesses)(
            keep=agent.keep, adopts=True
        ),
        settings=project.settings,
        clock=clock.read_clock,
        elapsed=time.monotonic,
        rest=keyboard.rest,
        interrupted=lambda: interruption.count,
        by_hand=lambda: interruption.by_hand,
        enter_pressed=keyboard.was_pressed,
        stops=stops,
        tell=tell,
        notify=_make_notify(project, agent.name, notifier, tell),
        head=tree.head,
        work=tree.fingerprint,
        note_quota=quota.note_quota,
        note_spending=quota.note_spending,
        route_hold=quota.find_hold,
        note_hold=quota.note_hold,
        route_stop=quota.find_stop,
        signs=partial(read_work_signs, tree, agent.folder),
        windows=lambda: measure_windows(agent, HostProcesses(), stops),
    )


def _take_snapshot(
    project: Project, agent: AgentSpec, label: SnapshotLabel
) -> tuple[Snapshot, bool] | None:
    """Snapshot the work tree, and publish the commits of the agent's own clone.

    Return None if git is unavailable or the manifest forbids snapshots.
    """
    workspace = find_workspace(project, agent.name)
    try:
        if not project.settings.runtime.snapshots.take:
            return None
        return WorkSnapshots(Path(agent.folder)).take(label, reuse=label.reason != "start")
    except WorkspaceError as error:
        if error.cause in {"outside", "absent"}:
            return None
        raise
    finally:
        if workspace is not None:
            workspace.publish(label.at)


def _make_end_ports(
    project: Callable[[], Project], store: FileStore, agent: AgentSpec, world: SupervisorPorts
) -> CycleEndPorts:
    name = agent.name

    def find_persona() -> str:
        return find_checkpoint_persona(project().manifest.agents[name])

    def ask_until() -> CommandResult:
        # The operator may have accepted another command since the supervisor started.
        command = tuple(project().manifest.agents[name].until or ())
        return CheckedCommand(command, agent, world, seconds=UNTIL_SECONDS).run()

    def review_end(number: int, relay: str, spent: RunSpending) -> ReviewMade | None:
        reviewing = with_reviewer(project(), name)
        if reviewing is None:
            return None
        return EndReviewer(lambda: make_agent(reviewing, store, name, ()), world).make(
            number, relay, spent
        )

    return CycleEndPorts(
        review=review_end,
        summarizer=lambda: summarizing.make_summarizer(project(), store, name, stops=world.stops),
        checkpointer=lambda: summarizing.make_summarizer(
            project(), store, name, find_persona(), stops=world.stops
        ),
        known=lambda since: summarizing.collect_known_work(project(), store, name, since),
        until=ask_until,
    )


def _check_addresses(notifier: Notifier, tell: Callable[[SupervisorReport], None]) -> None:
    """Report unusable addresses. A watchdog may lack a variable that an address refers to."""
    try:
        notifier.check()
    except NotifyError as error:
        tell(TroubleReport(f"{error}: {error.hint}"))


def _make_notify(
    project: Project, name: str, notifier: Notifier, tell: Callable[[SupervisorReport], None]
) -> Callable[[StopReason | NotificationKind, str], None]:
    def send_notice(what: StopReason | NotificationKind, words: str) -> None:
        notice = make_notice(name, what, words, project=project.path.name, host=host.name())
        # Only the coordinator reports that a pipeline's worker has ended normally.
        is_usual = name in project.workers and notice.severity in {"info", "success"}
        for failure in (
            () if is_usual else notifier.send(notice.title, notice.body, notice.severity)
        ):
            tell(TroubleReport(failure))

    return send_notice
