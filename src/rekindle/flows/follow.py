"""A process while it runs: what it shows, what the operator says, whether it hangs."""

from collections.abc import Callable, Iterator
from contextlib import closing, suppress

import msgspec

from rekindle.documents import event as events
from rekindle.documents.event import LaunchStarted
from rekindle.documents.identity import one_line
from rekindle.documents.launch import (
    Called,
    Exit,
    Finished,
    Opened,
    RefusedCall,
    Returned,
    Said,
    Seen,
    Usage,
    Used,
    Vitals,
    Warned,
)
from rekindle.errors import (
    FolderLostError,
    LogMissingError,
    RekindleError,
    StoreError,
    TamperedLogError,
)
from rekindle.flows import transcripts
from rekindle.flows.fruitless import Fruitless
from rekindle.flows.gauge import Gauge
from rekindle.flows.meter import Meter
from rekindle.flows.transcribe import Transcribe
from rekindle.flows.watched import Watched
from rekindle.flows.world import Agent, CallRefused, Noticed, Trouble, World
from rekindle.policy import budget, hang
from rekindle.policy.cycle import is_fresh_cheaper
from rekindle.policy.fold import Projection
from rekindle.policy.hang import Signs
from rekindle.policy.run import Run
from rekindle.policy.sessions import Life
from rekindle.policy.settings import BUSY_BYTES, BUSY_SHARE, STOP_SECONDS
from rekindle.ports import Child
from rekindle.thresholds.running import (
    CALL_HELD_SECONDS,
    HELD_TICK_SECONDS,
    LEAVING_SECONDS,
    STREAM_LAG_SECONDS,
    TICK_SECONDS,
)
from rekindle.thresholds.texts import ABOUT_CHARACTERS


