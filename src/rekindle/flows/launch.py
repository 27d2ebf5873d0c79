"""One process of a session: started, followed to its end, and said how it ended."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import msgspec

from rekindle.documents.event import Heartbeat, LaunchStarted
from rekindle.documents.launch import (
    FOLDER,
    MARK,
    Ended,
    Exit,
    Start,
    Usage,
)
from rekindle.flows import transcripts
from rekindle.flows.background import BackgroundProcesses
from rekindle.flows.follow import Follow
from rekindle.flows.fruitless import Fruitless
from rekindle.flows.gauge import Gauge
from rekindle.flows.meter import Meter
from rekindle.flows.transcribe import Transcribe
from rekindle.flows.watched import Watched
from rekindle.flows.world import Agent, World
from rekindle.policy import tokens
from rekindle.policy.budget import Spent
from rekindle.policy.idle import Idle
from rekindle.ports import Child
from rekindle.system import disk, hook_program, programs


class Launch:
    """One launch of an agent, under a mark that everything it starts inherits."""

    def __init__(
        self,
        mark: str,
        agent: Agent,
        world: World,
        start: Start,
        spent: Spent | None = None,
        *,
        windows: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """`windows` is how large those of the models are, where that was learnt before."""
        self.mark = mark
        self._agent = agent
        self._world = world
        self.start = start
        self._folder = world.store.folder(agent.name)
        # Here, and not when it is started: what a harness refuses is no launch yet.
        self._scratch = Path(agent.scratch or self._folder.run)
        self._command = agent.harness.command(
            msgspec.structs.replace(
                start,
                hook=agent.hook,
                scratch=str(self._scratch),
                protected=agent.protected,
                folder=agent.folder,
                path=agent.path,
            )
        )
        self.watched = Watched()
        self._transcribe: Transcribe | None = None
        """For a program without hooks, which reports no transcript of its own."""
        self.meter = Meter(spent or Spent(), agent.prices, start.usd_left)
        self.gauge = Gauge(agent, world, mark, windows)
        self.code: int | None = None
        self.seconds = 0.0
        self._idle, self._is_bounded = Idle(), False
        self.stretch = ("", 0.0)
        """Commit and moment after which no progress was seen yet."""
        self.fruitless: float | None = None
        """Seconds at its end that followed progress which was seen while it ran."""

    def bound(self, idle: Idle, *, lifted: bool) -> None:
        """Hold it to the bounds on work without progress; `idle`: there was so much before it."""
        self._idle, self._is_bounded = idle, not lifted

    def run(
        self,
        prompt: str,
        origin: LaunchStarted,
        primer_tokens: int | None = None,
        background: BackgroundProcesses | None = None,
    ) -> Exit:
        """Start it, follow it, and say how it ended; `origin` is what the log knows of it.

        With `primer_tokens`, what a fresh session would be told, it may be ended as too costly.
        `background` records what it leaves running.
        """
        began = self._world.elapsed()
        self.stretch = (origin.head, origin.ts.timestamp())
        mark = self._folder.weigh(self.mark)
        if primer_tokens is not None:
            disk.replace(mark, b"")
        self._folder.brakes(self._agent.scratch).forget()
        self.gauge.begin()
        try:
            return self._run(prompt, origin, primer_tokens, began, background)
        finally:
            self._folder.remove(mark)

    def _run(
        self,
        prompt: str,
        origin: LaunchStarted,
        primer_tokens: int | None,
        began: float,
        background: BackgroundProcesses | None,
    ) -> Exit:
        child = self._begin(prompt)
        self.watched.read_and_said = tokens.estimate(prompt)
        if not self._agent.harness.CAN.hooks and not self._agent.stays:
            self._transcribe = Transcribe(self._agent, self._world, self.start.session, prompt)
        follow = Follow(
            origin,
            self._agent,
            self._world,
            child,
            watched=self.watched,
            meter=self.meter,
            gauge=self.gauge,
            primer_tokens=primer_tokens,
            fruitless=Fruitless(self._world, self._idle, self.stretch)
            if self._is_bounded
            else None,
            on_tick=background.watch(origin, child.pid) if background else lambda: None,
            transcribe=self._transcribe,
        )
        try:
            follow.to_the_end()
        finally:
            if self._transcribe is not None:
                self._transcribe.write(is_last=True)
        if follow.fruitless is not None:
            self.stretch, self.fruitless = follow.fruitless.stretch, follow.fruitless.seconds()
        self.seconds = self._world.elapsed() - began
        self.code = child.code
        return self._said_of(child, follow)

    def last_sign(self) -> Heartbeat | None:
        """Return the last sign of life of a program without hooks: when it printed something."""
        return self._transcribe.sign(is_last=True) if self._transcribe else None

    def _said_of(self, child: Child, follow: Follow) -> Exit:
        ending = follow.ending
        found = self._agent.harness.classify(
            Ended(
                code=child.code,
                session=self.start.session,
                resumes=self.start.resumes,
                opened=self.watched.opened,
                finished=self.watched.finished,
                refused=self.watched.refused,
                errors=child.errors,
                last=tuple(self.watched.last),
                stopped=ending is not None and ending.kind == "interrupted",
                interactive=self.start.interactive,
            )
        )
        # What it was ended for, unless it was done by then: that it was ended says nothing more.
        was_done = found.kind == "clean" and not follow.was_stopped
        if ending is not None and ending.kind != "clean" and not was_done:
            found = ending
        redacted = self._world.store.redaction.text
        return msgspec.structs.replace(
            found, words=redacted(found.words), hint=redacted(found.hint)
        )

    def usage(self) -> Usage | None:
        """The last that is known: from the stream, else from the end of the transcript.

        Of a program that tells nothing at all, what it was given and said is estimated.
        """
        if self.watched.usage is not None:
            return self.watched.usage
        if not self._agent.harness.CAN.hooks:
            return Usage(self.watched.read_and_said, None, "estimated")
        tail = transcripts.tail(self.transcript())
        return self._agent.harness.usage(tail, {}) if tail else None

    def transcript(self) -> str:
        """Where its session is kept, as its hooks have told; empty: nobody knows."""
        lives = self._world.store.read(self._agent.name).projection.lives
        life = lives.get(self.start.session or self.watched.opened)
        return life.transcript if life is not None else ""

    def _begin(self, prompt: str) -> Child:
        folder, command = self._folder, self._command
        if self._agent.hook:
            hook_program.provide()
        for name, text in command.files.items():
            disk.replace(self._scratch / name, text.encode())
        own = {
            MARK: self.mark,
            FOLDER: str(folder.path),
            "REKINDLE_RULES": str(self._scratch),
            "REKINDLE_AGENT": self._agent.name,
        }
        environment = {**self._agent.environment, **command.environment, **own}
        return self._world.processes.start(
            _resolved(command.argv, self._agent, environment),
            # A prompt that begins with a slash would be taken for a command.
            prompt=f"\n{prompt}" if prompt.startswith("/") else prompt,
            environment=environment,
            folder=self._agent.folder,
        )


def _resolved(argv: Sequence[str], agent: Agent, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the command with the CLI's own program found outside the workspace."""
    return tuple(argv) if agent.program else programs.resolve(argv, environment.get("PATH"))
