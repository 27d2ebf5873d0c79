"""A cycle of an agent: which launch comes next, begun and ended in the log."""

import secrets
import uuid
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec

from rekindle.documents import event as events
from rekindle.documents import primer, progress
from rekindle.documents.background import tell_ended
from rekindle.documents.launch import Exit, Start, Swept
from rekindle.errors import ProgramMissingError, RekindleError, StoreError, TamperedLogError
from rekindle.flows import transcripts
from rekindle.flows.archive_transcripts import ArchiveTranscripts
from rekindle.flows.ask_person import AskPerson
from rekindle.flows.background import BackgroundProcesses
from rekindle.flows.compose_primer import compose_primer
from rekindle.flows.launch import Launch
from rekindle.flows.own_relay import OwnRelay
from rekindle.flows.refusals import (
    Refusals,
    find_refused,
    without_permission,
)
from rekindle.flows.work_signs import with_resolved
from rekindle.flows.world import Agent, Fell, Launching, Trouble, World
from rekindle.policy import budget, handoff, limits, sessions, tokens
from rekindle.policy.cycle import Fresh, Resume
from rekindle.policy.endings import checkpoints
from rekindle.policy.fold import Heard, Projection
from rekindle.policy.progress import name_series
from rekindle.policy.progress import progress as find_progress
from rekindle.policy.restart import HANDED_OFF, LOST
from rekindle.policy.sessions import Attempt
from rekindle.policy.settings import STOP_SECONDS
from rekindle.policy.supervise import measure_idle
from rekindle.system import disk


