"""What a launch spends while it runs, on top of what its run had spent before it."""

from collections.abc import Mapping

from rekindle.documents.launch import Finished, Seen, Usage, Used
from rekindle.documents.manifest import Price
from rekindle.policy import budget
from rekindle.policy.budget import Spent


class Meter:
    """Counts turns as they come: money and tokens are held to while the launch still runs."""

    def __init__(
        self, before: Spent, prices: Mapping[str, Price], usd_left: float | None = None
    ) -> None:
        self._before = before
        self._prices = prices
        self._usd_left = usd_left
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

    @property
    def turns(self) -> int:
        return len(self._turns)

    def spent(self, *, ended: bool = False) -> Spent:
        """What the run has spent by now; of a launch that has ended, also whether that is all.

        A CLI that says only at its end what it has cost may be killed before: until it does, what
        its tokens may cost is counted, at most what it may spend: nobody escapes a cap by dying.
        """
        usd = self._certain()
        guess = self._guess() if usd is None else 0.0
        unpriced = int(ended and usd is None and bool(self._turns))
        return self._spent(usd or guess, self._before.unpriced + unpriced)

    def estimate(self) -> float:
        """Return what the launch has cost so far, in dollars; at list price if that is unknown."""
        usd = self._certain()
        return self._list_price() if usd is None else usd

    def certain(self) -> Spent:
        """The same, without what is only guessed: nothing is ended for a guess."""
        return self._spent(self._certain() or 0.0, self._before.unpriced)

    def _spent(self, usd: float, unpriced: int) -> Spent:
        tokens = sum(turn.tokens + turn.written for turn in self._turns.values())
        return Spent(
            self._before.seq,
            self._before.usd + usd,
            self._before.tokens + max(tokens, self._counted),
            unpriced,
        )

    def _certain(self) -> float | None:
        return self._told if self._told is not None else self._priced()

    def _guess(self) -> float:
        if self._usd_left is None:
            return 0.0
        return min(self._list_price(), self._usd_left)

    def _list_price(self) -> float:
        turns = self._turns.values()
        return sum(budget.guess(read=turn.tokens, written=turn.written) for turn in turns)

    def _priced(self) -> float | None:
        total = 0.0
        for turn in self._turns.values():
            cost = budget.price(self._prices, turn.model, read=turn.tokens, written=turn.written)
            if cost is None:
                return None
            total += cost
        return total if self._turns else None
