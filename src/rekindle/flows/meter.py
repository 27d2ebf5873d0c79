"""What a launch spends while it runs, on top of what its run had spent before it."""

from collections.abc import Mapping

from rekindle.documents.launch import Finished, Seen, Usage, Used
from rekindle.documents.manifest import Price
from rekindle.policy import budget
from rekindle.policy.budget import Spent


class Meter:
    """Counts turns as they come: money and tokens are held to while the launch still runs."""

    def __init__(self, before: Spent, prices: Mapping[str, Price]) -> None:
        self._before = before
        self._prices = prices
        self._turns: dict[str, Usage] = {}
        self._told: float | None = None
        self._counted = 0

    def take(self, seen: Seen) -> None:
        match seen:
            case Used():
                self._turns[seen.turn or str(len(self._turns))] = seen.usage
            case Finished():
                # A program may give several accounts; each counts from its beginning.
                if seen.usd is not None:
                    self._told = max(self._told or 0.0, seen.usd)
                self._counted = max(self._counted, seen.tokens or 0)
            case _:
                pass

    def spent(self, *, ended: bool = False) -> Spent:
        """What the run has spent by now; of a launch that has ended, also whether that is all."""
        tokens = sum(turn.tokens + turn.written for turn in self._turns.values())
        tokens = max(tokens, self._counted)
        usd = self._told if self._told is not None else self._priced()
        unpriced = int(ended and usd is None and bool(self._turns))
        return Spent(
            self._before.seq,
            self._before.usd + (usd or 0.0),
            self._before.tokens + tokens,
            self._before.unpriced + unpriced,
        )

    def _priced(self) -> float | None:
        total = 0.0
        for turn in self._turns.values():
            cost = budget.price(self._prices, turn.model, read=turn.tokens, written=turn.written)
            if cost is None:
                return None
            total += cost
        return total if self._turns else None