class Follow:
    """Follows one process to its end, which it may bring about."""

    def __init__(
        self,
        origin: LaunchStarted,
        agent: Agent,
        world: World,
        child: Child,
        *,
        watched: Watched,
        meter: Meter,
        gauge: Gauge,
        primer_tokens: int | None = None,
        fruitless: Fruitless | None = None,
        on_tick: Callable[[], None] = lambda: None,
        transcribe: Transcribe | None = None,
    ) -> None:
        """With `primer_tokens`, a fresh session may be taken instead of this one.

        With `fruitless`, it is ended when it works for too long without progress.
        """
        self.fruitless, self._on_tick, self._transcribe = fruitless, on_tick, transcribe
        self._origin, self._agent, self._world, self._child = origin, agent, world, child
        self._watched, self._meter, self._gauge = watched, meter, gauge
        self.ending: Exit | None = None
        """Why it was asked to end."""
        self.was_stopped = False
        """By its hook, between two turns: that it then ended well says nothing more."""
        self._calls: dict[str, Called] = {}
        """Calls that have begun and are not reported yet."""
        self._called_at = 0.0
        self._refused: set[str] = set()
        self._is_told_to_end = False
        self._asked_at = 0.0
        now = world.elapsed()
        self._sign_at = self._folded_at = self._looked_at = self._active_at = now
        self._transcript = ""
        self._grown = 0
        self._heard: object = None
        self._counted_to = 0
        """How far the transcript's turns have been counted."""
        self._noted_turns = 0
        """Up to which turn its spending is in the log."""
        self._find_transcript()
        self._vitals: Vitals | None = None
        self._noticed = ""
        self._is_excused = False
        self._trouble = ""
        self._is_handoff_heard = False
        self._run = Run()
        self._weighs = primer_tokens is not None
        self._primer_tokens = primer_tokens or 0
        self._folder = world.store.folder(agent.name)
        self._mark = self._folder.weigh(origin.launch)

    def to_the_end(self) -> None:
        # Closed whatever happens: a traceback would keep it, and with it the person's terminal.
        waits = self._gauge.can_stop and not self._gauge.stops_itself
        tick = HELD_TICK_SECONDS if waits and not self._agent.stays else TICK_SECONDS
        with closing(self._child.follow(tick)) as lines:
            self._follow(lines)
        self._tell_calls()
        # It may have ended before we looked.
        self._heed_brake()
        self._count_turns()

    def _follow(self, lines: Iterator[bytes | None]) -> None:
        watch = self._world.settings.runtime.watch
        for line in lines:
            now = self._world.elapsed()
            if line is not None:
                self._sign(now)
                self._take(line, now)
            else:
                if now - self._called_at > CALL_HELD_SECONDS:
                    self._tell_calls()
                if self._weighs or now - self._folded_at >= self._fold_every():
                    self._folded_at = now
                    self._fold(now)
                if now - self._looked_at >= min(watch.every, watch.silence / 4):
                    self._look(now)
                self._on_tick()
                self._check_folder()
                self._obey()
            self._heed_brake()
            self._count_turns()
            self._keep_to_budget()

    def _heed_brake(self) -> None:
        """Its hook has stopped it: let it end by itself, or end it where it only waits for that.

        Where something runs in its background it would wait for that, and begin another turn.
        """
        if self.ending is None and self._gauge.has_stopped():
            if self._gauge.is_accompanied(self._origin.session or self._watched.opened):
                self._gauge.let_go_on()
                return
            if not self._gauge.take():
                return
            self.was_stopped = True
            self._end(Exit("handoff", self._gauge.words()), gently=self._gauge.stops_itself)
        if self.was_stopped and self._watched.finished and self._gauge.is_kept:
            self._child.kill()
            return
        # Told to end at once, it would take longer than it does by itself.
        is_late = self._world.elapsed() - self._asked_at > LEAVING_SECONDS
        if self.was_stopped and self._watched.finished and is_late and not self._is_told_to_end:
            self._tell_to_end()

    def _take(self, line: bytes, now: float) -> None:
        for seen in self._agent.harness.read_stream(line):
            self._watched.take(seen, now)
            self._meter.take(seen)
            if isinstance(seen, Opened):
                self._gauge.opened(seen)
            if isinstance(seen, Called) and self.was_stopped:
                self._work_on(now)
            self._tell(self._without_secrets(seen))
            if self._transcribe is not None:
                self._transcribe.take(seen)
        if not self._agent.harness.CAN.hooks:
            told = Usage(self._watched.read_and_said, None, "estimated")
            self._meter.take(Used(told, turn="all that it was given and said"))

    def _tell(self, seen: Seen) -> None:
        """Report what it shows; a call once it is known that it was not refused.

        A call that takes longer is reported while it runs: a refusal comes at once.
        """
        match seen:
            case Called():
                self._calls[seen.call] = seen
                self._called_at = self._world.elapsed()
                return
            case Returned():
                if seen.refused:
                    self._refused.add(seen.call)
                elif call := self._calls.pop(seen.call, None):
                    self._world.tell(call)
            case RefusedCall():
                if call := self._calls.pop(seen.call, None):
                    words = f"{call.tool} {call.about}"
                    self._watched.told_refused.append(words)
                    self._world.tell(CallRefused(words))
                return  # others are reported when the launch has ended
            case Said() | Warned() | Finished():
                self._tell_calls()  # in the order in which it happened
            case _:
                pass
        self._world.tell(seen)

    def _tell_calls(self) -> None:
        for call in self._calls.values():
            if call.call not in self._refused:
                self._world.tell(call)
        self._calls.clear()

    def _work_on(self, now: float) -> None:
        """It was told to stop, and began another turn: what it then does must not be cut either.

        What it shows at once is still of the turn behind which it was stopped: we may read it late.
        """
        if now - self._asked_at > STREAM_LAG_SECONDS and not self._is_told_to_end:
            self._gauge.let_go_on()
            self.ending, self.was_stopped = None, False

    def _check_folder(self) -> None:
        """End the process if the agent's folder was wiped or replaced: another may be started."""
        try:
            self._world.store.check_supervision(self._agent.name)
        except FolderLostError as error:
            self._end(Exit("interrupted", str(error)))
        except StoreError as error:
            self._tell_trouble(error)  # a disk that cannot answer now is asked at the next tick

    def _obey(self) -> None:
        """Whoever wants it to end: a signal to us, or the operator's word in the log."""
        times = self._world.interrupted()
        if times and self.ending is None:
            # Whoever sent the signal may have said why in the log, which we read only now and then.
            self._read_run()
        if self._run.desired == "stopped" or (times and self._world.by_hand()):
            self._end(Exit("interrupted", "stopped, as the operator said"))
        elif self._run.restarted > self._origin.seq:
            self._end(Exit("interrupted", "ended for a restart, as the operator said"))
        elif times:
            self._end(Exit("interrupted", "ended with its supervisor, which was told to end"))
        late = self._world.elapsed() - self._asked_at > STOP_SECONDS
        if self.ending is None or not (late or times > 1):
            return
        if self._is_told_to_end:
            self._child.kill()
        else:
            self._tell_to_end()

    def _end(self, why: Exit, *, gently: bool = False) -> None:
        """`gently`: it is about to end by itself, and has so long for it."""
        if self.ending is None:
            self.ending = why
            self._asked_at = self._world.elapsed()
            if not gently:
                self._tell_to_end()

    def _tell_to_end(self) -> None:
        self._is_told_to_end = True
        self._asked_at = self._world.elapsed()
        self._child.ask_to_end()

    def _keep_to_budget(self) -> None:
        """Between two turns and not within a tool call: that is at most one turn too late."""
        if self._watched.calls or self._watched.finished:
            return
        if self.fruitless is not None and self.ending is None:
            usd, billed = self._meter.estimate(), self._watched.billed
            if words := self.fruitless.reached(usd, billed=billed):
                self._end(Exit("interrupted", words))
        cap = self._agent.budget
        if cap is None:
            return
        spent, began = self._meter.certain(), self._run.began_at
        if words := budget.exhausted(spent, cap, began=began, now=self._world.clock()):
            self._end(Exit("interrupted", words))

    def _sign(self, now: float) -> None:
        self._sign_at = self._active_at = now
        self._noticed = ""

    def _fold_every(self) -> float:
        """Soon, where the turns stand in a transcript of which only a hook can tell."""
        is_blind = self._agent.budget is not None and self._agent.harness.CAN.hooks
        is_blind = is_blind or self._gauge.needs_transcript
        return TICK_SECONDS if is_blind and not self._transcript else self._world.fold_every

    def _fold(self, now: float) -> None:
        """Take over what hooks reported; a full disk must not end the agent's work."""
        try:
            with self._world.store.writer(self._agent.name) as writer:
                writer.fold()
                self._note_turns(writer.projection, writer.append)
                if self._transcribe is not None and (sign := self._transcribe.sign()):
                    writer.append(sign)
                    self._heard = writer.projection.heard
                known = writer.projection
        except (TamperedLogError, LogMissingError) as error:
            self._end(Exit("interrupted", str(error)))
            return
        except RekindleError as error:
            self._tell_trouble(error)
            self._read_run()  # the operator's commands count, whether they can be folded or not
            return
        self._run = known.run
        life = known.lives.get(self._origin.session or self._watched.opened)
        self._transcript = life.transcript if life is not None else ""
        self._weigh(life)
        if self._transcript:
            self._gauge.told_of(self._transcript)
        self._hear_of_handoff(known)
        if known.heard != self._heard:
            self._heard = known.heard
            self._sign(now)

    def _read_run(self) -> None:
        """Read the operator's commands without writing anything."""
        with suppress(RekindleError):
            self._run = self._world.store.read(self._agent.name).projection.run

    def _tell_trouble(self, error: RekindleError) -> None:
        if str(error) != self._trouble:
            self._trouble = str(error)
            self._world.tell(Trouble(str(error)))

    def _hear_of_handoff(self, known: Projection) -> None:
        """Somebody has asked for one since this process began; or it is due, and cannot be made."""
        is_asked = known.handoff_asked > self._origin.seq
        if self._is_handoff_heard or not (is_asked or self._gauge.is_due_in_vain()):
            return
        self._is_handoff_heard = True
        if self._gauge.can_stop:
            self._gauge.ask()
            return
        why = "a handoff was asked for" if is_asked else "its window is nearly full"
        name = self._agent.harness.NAME
        words = f"{why}, and {name} cannot be stopped between two turns here: begin a fresh session"
        failed = events.HandoffFailed(
            ts=self._world.clock(), launch=self._origin.launch, words=words
        )
        with suppress(RekindleError), self._world.store.writer(self._agent.name) as writer:
            writer.append(failed)
        self._world.notify("handoff failed", words)

    def _note_turns(
        self,
        known: Projection,
        append: Callable[[events.SpendNoted | events.WindowMeasured], object],
    ) -> None:
        """Record spending and window as they grow: a killed supervisor must not lose them."""
        spent, before = self._meter.spent(), known.run.spent_of_run()
        is_new = self._meter.turns != self._noted_turns
        if not is_new and not budget.is_news(before, spent, self._agent.budget):
            return
        append(
            events.SpendNoted(
                ts=self._world.clock(),
                launch=self._origin.launch,
                tokens=spent.tokens,
                usd=spent.usd,
                unpriced=spent.unpriced,
            )
        )
        self._noted_turns = self._meter.turns
        if measured := self._gauge.measure(self._origin.launch, known.window):
            append(measured)

    def _weigh(self, life: Life | None) -> None:
        """Its start hook waits for this, before the model is asked anything."""
        if not self._weighs or life is None or life.launch != self._origin.launch:
            return
        self._weighs = False
        if is_fresh_cheaper(life, self._primer_tokens):
            words = f"going on costs {life.context_tokens:,} tokens: its cache has expired"
            self._end(Exit("costly", words))
        self._folder.remove(self._mark)

    def _find_transcript(self) -> None:
        """Of a session that goes on: what stands in it by now, earlier launches have counted."""
        if self._origin.resumes:
            lives = self._world.store.read(self._agent.name).projection.lives
            life = lives.get(self._origin.session)
            self._transcript = life.transcript if life is not None else ""
            self._counted_to = transcripts.size(self._transcript) if self._transcript else 0
            self._watched.transcript_began = self._counted_to

    def _count_turns(self) -> None:
        """Of a CLI whose stream tells no turns, from its transcript; every one of them counts."""
        if self._watched.usage is not None or not self._transcript:
            return
        if transcripts.size(self._transcript) <= self._counted_to:
            return
        found = transcripts.since(self._transcript, self._counted_to)
        self._counted_to += len(found)
        turns = [used for line in found.splitlines() if (used := self._agent.harness.turn(line))]
        if not turns:
            return
        self._watched.end_earlier_calls()
        # Which model it was may stand in lines of their own.
        last = self._agent.harness.usage(transcripts.tail(self._transcript), {})
        for used in turns:
            model = used.usage.model or (last.model if last else "")
            usage = msgspec.structs.replace(used.usage, model=model)
            self._meter.take(Used(usage, used.turn))

    def _look(self, now: float) -> None:
        """Does it hang?"""
        since, self._looked_at = now - self._looked_at, now
        grown = transcripts.size(self._transcript) if self._transcript else 0
        if grown != self._grown:
            self._grown = grown
            self._sign(now)
        if self._agent.stays:
            return  # whoever sits before it may well be thinking
        signs = self._signs(now, since)
        was_excused, self._is_excused = self._is_excused, hang.is_excused(signs)
        if was_excused and not self._is_excused and not signs.finished:
            # It has had no time to say anything since it was continued, or since its call returned.
            self._sign(now)
            signs = msgspec.structs.replace(signs, silent=0.0)
        found = hang.verdict(signs, self._world.settings.runtime.watch)
        if found.answer == "fine" or self.ending is not None:
            return
        if found.answer == "reap":
            self._end(Exit("clean", found.words))
        elif found.words != self._noticed:
            self._noticed = found.words
            self._notice(found.words, ended=found.answer == "end")

    def _notice(self, words: str, *, ended: bool) -> None:
        noted = events.HangNoticed(
            ts=self._world.clock(), launch=self._origin.launch, words=words, ended=ended
        )
        try:
            with self._world.store.writer(self._agent.name) as writer:
                writer.append(noted)
        except RekindleError as error:
            self._world.tell(Trouble(str(error)))
        self._world.tell(Noticed(words, ended))
        self._world.notify("no sign of life", words)
        if ended:
            self._end(Exit("hang", words))

    def _signs(self, now: float, since: float) -> Signs:
        before, self._vitals = (
            self._vitals,
            self._world.processes.vitals(
                self._child.pid,
                self._origin.launch,
                boot=self._origin.boot,
                uptime=self._origin.uptime,
            ),
        )
        watched, vitals = self._watched, self._vitals
        oldest = min(watched.calls.values(), default=None)
        signs = Signs(
            silent=now - self._sign_at,
            finished=watched.finished is not None,
            calling=now - oldest if oldest is not None else None,
            reports=self._agent.harness.CAN.hooks,
        )
        if vitals is not None:
            before = before or vitals
            seconds = max(since, 1.0)
            share, most = seconds * BUSY_SHARE, seconds * BUSY_BYTES
            signs = msgspec.structs.replace(
                signs,
                stopped=vitals.stopped,
                children=vitals.tools,
                # These fall when one of the processes has ended, which is a sign of life too.
                children_work=abs(vitals.tools_cpu_seconds - before.tools_cpu_seconds) > share
                or abs(vitals.tools_moved_bytes - before.tools_moved_bytes) > most,
                works=vitals.cpu_seconds - before.cpu_seconds > share
                or vitals.moved_bytes - before.moved_bytes > most,
            )
        if signs.stopped or hang.is_working(signs):
            self._active_at = now
        return msgspec.structs.replace(signs, idle=now - self._active_at)

    def _without_secrets(self, seen: Seen) -> Seen:
        """What an agent says and does is shown to whoever looks on, or kept in their logs."""
        redacted = self._world.store.redaction.text
        match seen:
            case Said() | Warned():
                return type(seen)(redacted(seen.text))
            case Called():
                short = seen.about.removeprefix(f"{self._agent.folder}/")
                about = one_line(redacted(short), ABOUT_CHARACTERS)
                return msgspec.structs.replace(seen, about=about, arguments={})
            case Finished():
                errors = tuple(map(redacted, seen.errors))
                return msgspec.structs.replace(seen, text=redacted(seen.text), errors=errors)
            case _:
                return seen
