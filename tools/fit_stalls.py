"""Fit the weights that tell a stuck loop from one that makes progress.

Usage: `python tools/fit_stalls.py`. The labelled histories must be beside the checkout, in
`../shared/relay-corpus`. Every figure comes from a model that was fitted without the source it
judges. The script writes the weights (`policy/stall/stall_weights.py`) and the table of figures
(`docs/explanation/stalls.md`).
"""

import json
import lzma
import math
import random
import re
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

from rekindle.policy.stall.pair_features import RelayPair, RelayReading, read_relay
from rekindle.policy.stall.relay_comparison import is_stuck

ROOT = Path(__file__).parents[1]
CORPUS = ROOT.parent / "shared" / "relay-corpus"
WEIGHTS_FILE = ROOT / "src/rekindle/policy/stall/stall_weights.py"
PAGE = ROOT / "docs/explanation/stalls.md"
RIDGE = 10.0
"""Strength of the penalty on large weights."""
ROUNDS, RESAMPLES = 8, 1_000
FAMILIES = {"relays": "labels_pairs.jsonl", "notes": "labels_loops.jsonl"}
TABLE = re.compile(r"(?<=<!-- figures -->\n).*?(?=<!-- end of figures -->)", re.DOTALL)


class Pair(NamedTuple):
    family: str
    source: str
    label: str
    relays: RelayPair
    features: dict[str, float]

    @property
    def is_stuck(self) -> bool:
        return self.label != "progress"


class Model(NamedTuple):
    bias: float
    weights: dict[str, float]

    def measure(self, features: dict[str, float]) -> float:
        total = self.bias + sum(self.weights[name] * value for name, value in features.items())
        return 1 / (1 + math.exp(-total))


@cache
def read_source(family: str, source: str) -> dict[int, RelayReading]:
    """Return the relays of a source by their number."""
    path = CORPUS / (f"relays/{source}.jsonl.xz" if family == "relays" else "loops.jsonl.xz")
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        rows = [
            row for row in map(json.loads, lines) if row["source"] == source or family == "relays"
        ]
    return {row["seq"]: read_relay(row["text"]) for row in rows}


@cache
def read_pairs() -> tuple[Pair, ...]:
    pairs = []
    for family, name in FAMILIES.items():
        for row in map(json.loads, (CORPUS / name).read_text("utf-8").splitlines()):
            if row["label"] == "unusable":
                continue
            source = read_source(family, row["source"])
            pair = RelayPair(source[row["prev_seq"]], source[row["curr_seq"]])
            pairs.append(Pair(family, row["source"], row["label"], pair, pair.measure()))
    return tuple(pairs)


def fit(pairs: list[Pair]) -> Model:
    """Return the weights of a logistic regression. Sources with many pairs count less per pair."""
    names = list(pairs[0].features)
    sizes = Counter(pair.source for pair in pairs)
    shares = [1 / math.sqrt(sizes[pair.source]) for pair in pairs]
    shares = [share * len(pairs) / sum(shares) for share in shares]
    columns = [[pair.features[name] for pair in pairs] for name in names]
    means = [sum(column) / len(column) for column in columns]
    spreads = [
        math.sqrt(sum((value - mean) ** 2 for value in column) / len(column)) or 1.0
        for column, mean in zip(columns, means, strict=True)
    ]
    rows = [
        [1.0, *((pair.features[n] - m) / s for n, m, s in zip(names, means, spreads, strict=True))]
        for pair in pairs
    ]
    found = [0.0] * (len(names) + 1)
    for _ in range(ROUNDS):
        found = _step(rows, [float(pair.is_stuck) for pair in pairs], shares, found)
    raw = [value / spread for value, spread in zip(found[1:], spreads, strict=True)]
    bias = found[0] - sum(value * mean for value, mean in zip(raw, means, strict=True))
    return Model(bias, dict(zip(names, raw, strict=True)))


def _step(
    rows: list[list[float]], truth: list[float], shares: list[float], found: list[float]
) -> list[float]:
    """Return the coefficients after one step of Newton's method."""
    size = len(found)
    slope = [0.0] + [-RIDGE * value for value in found[1:]]
    bend = [[RIDGE * (one == two and one > 0) for two in range(size)] for one in range(size)]
    for row, is_true, share in zip(rows, truth, shares, strict=True):
        chance = 1 / (1 + math.exp(-sum(a * b for a, b in zip(row, found, strict=True))))
        for one, value in enumerate(row):
            slope[one] += share * (is_true - chance) * value
            weight = share * chance * (1 - chance) * value
            for two, other in enumerate(row):
                bend[one][two] += weight * other
    return [value + change for value, change in zip(found, _solve(bend, slope), strict=True)]


