"""The player behind a dialect: it answers the main requests unless the fault interferes."""

import json
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from loopback.log import MAIN, Part, Request
from loopback.script import Answer, Fail, Step, Text, ToolCall
from loopback.wire import Reply
from survival import player
from survival.contender import Contender
from survival.fault import Asked, Fault
from survival.player import Finish, Look, Meter, Move, Relay, Say, Write

_SUMMARY = "Items are written one after the other. List the folder to see which of them are done."


class Director:
    """A dialect whose main requests the player answers, in every program that sends them."""

    def __init__(self, dialect: Any, fault: Fault, contender: Contender, *, log: Path) -> None:
        self._dialect, self._fault, self._contender = dialect, fault, contender
        self._log = log
        self.meter = Meter()
        self.requests = self.answered = self.calls = self.side = 0
        """Main requests, those of them that were not refused, their item calls, side requests."""
        self.last = time.monotonic()
        """Time of the last request to the model."""
        self._guard = threading.Lock()

    # The dialect

    def classify(self, method: str, path: str, headers: Mapping[str, str], body: Any) -> str:
        kind: str = self._dialect.classify(method, path, headers, body)
        # Helpers of a tool, such as a summarizer, have no shell to work with.
        return "toolless" if kind == MAIN and not player.has_shell(body) else kind

    def parts(self, body: Any) -> Iterator[Part]:
        yield from self._dialect.parts(body)

    def plain(self, request: Request) -> Reply:
        reply: Reply = self._dialect.plain(request)
        return reply

    def say(self, request: Request, answer: Answer) -> Reply:
        reply: Reply = self._dialect.say(request, answer)
        return reply

    def fail(self, request: Request, fail: Fail) -> Reply:
        reply: Reply = self._dialect.fail(request, fail)
        return reply

    def unscripted(self, kind: str, body: Any) -> Step | None:
        """Return the answer to a request; the server asks for one at a time."""
        with self._guard:
            step = self._side(kind, body) if kind != MAIN else self._main(body)
            if step is not None:
                self.last = time.monotonic()
            return step

    # The player

    def _side(self, kind: str, body: Any) -> Step | None:
        step = self._contender.answer_side(kind, body, list(self.parts(body)))
        if step is None:
            is_toolless = kind == "toolless"
            step = Text(_SUMMARY) if is_toolless else self._dialect.unscripted(kind, body)
        if step is not None:
            self.side += 1
            refused = self._fault.refuse_side(kind)
            if refused is not None:
                self._note(kind, "refused")
                return refused
            usage = self.meter.read(body, list(self.parts(body)))
            if isinstance(step, Text):
                self.meter.wrote(step.text)
            self._note(kind, f"{usage.input} + {usage.cache_read} tokens")
        return step

    def _main(self, body: Any) -> Step:
        self.requests += 1
        parts = list(self.parts(body))
        work = self._contender.work_parts(parts)
        view = player.look(work, self._contender.about.finish)
        asked = Asked(self.requests, self.calls, view, parts)
        refused = self._fault.refuse(asked)
        if refused is not None:
            self._note(MAIN, f"refused: {_words(refused)}")
            return refused
        self.answered += 1
        move = self._fault.steer(asked, self.decide(asked))
        own = self._contender.own_step(parts, move)
        if own is not None:
            return self._report(asked, body, own)
        line = "" if isinstance(move, Say) else self.command(move)
        if isinstance(move, Write):
            self.calls += 1
            line = self._fault.wrap(self.calls, line)
        usage = self.meter.read(body, parts)
        spent = self.meter.wrote(move.text if isinstance(move, Say) else line)
        self._note(MAIN, f"{usage.input} + {usage.cache_read} tokens: {move}")
        return player.answer(body, move, line, self._fault.report_usage(asked, usage, spent))

    def decide(self, asked: Asked) -> Move:
        """Return the right move."""
        return player.decide(asked.view, self._fault.total, self._contender.about.word)

    def command(self, move: Look | Write | Relay | Finish) -> str:
        """Return the shell command of a move."""
        return player.command(move)

    def _report(self, asked: Asked, body: Any, own: Text | ToolCall) -> Step:
        """Return a step of the contender's own, with its usage."""
        usage = self.meter.read(body, asked.parts)
        words = own.text if isinstance(own, Text) else f"{own.name} {json.dumps(own.input)}"
        self._note(MAIN, f"{usage.input} + {usage.cache_read} tokens: {words}")
        return replace(own, usage=self._fault.report_usage(asked, usage, self.meter.wrote(words)))

    def _note(self, kind: str, words: str) -> None:
        with self._log.open("a") as log:
            log.write(json.dumps({"at": time.time(), "kind": kind, "words": words}) + "\n")


def _words(step: Step) -> str:
    return f"{step.status} {step.type}" if isinstance(step, Fail) else type(step).__name__
