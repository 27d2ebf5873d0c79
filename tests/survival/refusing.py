"""Faults of the model's API: it refuses requests, or never answers."""

import time
from pathlib import Path

from loopback.script import Hang, Step, Usage
from survival.fault import Asked, Fault, Host
from survival.refusals import Refusals


class Refused(Fault):
    """Some requests in a row are refused."""

    def __init__(self, signals: Path, refusals: Refusals) -> None:
        super().__init__(signals, refusals)
        self.refused = 0

    def refuse(self, asked: Asked) -> Step | None:
        if asked.calls < self.call - 1 or self.is_over():
            return None
        self.refused += 1
        step = self.make()
        self.happened(f"{self.refused} requests were refused")
        return step

    def is_over(self) -> bool:
        raise NotImplementedError

    def make(self) -> Step:
        raise NotImplementedError


class Overloaded(Refused):
    title = "five overload errors in a row"
    ERRORS = 5

    def is_over(self) -> bool:
        return self.refused >= self.ERRORS

    def make(self) -> Step:
        return self.refusals.overloaded()


class UsageLimit(Refused):
    title = "a usage limit with a reset time"
    patience = 300.0

    def __init__(self, signals: Path, refusals: Refusals) -> None:
        super().__init__(signals, refusals)
        self.resets = 0.0
        """Unix time, at a full minute, because the CLIs print no seconds."""

    @property
    def ended_at(self) -> float:
        return time.monotonic() + self.resets - time.time()

    def is_over(self) -> bool:
        return bool(self.resets) and time.time() >= self.resets

    def can_continue(self) -> bool:
        return not self.resets or self.is_over()

    def make(self) -> Step:
        self.resets = self.resets or (time.time() + 20) // 60 * 60 + 60
        return self.refusals.limit(self.resets)


class LoginExpired(Refused):
    """Every request is refused until a person logs in, once nothing more is asked."""

    title = "an expired login, which is later repaired"
    patience = 90.0
    MOST = 30
    """Refusals after which the person notices."""

    def __init__(self, signals: Path, refusals: Refusals) -> None:
        super().__init__(signals, refusals)
        self._repaired_at = 0.0

    @property
    def ended_at(self) -> float:
        return self._repaired_at or self.at

    def is_over(self) -> bool:
        if self.refused >= self.MOST:
            self._repair()
        return bool(self._repaired_at)

    def make(self) -> Step:
        return self.refusals.unauthorized()

    def is_idle(self, host: Host) -> bool:
        if not self.refused or self._repaired_at:
            return False
        self._repair()
        return True

    def _repair(self) -> None:
        self._repaired_at = self._repaired_at or time.monotonic()


class WindowFull(Fault):
    """Each tool result counts as a tenth of the window; the eleventh does not fit."""

    title = "the context window is full"
    RESULTS = 10

    @property
    def next_item(self) -> int:
        return self.RESULTS - 1

    def refuse(self, asked: Asked) -> Step | None:
        if asked.view.calls <= self.RESULTS:
            return None
        self.happened("the model refused a conversation as too long")
        return self.refusals.too_long()

    def report_usage(self, asked: Asked, usage: Usage, output: int) -> Usage:
        share = self.refusals.window // self.RESULTS
        if asked.view.calls == self.RESULTS - 2:
            self.happened("80 % of the window were reported as used")
        return Usage(input=100, cache_read=asked.view.calls * share, output=output)


class Hung(Fault):
    """Every thread of the CLI stops for good while it waits for an answer."""

    title = "the CLI hangs, and its process stays alive"
    patience = 900.0

    def __init__(self, signals: Path, refusals: Refusals) -> None:
        super().__init__(signals, refusals)
        self._answer: Hang | None = None

    def refuse(self, asked: Asked) -> Step | None:
        if asked.calls != self.call - 1 or self._answer is not None:
            return None
        self._answer = Hang()  # until it hangs, and then nothing reads it
        return self._answer

    def is_due(self) -> bool:
        return self._answer is not None and not self.evidence

    def apply(self, host: Host) -> None:
        pids = host.clis()
        assert pids, "no CLI waits for the answer"
        threads = sum(host.hang(pid) for pid in pids)
        self.happened(f"{threads} threads of the CLI hang before item call {self.call}")
        assert self._answer is not None
        self._answer.release.set()
