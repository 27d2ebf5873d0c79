"""One process of a session: started, followed to its end, and what it left behind ended too."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import datetime

import msgspec

from rekindle.documents.launch import (
    MARK,
    Called,
    Ended,
    Exit,
    Finished,
    Opened,
    Refused,
    Said,
    Seen,
    Start,
    Usage,
    Used,
)
from rekindle.documents.manifest import Persona
from rekindle.errors import RekindleError
from rekindle.policy import tokens
from rekindle.policy.settings import FOLD_EVERY_SECONDS, STOP_SECONDS, Settings
from rekindle.ports import Child, Harness, Processes
from rekindle.stores.files import FileStore
from rekindle.system import disk

_TICK_SECONDS = 0.25
_TAIL_BYTES = 256 * 1024
"""How much of a transcript's end is read for its last usage."""


class Agent(msgspec.Struct, frozen=True):
    """What an agent is started from."""

    name: str
    harness: Harness
    folder: str
    """Where it works."""
    task: str
    rules: str
    persona: Persona
    environment: Mapping[str, str]
    hook: tuple[str, ...]
    """The hook program."""
    program: tuple[str, ...] = ()
    """What is started in the place of the CLI's own program."""
    instructions: str = ""
    """The text of the persona's system prompt."""


class Launching(msgspec.Struct, frozen=True):
    """About to start a process."""

    cycle: int
    session: str
    resumes: bool
    recovery: bool


class Fell(msgspec.Struct, frozen=True):
    """A process has ended."""

    exit: Exit
    swept: int


class Trouble(msgspec.Struct, frozen=True):
    """Something of ours went wrong, and the agent works on."""

    words: str


Report = Launching | Seen | Fell | Trouble


class World(msgspec.Struct, frozen=True):
    """What a supervisor has around it."""

    store: FileStore
    processes: Processes
    settings: Settings
    clock: Callable[[], datetime]
    interrupted: Callable[[], int]
    """How often somebody has asked us to stop."""
    tell: Callable[[Report], None]


class Watched:
    """What a process has shown so far."""

    def __init__(self) -> None:
        self.opened = ""
        self.finished: Finished | None = None
        self.refused: Refused | None = None
        self.usage: Usage | None = None
        self.read_and_said = 0
        """In tokens, by our own estimate; for who tells nothing else."""
        self.trouble = ""

    def take(self, seen: Seen) -> None:
        match seen:
            case Opened():
                self.opened = seen.session
            case Said():
                self.read_and_said += tokens.estimate(seen.text)
            case Used():
                self.usage = seen.usage
            case Refused():
                self.refused = seen
            case Finished():
                self.finished = seen
            case _:
                pass


class Launch:
    """One launch of an agent, under a mark that everything it starts inherits."""

    def __init__(self, mark: str, agent: Agent, world: World, start: Start) -> None:
        self.mark = mark
        self._agent = agent
        self._world = world
        self.start = start
        self._folder = world.store.folder(agent.name)
        # Here, and not when it is started: what a harness refuses is no launch yet.
        self._command = agent.harness.command(
            msgspec.structs.replace(start, hook=agent.hook, scratch=str(self._folder.run))
        )
        self.watched = Watched()
        self.code: int | None = None

    def run(self, prompt: str) -> Exit:
        """Start it, follow it, and say how it ended."""
        child = self._begin(prompt)
        self.watched.read_and_said = tokens.estimate(prompt)
        # Closed whatever happens: a traceback would keep it, and with it the person's terminal.
        with closing(child.follow(_TICK_SECONDS)) as lines:
            self._follow(child, lines)
        self.code = child.code
        found = self._agent.harness.classify(
            Ended(
                code=child.code,
                session=self.start.session,
                resumes=self.start.resumes,
                opened=self.watched.opened,
                finished=self.watched.finished,
                refused=self.watched.refused,
                errors=child.errors,
                stopped=self._world.interrupted() > 0,
                interactive=self.start.interactive,
            )
        )
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
        seen = self._world.store.read(self._agent.name)
        life = seen.projection.lives.get(self.start.session or self.watched.opened)
        tail = _tail_of(life.transcript) if life is not None and life.transcript else b""
        return self._agent.harness.usage(tail, {}) if tail else None

    def _begin(self, prompt: str) -> Child:
        folder, command = self._folder, self._command
        for name, text in command.files.items():
            disk.replace(folder.run / name, text.encode())
        own = {
            MARK: self.mark,
            "REKINDLE_FOLDER": str(folder.path),
            "REKINDLE_AGENT": self._agent.name,
        }
        return self._world.processes.start(
            command.argv,
            # A prompt that begins with a slash would be taken for a command.
            prompt=f"\n{prompt}" if prompt.startswith("/") else prompt,
            environment={**self._agent.environment, **command.environment, **own},
            folder=self._agent.folder,
        )

    def _follow(self, child: Child, lines: Iterator[bytes | None]) -> None:
        asked_at: float | None = None
        folded_at = time.monotonic()
        for line in lines:
            if line is not None:
                for seen in self._agent.harness.read_stream(line):
                    self.watched.take(seen)
                    self._world.tell(self._without_secrets(seen))
                continue
            now = time.monotonic()
            times = self._world.interrupted()
            if times and asked_at is None:
                asked_at = now
                child.ask_to_end()
            elif asked_at is not None and (times > 1 or now - asked_at > STOP_SECONDS):
                child.kill()
            if now - folded_at >= FOLD_EVERY_SECONDS:
                folded_at = now
                self._fold()

    def _without_secrets(self, seen: Seen) -> Seen:
        """What an agent says and does is shown to whoever looks on, or kept in their logs."""
        redacted = self._world.store.redaction.text
        match seen:
            case Said():
                return Said(redacted(seen.text))
            case Called():
                return msgspec.structs.replace(seen, about=redacted(seen.about))
            case Finished():
                errors = tuple(map(redacted, seen.errors))
                return msgspec.structs.replace(seen, text=redacted(seen.text), errors=errors)
            case _:
                return seen

    def _fold(self) -> None:
        """Take over what hooks reported; a full disk must not end the agent's work."""
        try:
            with self._world.store.writer(self._agent.name) as writer:
                writer.fold()
        except RekindleError as error:
            if str(error) != self.watched.trouble:
                self.watched.trouble = str(error)
                self._world.tell(Trouble(str(error)))


def _tail_of(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - a path of the CLI's own
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            return file.read()
    except OSError:
        return b""


def ends_of(path: str) -> bytes:
    """The beginning and the end of a transcript; it may be of any size."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - as above
            return file.read(_TAIL_BYTES) + _tail_of(path)
    except OSError:
        return b""
