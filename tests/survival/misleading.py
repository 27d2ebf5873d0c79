"""Faults of the model itself: it reports the end too early, or plans instead of working."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from loopback.log import Part
from survival import player, task
from survival.fault import Asked, Fault, Host
from survival.player import Move, Say, Write
from survival.refusals import Refusals

NUDGE: Final = "Write item 11 now instead of planning it."
"""What a person writes into the prompt of an agent that repeats its plan."""
_TOLD: Final = re.compile(rf"stall|stuck|no progress|{NUDGE}", re.IGNORECASE)


class _AfterTenItems(Fault):
    @property
    def next_item(self) -> int:
        return self.half + 1


class FalseDone(_AfterTenItems):
    title = "the model reports after ten items that it is done"

    def __init__(self, signals: Path, refusals: Refusals) -> None:
        super().__init__(signals, refusals)
        self._is_said = False

    def steer(self, asked: Asked, move: Move) -> Move:
        if self._is_said or not isinstance(move, Write) or move.item <= self.half:
            return move
        whole = frozenset(range(1, task.TOTAL + 1))
        claim = player.decide(replace(asked.view, known=whole), word=self.word)
        self._is_said = isinstance(claim, Say)
        self.happened(f"the model reported the end after {self.half} items")
        return claim


class EarlyFinish(Fault):
    title = "the work is done earlier than planned"
    total = 12

    def steer(self, asked: Asked, move: Move) -> Move:
        if isinstance(move, Say):
            self.happened("the model reported the end after twelve items")
        return move


class SamePlan(_AfterTenItems):
    """The model plans the next item instead of writing it, until something is said about it."""

    title = "the model repeats the same plan"
    PLAN = "Write item 11"

    def __init__(self, signals: Path, refusals: Refusals) -> None:
        super().__init__(signals, refusals)
        self._usual: set[str] | None = None
        """Lines about stalls in the tool's ordinary prompt."""

    def steer(self, asked: Asked, move: Move) -> Move:
        if not isinstance(move, Write) or move.item <= self.half:
            return move
        said = _find_hints(asked.parts)
        if self._usual is None:
            self._usual = said
        if said - self._usual:
            return move
        self.happened("the model planned item 11 without writing it")
        return player.report(asked.view, self.PLAN, f"Next, I will write item 11. {self.PLAN}.")

    def help(self, host: Host) -> None:
        with (host.project / "PROMPT.md").open("a") as prompt:
            prompt.write(f"\n{NUDGE}\n")


def _find_hints(parts: Sequence[Part]) -> set[str]:
    """Return the lines of the prompts that say something about a stall."""
    texts = [part.text for part in parts if (part.role, part.form) == ("user", "text")]
    return {line for text in texts for line in text.splitlines() if _TOLD.search(line)}
