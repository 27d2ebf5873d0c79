"""The faults, each triggered by the Nth model request or the Nth item call, never by time.

A fault interferes in the answers of the model, or acts on the host while an item call is held open.
`evidence` is empty until the fault has really happened: a cell without evidence does not count.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol

from loopback.log import Part
from loopback.script import Hang, Step, Usage
from survival import player, task
from survival.player import Move, Say, View, Write
from survival.refusals import Refusals

CALL: Final = 7
"""The item call in which a fault strikes."""
REQUEST: Final = 8
"""The first model request that is refused."""
HALF: Final = 10
"""Items after which the model stops to do what it should."""
NUDGE: Final = "Write item 11 now instead of planning it."
"""What a person writes into the prompt of an agent that repeats its plan."""
_TOLD: Final = re.compile(rf"stall|stuck|no progress|{NUDGE}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Asked:
    """One main request."""

    number: int
    calls: int
    """Item calls before it."""
    view: View
    parts: Sequence[Part]


class Host(Protocol):
    """What a fault can do on the host."""

    def clis(self) -> list[int]: ...
    def wrappers(self) -> list[int]: ...
    def kill(self, pids: Sequence[int]) -> None: ...
    def reboot(self) -> None: ...
    def stop_as_operator(self) -> None: ...
    def truncate_state(self) -> list[str]: ...
    def hang(self, pid: int) -> int: ...
    def fill_disk(self) -> int: ...
    def free_disk(self) -> None: ...


class Fault:
    """A fault that never happens, and the base of all others."""

    title = "no fault"
    total = task.TOTAL
    """Items that the operator's check wants."""
    must_stop = False
    """Whether the work must stay unfinished, because the operator stopped it."""
    patience = 120.0
    """Seconds without a request after which a person looks at a tool that is still running."""
    needs_person = False
    """Whether a person has to act in any case; this is not counted as an intervention."""

    def __init__(self, signals: Path, refusals: Refusals) -> None:
        self.signals, self.refusals = signals, refusals
        self.evidence = ""
        self.word = ""
        """The text that ends the work, for tools that wait for one."""
        self.at = 0.0
        """Monotonic time of the fault; 0 before it."""

    def happened(self, evidence: str) -> None:
        self.evidence = evidence
        self.at = self.at or time.monotonic()

    # In the model

    def refuse(self, asked: Asked) -> Step | None:
        """Return an error instead of an answer to a main request."""
        return None

    def refuse_side(self, kind: str) -> Step | None:
        """Return an error instead of an answer to a side request."""
        return None

    def steer(self, asked: Asked, move: Move) -> Move:
        """Return what the model does instead of the right move."""
        return move

    def wrap(self, number: int, line: str) -> str:
        """Return the command of an item call, with what makes it special."""
        return line

    def report_usage(self, asked: Asked, usage: Usage, output: int) -> Usage:
        """Return the usage that the answer reports."""
        return replace(usage, output=output)

    # On the host

    def is_due(self) -> bool:
        """Return whether the cell must call `apply` now."""
        return False

    def apply(self, host: Host) -> None:
        """Act on the host."""

    def is_idle(self, host: Host) -> bool:
        """Do what a person does once the tool does nothing more; return whether it was done."""
        return False


class InToolCall(Fault):
    """A fault that acts while an item call runs, which continues afterwards if it can.

    The call waits until the model makes another item call, or until the fault releases it. If it
    outlives its CLI, its item is therefore written although another session does it again.
    """

    def __init__(self, signals: Path, refusals: Refusals) -> None:
        super().__init__(signals, refusals)
        self._began, self._released = signals / "began", signals / "released"
        self._is_applied = False

    def wrap(self, number: int, line: str) -> str:
        if number == CALL:
            wait = f"while [ ! -e {self._released} ]; do sleep 0.05; done"
            return f"touch {self._began}; {wait}; {line}"
        if number > CALL:
            self.release()
        return line

    def release(self) -> None:
        self._released.touch()

    def is_due(self) -> bool:
        return not self._is_applied and self._began.exists()

    def apply(self, host: Host) -> None:
        self._is_applied = True
        self.at = time.monotonic()
        before = set(host.clis())
        assert before, "no CLI runs the tool call"
        self.evidence = self.strike(host)
        if before & set(host.clis()):
            self.release()

    def strike(self, host: Host) -> str:
        """Do it; return the evidence."""
        raise NotImplementedError


