"""Find the literals that the rules start from, all of them in one pass over a text.

A pattern that starts with alternatives is tried at every position of a text. Trying each pattern
only where one of its literals is takes a small fraction of that time.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator


class LiteralSearch:
    """A search for a set of literals in lower case, of at least two characters each."""

    def __init__(self, literals: Collection[str]) -> None:
        tails: dict[str, set[str]] = defaultdict(set)
        for literal in literals:
            tails[literal[0]].add(literal[1:])
        # A match is only the first character, so that it does not hide a literal inside another.
        self._pattern = re.compile(
            "|".join(
                f"{re.escape(first)}(?={_join_tails(tails[first])})" for first in sorted(tails)
            )
        )
        # By the first two characters, so that few literals are compared at each match.
        self._literals: dict[str, list[str]] = defaultdict(list)
        for literal in sorted(literals):
            self._literals[literal[:2]].append(literal)

    def find(self, low: str) -> "LiteralPositions":
        """Return the positions of all literals in a text in lower case."""
        positions: dict[str, list[int]] = defaultdict(list)
        for match in self._pattern.finditer(low):
            at = match.start()
            for literal in self._literals[low[at : at + 2]]:
                if low.startswith(literal, at):
                    positions[literal].append(at)
        return LiteralPositions(positions)


class LiteralPositions:
    """The positions of literals in a text."""

    def __init__(self, positions: dict[str, list[int]]) -> None:
        self._positions = positions

    def __contains__(self, literal: str) -> bool:
        return literal in self._positions

    def list_all(self, literals: Iterable[str]) -> list[int]:
        """Return the positions of any of these literals, in ascending order."""
        found = [self._positions[literal] for literal in literals if literal in self._positions]
        return found[0] if len(found) == 1 else sorted({at for places in found for at in places})

    def match(
        self, pattern: re.Pattern[str], text: str, starts: Iterable[str]
    ) -> Iterator[re.Match[str]]:
        """Yield the matches of a pattern, each of which must start with one of the literals."""
        done = 0
        for at in self.list_all(starts):
            match = pattern.match(text, at) if at >= done else None
            if match is not None:
                yield match
                done = match.end()


def _join_tails(tails: set[str]) -> str:
    """Return a pattern that matches where any of the tails does, without trying each in turn."""
    if "" in tails:
        return ""
    rests: dict[str, set[str]] = defaultdict(set)
    for tail in tails:
        rests[tail[0]].add(tail[1:])
    parts = [re.escape(first) + _join_tails(rests[first]) for first in sorted(rests)]
    return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"