class RunCycle:
    """The launches of one agent, one after the other; only its supervisor calls it."""

    def __init__(self, agent: Agent, world: World) -> None:
        self._agent = agent
        self._world = world
        self.last: Exit | None = None
        self.person = AskPerson(agent, world)
        self._background = BackgroundProcesses(agent, world)
        self._asked_for = ""
        """What its person asked for last, where the session was stopped for another."""

    def known(self) -> Projection:
        """What the log says, with everything in it that others have handed in."""
        seen = self._world.store.read(self._agent.name)
        if seen.is_tampered:
            raise TamperedLogError(self._agent.name, seen.condition)
        if not seen.pending and seen.projection.run.said == seen.committed.run.said:
            return seen.committed
        try:
            with self._world.store.writer(self._agent.name, wait=STOP_SECONDS) as writer:
                writer.fold()
                return writer.projection
        except StoreError as error:
            # A full disk must not keep a stop from being obeyed; what would start anything has
            # to be appended first, and fails there.
            self._world.tell(Trouble(str(error)))
            return seen.projection

    def append(self, *new: events.AnyEvent) -> Projection:
        with self._world.store.writer(self._agent.name, wait=STOP_SECONDS) as writer:
            writer.fold()
            writer.append(*self.person.with_questions(writer.projection, new))
            writer.project()
            return writer.projection

    def settle(self) -> None:
        """End what a supervisor that is gone has left running, before anything is started."""
        known = self.known()
        for mark, one in known.attempts.items():
            if one.exit:
                continue
            swept = self._background.settle(mark, boot=one.boot, uptime=one.uptime)
            found = Exit("crash", "its supervisor was gone before it ended")
            reported = self._opened_by(mark)
            spent = known.run.spent_of_run()
            self.append(
                events.LaunchEnded(
                    ts=self._world.clock(),
                    launch=mark,
                    cycle=one.cycle,
                    session=one.session or reported,
                    exit=LOST,
                    resumes=one.resumes,
                    # Without hooks of its own nobody knows how far it came.
                    opened=bool(reported) or not self._agent.harness.CAN.launch_hooks,
                    words=found.words,
                    swept=swept.processes,
                    ended=self._background.told(swept),
                    seconds=_worked(one, known.heard),
                    run_usd=spent.usd,
                    run_tokens=spent.tokens,
                    unpriced=spent.unpriced + self._is_unpriced(),
                    signs=self._signs(one.head, one.began.timestamp() if one.began else 0.0),
                )
            )
            self._world.tell(Fell(found, swept.processes))
        if known.attempts:
            self._archive()  # whoever is gone may have ended before it did

    def end_kept(self) -> None:
        """End what outlived the launches: the run is over, or the operator has stopped it."""
        self._background.end_kept()

    def _signs(self, head: str, since: float) -> events.WorkSigns | None:
        """Return the work that can be seen after a commit and a moment."""
        known = self.known()
        signs = with_resolved(self._world.signs(head, since), known, since)
        return name_series(signs, measure_idle(known).signs) if signs else None

    def _is_unpriced(self) -> bool:
        """Whether only the CLI's last account would have said what a launch has cost."""
        return self._agent.harness.CAN.reports_money and not self._agent.prices

    def _opened_by(self, mark: str) -> str:
        """The session that hooks told of, whether or not somebody has folded that yet."""
        lives = self._world.store.read(self._agent.name).projection.lives
        return sessions.of_launch(lives, mark)

    def open(self) -> int:
        """Go on with the cycle that was begun, or begin the next."""
        known = self.known()
        number = known.cycle_now
        if known.is_cycle_open:
            return number
        OwnRelay(self._agent, self._world).begin()
        known = self.known()
        standing = known.documents.get("relay")
        started = events.CycleStarted(
            ts=self._world.clock(),
            cycle=number,
            relay=standing.path if standing else "",
            head=self._world.head(),
        )
        if self._agent.drafts:
            # Of an earlier cycle, which was not taken: this one has still to write its own.
            self._world.store.folder(self._agent.name).put_draft_away()
        self.append(started)
        return number

    def tell_progress(self) -> None:
        """Say for people what the cycles did; that it cannot be said ends nothing."""
        if not self._agent.drafts:
            return
        known = self.known()
        lines = [
            progress.Line(
                cycle=one.cycle,
                ts=one.ts,
                verdict=one.verdict,
                did=one.did,
                evidence=one.evidence,
                words=one.words,
            )
            for _, one in sorted(known.ended.items(), reverse=True)
        ]
        text = progress.render(self._agent.name, lines)
        try:
            disk.replace(self._world.store.folder(self._agent.name).progress, text.encode())
        except RekindleError as error:
            self._world.tell(Trouble(str(error)))

    def launch(self, number: int, step: Fresh | Resume, tried: list[Attempt]) -> None:
        """Start a process, follow it, and keep what became of it."""
        if isinstance(step, Resume) and not self._can_go_on(tried[-1]):
            step = Fresh(recovery=True, why="its session is not there to go on with")
        folder = self._world.store.folder(self._agent.name)
        fresh = folder.fresh
        known = self.known()
        is_asked = bool(tried) and known.fresh_asked > tried[-1].seq
        if isinstance(step, Resume) and (is_asked or fresh.exists()):
            step = Fresh(recovery=False, why="as the operator said")
        spent, handed = known.run.spent_of_run(), self._handed(known, step, tried)
        recovery = isinstance(step, Fresh) and step.recovery
        asked = self._asked(known, tried) if handed and self._agent.stays else ""
        told = tell_ended(tried[-1].swept) if tried else ""
        prompt = f"{primer.RESUMED}\n{told}\n" if told else primer.RESUMED
        if isinstance(step, Fresh):
            prompt = self._prompt(recovering=recovery, asked=asked)
        cap = budget.raise_caps(self._agent.budget, known.run.raised_of_run())
        agent = msgspec.structs.replace(self._agent, budget=cap)
        plan = self._plan(step, agent, spent.usd, prompt)
        windows = self._windows(known)
        if self._is_stopped_since(known):
            return  # while it was measured
        launch = Launch(secrets.token_hex(8), agent, self._world, plan, spent, windows=windows)
        launch.bound(measure_idle(known), lifted=known.run.bounds.lifted)
        origin = events.LaunchStarted(
            ts=self._world.clock(),
            launch=launch.mark,
            cycle=number,
            session=launch.start.session,
            harness=self._agent.harness.NAME,
            resumes=launch.start.resumes,
            recovery=recovery,
            why=step.why if isinstance(step, Fresh) else "",
            boot=self._world.processes.boot(),
            uptime=self._world.processes.uptime(),
            head=self._world.head(),
        )
        # Known before it is started: whoever finds it without an end looks for what it left.
        begun: list[events.AnyEvent] = [origin]
        if handed:
            begun.append(
                events.HandoffResumed(
                    ts=origin.ts,
                    launch=origin.launch,
                    cycle=number,
                    count=handoff.count(tried) + 1,
                    checkpoint=handed,
                )
            )
        origin = msgspec.structs.replace(origin, seq=self.append(*begun).seq)
        # Only now: killed in between, the next one is fresh too, which loses nothing.
        folder.remove(fresh)
        self._world.tell(
            Launching(number, origin.session, origin.resumes, origin.recovery, origin.why)
        )
        try:
            found = launch.run(prompt, origin, self._weighed_against(step), self._background)
        except RekindleError as error:
            # Its folder may have been lost while it ran: what it started must not outlive us.
            self._background.end(origin)
            # Nothing was started: an open launch would be taken for a session to go on with.
            with suppress(StoreError):  # then the next run finds it open, and settles it
                self._ended(number, launch, Exit("crash", str(error)), Swept(), started=False)
            if isinstance(error, ProgramMissingError):
                error.hint = error.hint or self._agent.harness.INSTALL
            raise
        # What it left behind goes before anything else is started.
        swept = self._background.end(origin)
        self.last = found = self._ended(number, launch, found, swept)
        self._world.tell(Fell(found, swept.processes))
        if found.kind != HANDED_OFF:  # else the next launch's end has both: nobody waits for it now
            self._archive()

    def _handed(self, known: Projection, step: Fresh | Resume, tried: list[Attempt]) -> str:
        """Where the checkpoint is that a fresh session goes on with; empty: it has none."""
        standing = known.documents.get("checkpoint")
        if not isinstance(step, Fresh) or standing is None or not tried:
            return ""
        is_handed = checkpoints(tried[-1].exit)
        return standing.path if is_handed and standing.seq > tried[-1].ended_seq else ""

    def _is_stopped_since(self, known: Projection) -> bool:
        """Whether the operator has said so after what is known: only measuring takes any time."""
        if self._world.interrupted():
            return True
        now = self.known().run
        return now.said != known.run.said and now.desired == "stopped"

    def _windows(self, known: Projection) -> dict[str, int]:
        """How large the windows of the CLI's models are; it is asked once, where nobody knows any.

        What it says at a launch's end keeps that up to date.
        """
        harness = self._agent.harness
        learnt = known.windows.get(harness.NAME, {})
        if not learnt and self._agent.threshold is not None:
            found = self._world.windows()
            self._learn(known, found)
            return dict(found)
        return {model: one.window for model, one in sorted(learnt.items(), key=lambda it: it[1])}

    def _learn(self, known: Projection, found: Mapping[str, int]) -> None:
        learnt = known.windows.get(self._agent.harness.NAME, {})
        news = [
            events.WindowLearnt(
                ts=self._world.clock(),
                harness=self._agent.harness.NAME,
                model=model,
                window=window,
            )
            for model, window in found.items()
            if model not in learnt or learnt[model].window != window
        ]
        if news:
            self.append(*news)

    def _archive(self) -> None:
        """Keep what was said and done; that it cannot be kept must not end the agent's work."""
        if not self._world.settings.runtime.archive.transcripts:
            return
        try:
            ArchiveTranscripts(self._world.store, self._agent.name, [self._agent.harness]).all()
        except RekindleError as error:
            self._world.tell(Trouble(str(error)))

    def _weighed_against(self, step: Fresh | Resume) -> int | None:
        """What a fresh session would be told, where it may be the cheaper one; in tokens."""
        wanted = self._world.settings.runtime.restart.fresh_when_cheaper
        if isinstance(step, Fresh) or not wanted or not self._agent.harness.CAN.launch_hooks:
            return None
        return tokens.estimate(self._prompt(recovering=True))

    def _can_go_on(self, last: Attempt) -> bool:
        """Whether the last session is there to go on with, whole, and is this CLI's own.

        A file that somebody put in the place of its transcript would be taken for it by a CLI that
        goes by names alone; and one that a power loss has cut, for all that there was. Where there
        is none, the CLI says so itself.
        """
        harness = self._agent.harness
        if not harness.CAN.resumes or last.harness != harness.NAME:
            return False
        if last.seq < self.known().moved.seq:
            return False  # its transcript is on the host that had the agent then
        life = self._world.store.read(self._agent.name).projection.lives.get(last.session)
        kept = transcripts.ends(life.transcript) if life is not None and life.transcript else b""
        if life is None or not kept:
            return True
        prompt = life.asked.call if life.asked else ""
        is_whole = not prompt or harness.holds(transcripts.lines(life.transcript), prompt)
        return is_whole and last.session.encode() in kept

    def _plan(self, step: Fresh | Resume, agent: Agent, spent: float, prompt: str) -> Start:
        own = str(uuid.uuid4()) if self._agent.harness.CAN.names_sessions else ""
        cap = agent.budget.usd if agent.budget else None
        return Start(
            session=step.session if isinstance(step, Resume) else own,
            resumes=isinstance(step, Resume),
            persona=self._agent.persona,
            instructions=self._agent.instructions,
            program=self._agent.program,
            usd_left=None if cap is None else max(cap - spent, 0.0),
            interactive=self._agent.stays,
            draft=self._draft(),
            prompt=prompt if self._agent.stays else "",
        )

    def _asked(self, known: Projection, tried: list[Attempt]) -> str:
        """What a person has asked for, and the session that was stopped did not begin with.

        As its hook was told; whoever was killed meanwhile has what the log keeps of it.
        """
        if self._asked_for:
            return primer.asked(self._asked_for)
        life = known.lives.get(tried[-1].session)
        return primer.asked(life.asked.text) if life is not None and life.asked else ""

    def _prompt(self, *, recovering: bool, asked: str = "") -> str:
        composed = compose_primer(
            self._world.store,
            self._agent.name,
            self._world.store.read(self._agent.name),
            now=self._world.clock(),
            settings=self._world.settings,
            rules=self._agent.rules,
            task=asked or self._agent.task,
            recovering=recovering,
            draft=self._draft(),
            converges=self._agent.converges,
        )
        return primer.render(composed)

    def _draft(self) -> str:
        """Where it writes the next relay; empty: nobody asks it to."""
        is_asked = self._agent.drafts and self._agent.persona.writes and not self._agent.stays
        if is_asked and self._agent.relay:
            return str(Path(self._agent.project) / self._agent.relay)
        return str(self._world.store.folder(self._agent.name).draft) if is_asked else ""

    def _work(self) -> str:
        """What there is to be seen of the work; empty: nobody knows."""
        seen = self._world.work()
        closed = sum(not one.is_open for one in self.known().loops.values())
        return f"{seen}-{closed}" if seen else ""

    def _ended(
        self, number: int, launch: Launch, found: Exit, swept: Swept, *, started: bool = True
    ) -> Exit:
        """Record how a launch ended, and return it: a clean exit may have been of no use."""
        watched, start = launch.watched, launch.start
        usage = launch.usage()
        found_windows = dict(watched.finished.windows) if watched.finished is not None else {}
        if usage is not None:
            usage = usage.within(launch.gauge.windows | found_windows)
        if self._agent.stays:
            watched.opened = self._opened_by(launch.mark)  # its stream is the person's screen
        opened = watched.opened == (start.session or watched.opened) != ""
        # Who has nothing to go on with opens nothing, and yet was interrupted once it ran.
        ran = launch.code is not None and not self._agent.harness.CAN.resumes
        spent = launch.meter.spent(ended=True)
        now = self._world.clock()
        session = start.session or watched.opened
        sign = launch.last_sign()
        ended: list[events.AnyEvent] = [sign] if sign else []
        if found.kind == HANDED_OFF:
            launch.gauge.told_of(launch.transcript())
            trigger = launch.gauge.trigger(launch.mark, number, session)
            ended.append(msgspec.structs.replace(trigger, work=self._work()))
        self._asked_for = launch.gauge.asked_for() if self._agent.stays else ""
        launch.gauge.end()
        self._learn(self.known(), launch.gauge.windows | found_windows)
        refused = find_refused(self._agent, launch, self._world.store.redaction)
        signs = self._signs(*launch.stretch) if started else None
        is_useless = found.kind == "clean" and self._is_useless(launch, refused, signs)
        if is_useless:
            found = without_permission(self._agent, refused.missing)
        told = frozenset(launch.watched.told_refused)
        # In safe mode one question is enough.
        calls = () if is_useless else refused.missing
        asked = self.person.about_calls(self.known(), calls, launch.mark)
        self.person.tell_refused([*refused.missing, *refused.denied], asked, told)
        end = events.LaunchEnded(
            ts=now,
            launch=launch.mark,
            cycle=number,
            session=session,
            exit=found.kind,
            resumes=start.resumes,
            started=started,
            opened=opened or ran,
            words=found.words,
            hint=found.hint,
            resets_at=_resets_at(found, now),
            code=launch.code,
            refused=len(refused.missing) + len(refused.denied),
            swept=swept.processes,
            ended=self._background.told(swept),
            seconds=launch.seconds,
            usd=watched.finished.usd if watched.finished else None,
            tokens=usage.tokens if usage else None,
            window=usage.window if usage else None,
            known=usage.known if usage else "",
            run_usd=spent.usd,
            run_tokens=spent.tokens,
            unpriced=spent.unpriced,
            billed=watched.billed,
            signs=signs,
            fruitless=launch.fruitless,
        )
        before = self.known().run.refused_of_run()
        self.append(*ended, end, *refused.record(end, before), *asked)
        return found

    def _is_useless(
        self, launch: Launch, refused: Refusals, signs: events.WorkSigns | None
    ) -> bool:
        """Return whether calls were refused for want of a permission, and nothing was done."""
        if not refused.missing or launch.fruitless is not None:
            return False
        return not find_progress(signs, measure_idle(self.known()).signs)


def _resets_at(found: Exit, now: datetime) -> int | None:
    """When a limit ends, made out once, here: the zone and the hour that it was said in count."""
    if found.resets_at is not None or found.kind != "limit":
        return found.resets_at
    zone = now.astimezone().tzinfo
    told = limits.resets_at(found.hint, now=now, zone=zone) if zone else None
    return int(told.timestamp()) + 1 if told else None


def _worked(one: Attempt, heard: Heard) -> float:
    """How long a launch has worked whose end nobody saw: up to its last sign of life."""
    if one.began is None or heard.seq < one.seq:
        return 0.0
    return max(0.0, heard.at - one.began.timestamp())