class CliKilled(InToolCall):
    title = "the CLI is killed in a tool call"

    def strike(self, host: Host) -> str:
        pids = host.clis()
        host.kill(pids)
        return f"killed {len(pids)} process of the CLI in item call {CALL}"


class WrapperKilled(InToolCall):
    title = "the tool itself is killed in a tool call"

    def strike(self, host: Host) -> str:
        pids = host.wrappers()
        assert pids, "the tool has no process of its own"
        host.kill(pids)
        return f"killed {len(pids)} processes of the tool in item call {CALL}"


class BothKilled(InToolCall):
    title = "the tool and the CLI are killed in a tool call"

    def strike(self, host: Host) -> str:
        pids = [*host.wrappers(), *host.clis()]
        host.kill(pids)
        return f"killed {len(pids)} processes in item call {CALL}"


class Rebooted(InToolCall):
    title = "everything is killed; only the installed services start again"

    def strike(self, host: Host) -> str:
        host.reboot()
        return f"every process was killed in item call {CALL}"


class OperatorStops(InToolCall):
    title = "the operator stops it in a tool call"
    must_stop = True

    def strike(self, host: Host) -> str:
        host.stop_as_operator()
        return f"stopped by the operator in item call {CALL}"


class StateTruncated(InToolCall):
    title = "a crash truncates the tool's state file"

    def strike(self, host: Host) -> str:
        host.kill([*host.wrappers(), *host.clis()])
        cut = host.truncate_state()
        return f"killed everything in item call {CALL}; cut in half: {', '.join(cut) or 'nothing'}"


class BackgroundLeft(Fault):
    title = "a tool call leaves a background process"

    def wrap(self, number: int, line: str) -> str:
        if number != CALL:
            return line
        left = self.signals / "left"
        program = f"echo $$ > {left}; exec sleep 100000"
        return f"setsid sh -c '{program}' </dev/null >/dev/null 2>&1 & {line}"

    def is_due(self) -> bool:
        return not self.evidence and (self.signals / "left").exists()

    def apply(self, host: Host) -> None:
        self.happened("a `sleep` of a day runs in its own session")


class Refused(Fault):
    """Some requests in a row are refused."""

    def __init__(self, signals: Path, refusals: Refusals) -> None:
        super().__init__(signals, refusals)
        self.refused = 0

    def refuse(self, asked: Asked) -> Step | None:
        if asked.number < REQUEST or self.is_over():
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

    def __init__(self, signals: Path, refusals: Refusals) -> None:
        super().__init__(signals, refusals)
        self.resets = 0.0
        """Unix time, at a full minute, because the CLIs print no seconds."""

    def is_over(self) -> bool:
        return bool(self.resets) and time.time() >= self.resets

    def make(self) -> Step:
        self.resets = self.resets or (time.time() + 20) // 60 * 60 + 60
        return self.refusals.limit(self.resets)


class LoginExpired(Refused):
    """Every request is refused until a person logs in, once nothing more is asked."""

    title = "an expired login, which is later repaired"
    patience = 30.0
    needs_person = True
    MOST = 30
    """Refusals after which the person notices."""

    def __init__(self, signals: Path, refusals: Refusals) -> None:
        super().__init__(signals, refusals)
        self._is_repaired = False

    def is_over(self) -> bool:
        return self._is_repaired or self.refused >= self.MOST

    def make(self) -> Step:
        return self.refusals.unauthorized()

    def is_idle(self, host: Host) -> bool:
        if not self.refused or self._is_repaired:
            return False
        self._is_repaired = True
        return True


class WindowFull(Fault):
    """Each tool result counts as a tenth of the window; the eleventh does not fit."""

    title = "the context window is full"
    RESULTS = 10

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


