"""The stored measures of the survival benchmark, and what each cell of its table says."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

STORED = Path(__file__).parent / "survival.json"
OURS = "rekindle"
WIDTH = 100
"""Columns of the page."""
CLI_NAMES = {"claude-code": "Claude Code", "codex": "Codex"}
EARLY_ITEMS = 12
"""Items that are enough in the cells in which the work is done early."""


class Run(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    evidence: str
    done: int
    lost: int
    twice: int
    requests: int
    tokens: int
    after_stop: int
    ended: str
    seconds: int
    resumed_after: float | None
    interventions: int
    left: int
    told: list[str]
    timeline: list[tuple[float, int]] = []
    strikes: list[tuple[float, str]] = []

    @property
    def counts(self) -> tuple[int, ...]:
        """Return what must not differ between the runs of a cell."""
        return (self.done, self.lost, self.twice, self.interventions, self.left)


class Cell(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    contender: str
    cli: str
    fault: str
    runs: list[Run]

    def is_whole(self, items: int) -> bool:
        """Return whether the result was right in each run, without help."""
        return all(not trouble for trouble in self.troubles(items)) and self.is_valid

    @property
    def is_valid(self) -> bool:
        return self.fault == "none" or all(run.evidence for run in self.runs)

    def wanted(self, items: int) -> int:
        return EARLY_ITEMS if self.fault == "early-finish" else items

    def troubles(self, items: int) -> list[str]:
        """Return what went wrong, with the range over the runs."""
        wanted = self.wanted(items)
        found = []
        if self.fault == "operator-stop":
            after = [run.after_stop for run in self.runs]
            found += [f"{describe_range(after)} requests after the stop"] if any(after) else []
        elif any(run.done != wanted for run in self.runs):
            found.append(f"{describe_range([run.done for run in self.runs])} of {wanted}")
        if any(run.ended == "it would not stop" for run in self.runs):
            found.append("would not stop")
        for values, words in (
            ([run.lost for run in self.runs], "lost"),
            ([run.twice for run in self.runs], "done twice"),
            ([run.interventions for run in self.runs], "× a person"),
        ):
            found += [f"{describe_range(values)} {words}"] if any(values) else []
        if any(left := [run.left for run in self.runs]):
            found.append(
                f"{describe_range(left)} {'process' if set(left) == {1} else 'processes'} left"
            )
        return found

    @property
    def tokens(self) -> float:
        return sum(run.tokens for run in self.runs) / len(self.runs)

    @property
    def resumed_after(self) -> float | None:
        """Return the median time until the next item was done."""
        found = sorted(run.resumed_after for run in self.runs if run.resumed_after is not None)
        return found[len(found) // 2] if found else None


class Contender(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    cli: str
    version: str
    setup: str
    ending: str
    word: str
    finish: str
    not_its_job: list[str]


class Ideal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    requests: int
    calls: int
    tokens: int


class Stored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    date: str
    items: int
    clis: dict[str, str]
    ideal: dict[str, Ideal]
    faults: dict[str, str]
    contenders: list[Contender]
    cells: list[Cell]

    def cell(self, contender: str, cli: str, fault: str) -> Cell | None:
        return next(
            (
                cell
                for cell in self.cells
                if (cell.contender, cell.cli, cell.fault) == (contender, cli, fault)
            ),
            None,
        )

    def names(self, cli: str) -> list[str]:
        """Return the contenders with a CLI, ours first."""
        found = [one.name for one in self.contenders if one.cli == cli]
        return sorted(found, key=lambda name: (name != OURS, name))

    def verdict(self, contender: Contender, fault: str) -> str:
        """Return the text of a cell."""
        cell = self.cell(contender.name, contender.cli, fault)
        if cell is None:
            return "not its job" if fault in contender.not_its_job else "not measured"
        if fault == "state-cut" and cell.runs[0].evidence.endswith("cut in half: nothing"):
            return "keeps no state"
        if not cell.is_valid:
            return "the fault did not happen"
        troubles = cell.troubles(self.items)
        return ", ".join(troubles) if troubles else "✓"


def read() -> Stored:
    return msgspec.json.decode(STORED.read_bytes(), type=Stored)


def describe_range(values: Sequence[int]) -> str:
    """Return one number, or the least and the most."""
    least, most = min(values), max(values)
    return str(least) if least == most else f"{least}–{most}"


def average(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)