def _solve(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Solve a system of linear equations by elimination."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for place, _ in enumerate(rows):
        best = max(range(place, len(rows)), key=lambda one: abs(rows[one][place]))
        rows[place], rows[best] = rows[best], rows[place]
        rows[place] = [value / rows[place][place] for value in rows[place]]
        for one, row in enumerate(rows):
            if one != place and row[place]:
                rows[one] = [a - row[place] * b for a, b in zip(row, rows[place], strict=True)]
    return [row[-1] for row in rows]


@cache
def judge_left_out() -> tuple[bool, ...]:
    """Return whether each pair is stuck according to a model fitted without its source."""
    pairs = read_pairs()
    models = {
        source: fit([pair for pair in pairs if pair.source != source])
        for source in {pair.source for pair in pairs}
    }
    return tuple(is_stuck(pair.relays, models[pair.source].measure) for pair in pairs)


class Score(NamedTuple):
    right: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float:
        return self.right / max(1, self.right + self.wrong)

    @property
    def recall(self) -> float:
        return self.right / max(1, self.right + self.missed)

    @property
    def f1(self) -> float:
        return 2 * self.right / max(1, 2 * self.right + self.wrong + self.missed)


def count(judged: list[tuple[Pair, bool]]) -> Score:
    hits = Counter((pair.is_stuck, found) for pair, found in judged)
    return Score(hits[True, True], hits[False, True], hits[True, False])


def find_interval(judged: list[tuple[Pair, bool]]) -> tuple[float, float]:
    """Return the 95 % interval of F1 when pairs are drawn again at random."""
    chooser = random.Random(1)  # noqa: S311 - a fixed sample
    drawn = sorted(count(chooser.choices(judged, k=len(judged))).f1 for _ in range(RESAMPLES))
    return drawn[RESAMPLES // 40], drawn[-RESAMPLES // 40]


def select(family: str) -> list[tuple[Pair, bool]]:
    judged = zip(read_pairs(), judge_left_out(), strict=True)
    return [(pair, found) for pair, found in judged if pair.family == family]


def count_waits(judged: list[tuple[Pair, bool]]) -> tuple[int, int]:
    """Return how many blocked pairs are recognized as waiting, and how many there are."""
    blocked = [(pair, found) for pair, found in judged if pair.label == "blocked"]
    return sum(found and pair.relays.wait is not None for pair, found in blocked), len(blocked)


def render_table() -> str:
    lines = [
        "| histories | source left out | pairs | precision | recall | F1 |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for family in FAMILIES:
        judged = select(family)
        for number, source in enumerate(sorted({pair.source for pair, _ in judged}), 1):
            some = [(pair, found) for pair, found in judged if pair.source == source]
            lines.append(_render_row(family, str(number), some))
        low, high = find_interval(judged)
        lines.append(
            _render_row(f"**{family}**", "each in turn", judged, f" ({low:.2f}–{high:.2f})")
        )
    waits = [count_waits(select(family)) for family in FAMILIES]
    shares = " and ".join(f"{found} of {total}" for found, total in waits)
    return "\n".join([*lines, "", f"Recognized as waiting, of the blocked pairs: {shares}.", ""])


def _render_row(family: str, source: str, judged: list[tuple[Pair, bool]], more: str = "") -> str:
    score = count(judged)
    if not any(pair.is_stuck for pair, _ in judged):
        figures = f"– | – | {score.wrong} wrong"
    else:
        figures = f"{score.precision:.2f} | {score.recall:.2f} | {score.f1:.2f}{more}"
    return f"| {family} | {source} | {len(judged)} | {figures} |"


def render_weights(model: Model) -> str:
    lines = [f'    "{name}": {value:.2f},' for name, value in model.weights.items()]
    return "\n".join(
        [
            '"""Weights of the features in `pair_features`, written by `tools/fit_stalls.py`.',
            "",
            "A positive weight speaks for a stuck loop, a negative one for progress.",
            '"""',
            "",
            "WEIGHTS = {",
            f'    "bias": {model.bias:.2f},',
            *lines,
            "}",
            "",
        ]
    )


def render_files() -> dict[Path, str]:
    """Return the files that this script writes, with their content."""
    page = PAGE.read_text("utf-8")
    return {
        WEIGHTS_FILE: render_weights(fit(list(read_pairs()))),
        PAGE: TABLE.sub(lambda _: render_table(), page),
    }


def main() -> int:
    for path, text in render_files().items():
        path.write_text(text, "utf-8")
    print(render_table())
    return 0


if __name__ == "__main__":
    sys.exit(main())