class FalseDone(Fault):
    title = "the model reports after ten items that it is done"

    def __init__(self, signals: Path, refusals: Refusals) -> None:
        super().__init__(signals, refusals)
        self._is_said = False

    def steer(self, asked: Asked, move: Move) -> Move:
        if self._is_said or not isinstance(move, Write) or move.item <= HALF:
            return move
        whole = frozenset(range(1, task.TOTAL + 1))
        claim = player.decide(replace(asked.view, known=whole), word=self.word)
        self._is_said = isinstance(claim, Say)
        self.happened("the model reported the end after ten items")
        return claim


class EarlyFinish(Fault):
    title = "the work is done earlier than planned"
    total = 12

    def steer(self, asked: Asked, move: Move) -> Move:
        if isinstance(move, Say):
            self.happened("the model reported the end after twelve items")
        return move


class SamePlan(Fault):
    """The model plans the next item instead of writing it, until something is said about it."""

    title = "the model repeats the same plan"
    PLAN = "Write item 11"

    def steer(self, asked: Asked, move: Move) -> Move:
        if not isinstance(move, Write) or move.item <= HALF or self._is_told(asked.parts):
            return move
        self.happened("the model planned item 11 without writing it")
        return player.report(asked.view, self.PLAN, f"Next, I will write item 11. {self.PLAN}.")

    def _is_told(self, parts: Sequence[Part]) -> bool:
        said = (part.text for part in parts if (part.role, part.form) == ("user", "text"))
        return any(_TOLD.search(text) for text in said)


class DiskFull(InToolCall):
    """The disk is full from an item call on, until the model has failed to write six times."""

    title = "the disk is full for a while"
    MOST = 6

    def __init__(self, signals: Path, refusals: Refusals) -> None:
        super().__init__(signals, refusals)
        self.failed = 0
        self._free: Callable[[], None] | None = None

    def strike(self, host: Host) -> str:
        self._free = host.free_disk
        return f"{host.fill_disk()} bytes were free in item call {CALL}"

    def steer(self, asked: Asked, move: Move) -> Move:
        if self._free and asked.parts[-1].form == "result" and asked.view.errors:
            self.failed += 1
            if self.failed >= self.MOST:
                self._repair()
            if asked.view.errors > 1:
                return Say("I cannot write the files: no space left on device.")
        return move

    def is_idle(self, host: Host) -> bool:
        return self._repair()

    def _repair(self) -> bool:
        free, self._free = self._free, None
        if free:
            free()
        return bool(free)


class Hung(Fault):
    """Every thread of the CLI stops for good while it waits for an answer."""

    title = "the CLI hangs, and its process stays alive"
    patience = 900.0

    def __init__(self, signals: Path, refusals: Refusals) -> None:
        super().__init__(signals, refusals)
        self._answer: Hang | None = None

    def refuse(self, asked: Asked) -> Step | None:
        if asked.number != REQUEST:
            return None
        self._answer = Hang()  # until it hangs, and then nothing reads it
        return self._answer

    def is_due(self) -> bool:
        return self._answer is not None and not self.evidence

    def apply(self, host: Host) -> None:
        pids = host.clis()
        assert pids, "no CLI waits for the answer"
        threads = sum(host.hang(pid) for pid in pids)
        self.happened(f"{threads} threads of the CLI hang in request {REQUEST}")
        assert self._answer is not None
        self._answer.release.set()


FAULTS: Final[Mapping[str, type[Fault]]] = {
    "none": Fault,
    "cli-killed": CliKilled,
    "tool-killed": WrapperKilled,
    "both-killed": BothKilled,
    "reboot": Rebooted,
    "limit": UsageLimit,
    "overload": Overloaded,
    "login": LoginExpired,
    "window": WindowFull,
    "hang": Hung,
    "background": BackgroundLeft,
    "false-done": FalseDone,
    "early-finish": EarlyFinish,
    "same-plan": SamePlan,
    "disk-full": DiskFull,
    "state-cut": StateTruncated,
    "operator-stop": OperatorStops,
}
"""All faults by name, in the order of the table."""


def make(name: str, signals: Path, refusals: Refusals) -> Fault:
    return FAULTS[name](signals, refusals)
