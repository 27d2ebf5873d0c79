"""The faults of the soak by kind, and the one that lets each of them strike at its item."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loopback.script import Step
from survival.fault import Asked, Fault, Host
from survival.kills import BackgroundLeft, CliKilled, InToolCall, Rebooted
from survival.misleading import FalseDone
from survival.player import Move, Write
from survival.refusals import Refusals
from survival.refusing import Overloaded, UsageLimit
from survival.soak import work


class SupervisorKilled(InToolCall):
    title = "the supervisor is killed in a tool call"

    def strike(self, host: Host) -> str:
        pids = host.supervisors()
        host.kill(pids)
        return f"killed {len(pids)} supervisor" if pids else ""


class SupervisorAndCliKilled(InToolCall):
    title = "the supervisor and the CLI are killed in a tool call"

    def strike(self, host: Host) -> str:
        supervisors, clis = host.supervisors(), host.clis()
        host.kill([*supervisors, *clis])
        return f"killed {len(supervisors)} supervisor and its CLI" if supervisors else ""


class ThreeOverloads(Overloaded):
    """The CLIs are set to retry once, so that the errors reach Rekindle."""

    title = "three overload errors in a row"
    ERRORS = 3


class EarlyDone(FalseDone):
    title = "the model reports too early that all is done"


class TooLong(Fault):
    """The model refuses each request of the conversation, until a shorter one comes."""

    title = "the context window is full"

    def __init__(self, signals: Path, refusals: Refusals) -> None:
        super().__init__(signals, refusals)
        self._is_over = False

    def refuse(self, asked: Asked) -> Step | None:
        if self._is_over or asked.calls < self.call - 1 or not asked.view.calls:
            self._is_over = self._is_over or bool(self.evidence)
            return None
        self.happened("the model refused a conversation as too long")
        return self.refusals.too_long()


class BackgroundLeftAlive(BackgroundLeft):
    """The call waits for the process: a CLI kills one that has no session of its own yet."""

    def wrap(self, number: int, line: str) -> str:
        wait = f"while [ ! -e {self.signals / 'left'} ]; do sleep 0.05; done; "
        return super().wrap(number, wait + line if number == self.call else line)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of fault, and how often it strikes."""

    fault: type[Fault]
    weight: int
    """0: once in a run."""
    ends_supervisor: bool = False


KINDS: Final[Mapping[str, Kind]] = {
    "cli-killed": Kind(CliKilled, 3),
    "supervisor-killed": Kind(SupervisorKilled, 2, ends_supervisor=True),
    "both-killed": Kind(SupervisorAndCliKilled, 2, ends_supervisor=True),
    "reboot": Kind(Rebooted, 2, ends_supervisor=True),
    "overload": Kind(ThreeOverloads, 2),
    "limit": Kind(UsageLimit, 0),  # about two minutes of waiting
    "window": Kind(TooLong, 1),
    "false-done": Kind(EarlyDone, 2),
    "background": Kind(BackgroundLeftAlive, 3),
}
"""All kinds by name."""


class Strikes(Fault):
    """The faults of a run, each of which begins when the model is about to write its item."""

    def __init__(
        self, plan: Mapping[int, str], total: int, signals: Path, refusals: Refusals
    ) -> None:
        super().__init__(signals, refusals)
        self.total = total
        self._waiting = dict(plan)
        self._begun: list[tuple[str, Fault]] = []

    @property
    def missing(self) -> list[str]:
        """Return the faults that have not happened."""
        begun = [kind for kind, fault in self._begun if not fault.evidence]
        return sorted([*begun, *self._waiting.values()])

    @property
    def happened_by_kind(self) -> dict[str, int]:
        found = Counter(kind for kind, fault in self._begun if fault.evidence)
        return {kind: found[kind] for kind in KINDS}

    @property
    def lines(self) -> list[str]:
        """Return the evidence of each, in order."""
        return [f"{kind}: {fault.evidence}" for kind, fault in self._begun]

    def _begin(self, asked: Asked) -> None:
        move = work.decide(asked.view, asked.parts, self.total)
        kind = self._waiting.pop(move.item, "") if isinstance(move, Write) else ""
        if kind:
            fault = KINDS[kind].fault(self.signals / str(len(self._begun)), self.refusals)
            fault.call, fault.half = asked.calls + 1, move.item - 1
            fault.prepare()
            self._begun.append((kind, fault))

    def refuse(self, asked: Asked) -> Step | None:
        self._begin(asked)
        return next((step for _, fault in self._begun if (step := fault.refuse(asked))), None)

    def steer(self, asked: Asked, move: Move) -> Move:
        for _, fault in self._begun:
            move = fault.steer(asked, move)
        return move

    def wrap(self, number: int, line: str) -> str:
        for _, fault in self._begun:
            line = fault.wrap(number, line)
        return line

    def is_due(self) -> bool:
        return any(fault.is_due() for _, fault in self._begun)

    def apply(self, host: Host) -> None:
        for _, fault in self._begun:
            if fault.is_due():
                fault.apply(host)
