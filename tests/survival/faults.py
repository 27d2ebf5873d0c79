"""The table of all faults, and the night that combines six of them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from loopback.script import Step
from survival.fault import Asked, Fault, Host
from survival.kills import (
    BackgroundLeft,
    BothKilled,
    CliKilled,
    DiskFull,
    OperatorStops,
    Rebooted,
    StateTruncated,
    WrapperKilled,
)
from survival.misleading import EarlyFinish, FalseDone, SamePlan
from survival.player import Move
from survival.refusals import Refusals
from survival.refusing import Hung, LoginExpired, Overloaded, UsageLimit, WindowFull


class Night(Fault):
    """Six faults, one after the other, while the person sleeps."""

    title = "a night with six faults, without a person"
    has_person = False
    patience = 300.0
    STRIKES: Final[Mapping[int, type[Fault]]] = {
        3: CliKilled,
        6: UsageLimit,
        9: WrapperKilled,
        12: FalseDone,
        15: Overloaded,
        18: Rebooted,
    }

    def __init__(self, signals: Path, refusals: Refusals) -> None:
        self._all: list[Fault] = []
        super().__init__(signals, refusals)
        for call, kind in self.STRIKES.items():
            fault = kind(signals / str(call), refusals)
            fault.call, fault.half = call, call - 1
            self._all.append(fault)

    def prepare(self) -> None:
        super().prepare()
        for fault in self._all:
            fault.word = self.word
            fault.prepare()

    @property
    def evidence(self) -> str:
        """Return what has happened; a tool that is not running any more misses the rest."""
        found = [fault.evidence for fault in self._all if fault.evidence]
        return f"{len(found)} of {len(self._all)} faults: {'; '.join(found)}" if found else ""

    @evidence.setter
    def evidence(self, text: str) -> None:
        assert not text

    @property
    def strikes(self) -> list[tuple[float, str]]:
        return [(fault.at, fault.title) for fault in self._all if fault.at]

    def refuse(self, asked: Asked) -> Step | None:
        return next((step for fault in self._all if (step := fault.refuse(asked))), None)

    def steer(self, asked: Asked, move: Move) -> Move:
        for fault in self._all:
            move = fault.steer(asked, move)
        return move

    def wrap(self, number: int, line: str) -> str:
        for fault in self._all:
            line = fault.wrap(number, line)
        return line

    def is_due(self) -> bool:
        return any(fault.is_due() for fault in self._all)

    def apply(self, host: Host) -> None:
        for fault in self._all:
            if fault.is_due():
                fault.apply(host)


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
    "night": Night,
}
"""All faults by name, in the order of the table."""


def make(name: str, signals: Path, refusals: Refusals) -> Fault:
    return FAULTS[name](signals, refusals)
