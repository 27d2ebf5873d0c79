"""One cycle of an agent, kept alive until it is done or nothing more can be tried."""

import secrets
import uuid
from contextlib import suppress

import msgspec

from rekindle.documents import event as events
from rekindle.documents import primer
from rekindle.documents.launch import Exit, Start
from rekindle.errors import ProgramMissingError, RekindleError, StoreError
from rekindle.flows.compose_primer import compose_primer
from rekindle.flows.launch import Agent, Fell, Launch, Launching, World, ends_of, lines_of
from rekindle.policy import cycle as policy
from rekindle.policy import sessions
from rekindle.policy.cycle import Fresh, Over, Resume
from rekindle.policy.fold import Projection
from rekindle.policy.sessions import Attempt
from rekindle.policy.settings import ORPHAN_SECONDS, STOP_SECONDS


class Outcome(msgspec.Struct, frozen=True):
    cycle: int
    kind: str
    """`clean`, or what stands in the way."""
    last: Exit | None


class RunCycle:
    """The supervisor of one agent for one cycle."""

    def __init__(self, agent: Agent, world: World) -> None:
        self._agent = agent
        self._world = world
        self._last: Exit | None = None

    def run(self) -> Outcome:
        with self._world.store.supervising(self._agent.name):
            since = self._known().seq
            self._settle()
            number = self._open()
            while True:
                tried = list(sessions.of_cycle(self._known().attempts, number).values())
                limits = self._world.settings.runtime.restart
                step = policy.next_step(tried, since=since, now=self._world.clock(), limits=limits)
                if isinstance(step, Over):
                    if step.outcome == "clean":
                        self._append(events.CycleEnded(ts=self._world.clock(), cycle=number))
                    return Outcome(number, step.outcome, self._last)
                if self._world.interrupted():
                    return Outcome(number, "interrupted", self._last)
                if isinstance(step, Resume) and not self._can_go_on(tried[-1]):
                    step = Fresh(recovery=True)
                self._launch(number, step)

    def _can_go_on(self, last: Attempt) -> bool:
        """Whether the last session is there to go on with, whole, and is this CLI's own.

        A file that somebody put in the place of its transcript would be taken for it by a CLI that
        goes by names alone; and one that a power loss has cut, for all that there was. Where there
        is none, the CLI says so itself.
        """
        harness = self._agent.harness
        if not harness.CAN.resumes or last.harness != harness.NAME:
            return False
        life = self._world.store.read(self._agent.name).projection.lives.get(last.session)
        kept = ends_of(life.transcript) if life is not None and life.transcript else b""
        if life is None or not kept:
            return True
        prompt = life.asked.call if life.asked else ""
        is_whole = not prompt or harness.holds(lines_of(life.transcript), prompt)
        return is_whole and last.session.encode() in kept

    def _known(self) -> Projection:
        return self._world.store.read(self._agent.name).committed

    def _append(self, *new: events.AnyEvent) -> None:
        with self._world.store.writer(self._agent.name, wait=STOP_SECONDS) as writer:
            writer.fold()
            writer.append(*new)
            writer.project()

    def _settle(self) -> None:
        """End what a supervisor that is gone has left running, before anything is started."""
        for mark, one in self._known().attempts.items():
            if one.exit:
                continue
            # The agent itself may be among them, told to end by its supervisor's death and still
            # writing its transcript.
            swept = self._world.processes.end_marked(
                mark, boot=one.boot, uptime=one.uptime, patience=STOP_SECONDS
            )
            found = Exit("crash", "its supervisor was gone before it ended")
            reported = self._opened_by(mark)
            self._append(
                events.LaunchEnded(
                    ts=self._world.clock(),
                    launch=mark,
                    cycle=one.cycle,
                    session=one.session or reported,
                    exit=policy.LOST,
                    resumes=one.resumes,
                    # Without hooks of its own nobody knows how far it came.
                    opened=bool(reported) or not self._agent.harness.CAN.launch_hooks,
                    words=found.words,
                    swept=swept,
                )
            )
            self._world.tell(Fell(found, swept))

    def _opened_by(self, mark: str) -> str:
        """The session that hooks told of, whether or not somebody has folded that yet."""
        lives = self._world.store.read(self._agent.name).projection.lives
        return sessions.of_launch(lives, mark)

    def _open(self) -> int:
        """Go on with the cycle that was begun, or begin the next."""
        known = self._known()
        if known.is_cycle_open:
            return known.cycle
        self._append(events.CycleStarted(ts=self._world.clock(), cycle=known.cycle + 1))
        return known.cycle + 1

    def _launch(self, number: int, step: Fresh | Resume) -> None:
        launch = Launch(secrets.token_hex(8), self._agent, self._world, self._plan(step))
        recovery = isinstance(step, Fresh) and step.recovery
        prompt = self._prompt(recovering=recovery) if isinstance(step, Fresh) else primer.RESUMED
        boot, uptime = self._world.processes.boot(), self._world.processes.uptime()
        # Known before it is started: whoever finds it without an end looks for what it left.
        self._append(
            events.LaunchStarted(
                ts=self._world.clock(),
                launch=launch.mark,
                cycle=number,
                session=launch.start.session,
                harness=self._agent.harness.NAME,
                resumes=launch.start.resumes,
                recovery=recovery,
                boot=boot,
                uptime=uptime,
            )
        )
        self._world.tell(Launching(number, launch.start.session, launch.start.resumes, recovery))
        try:
            found = launch.run(prompt)
        except RekindleError as error:
            # Nothing was started: an open launch would be taken for a session to go on with.
            with suppress(StoreError):  # then the next run finds it open, and settles it
                self._ended(number, launch, Exit("crash", str(error)), swept=0)
            if isinstance(error, ProgramMissingError):
                error.hint = error.hint or self._agent.harness.INSTALL
            raise
        # What it left behind goes before anything else is started.
        swept = self._world.processes.end_marked(
            launch.mark, boot=boot, uptime=uptime, patience=ORPHAN_SECONDS
        )
        self._last = found
        self._ended(number, launch, found, swept=swept)
        self._world.tell(Fell(found, swept))

    def _plan(self, step: Fresh | Resume) -> Start:
        own = str(uuid.uuid4()) if self._agent.harness.CAN.names_sessions else ""
        return Start(
            session=step.session if isinstance(step, Resume) else own,
            resumes=isinstance(step, Resume),
            persona=self._agent.persona,
            instructions=self._agent.instructions,
            program=self._agent.program,
        )

    def _prompt(self, *, recovering: bool) -> str:
        composed = compose_primer(
            self._world.store,
            self._agent.name,
            self._world.store.read(self._agent.name),
            now=self._world.clock(),
            settings=self._world.settings,
            rules=self._agent.rules,
            task=self._agent.task,
            recovering=recovering,
        )
        return primer.render(composed)

    def _ended(self, number: int, launch: Launch, found: Exit, *, swept: int) -> None:
        watched, start = launch.watched, launch.start
        usage = launch.usage()
        if usage is not None and watched.finished is not None:
            usage = usage.within(watched.finished.windows)
        opened = watched.opened == (start.session or watched.opened) != ""
        # Who has nothing to go on with opens nothing, and yet was interrupted once it ran.
        ran = launch.code is not None and not self._agent.harness.CAN.resumes
        self._append(
            events.LaunchEnded(
                ts=self._world.clock(),
                launch=launch.mark,
                cycle=number,
                session=start.session or watched.opened,
                exit=found.kind,
                resumes=start.resumes,
                opened=opened or ran,
                words=found.words,
                hint=found.hint,
                resets_at=found.resets_at,
                code=launch.code,
                swept=swept,
                usd=watched.finished.usd if watched.finished else None,
                tokens=usage.tokens if usage else None,
                window=usage.window if usage else None,
            )
        )
