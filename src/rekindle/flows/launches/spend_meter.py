"""Track the cost of a running launch, and add it to the run's total."""

from collections.abc import Sequence
from datetime import date

from rekindle.documents.launches.launch_types import (
    FinalReport,
    OutputItem,
    UsageReport,
    WindowUsage,
)
from rekindle.policy.supervision import budget
from rekindle.policy.supervision.budget import RunSpending
from rekindle.policy.supervision.list_prices import PriceList


class SpendMeter:
    """Counts turns as they are reported, so that caps apply during a launch."""

    def __init__(
        self, before: RunSpending, prices: PriceList, day: date, usd_left: float | None = None
    ) -> None:
        """Start with the run's spending `before` the launch, and the prices of this day."""
        self._before = before
        self._prices, self._day = prices, day
        self._usd_left = usd_left
        self._turns: dict[str, WindowUsage] = {}
        self._told: float | None = None
        self._counted = 0
        self._given: WindowUsage | None = None

    def count_given(self, tokens: int) -> None:
        """Count the prompt of a program that does not report its turns.

        This estimate is used until the program prints something, and never ends a running program.
        """
        self._given = WindowUsage(tokens, None, "estimated")

    def take(self, seen: OutputItem) -> None:
        match seen:
            case UsageReport():
                self._take_turn(seen.turn or str(len(self._turns)), seen.usage)
            case FinalReport():
                # A program may report its total more than once, and each total includes the
                # previous one.
                if seen.usd is not None:
                    self._told = max(self._told or 0.0, seen.usd)
                self._counted = max(self._counted, seen.tokens or 0)
            case _:
                pass

    def _take_turn(self, name: str, usage: WindowUsage) -> None:
        """Count a turn. It may be reported several times, first without the whole answer."""
        before = self._turns.get(name)
        if before is None or usage.tokens + usage.written >= before.tokens + before.written:
            self._turns[name] = usage

    @property
    def turns(self) -> int:
        return len(self._turns)

    def spent(self, *, ended: bool = False) -> RunSpending:
        """Return the run's spending, including this launch.

        Some CLIs report their cost only when they exit, and may be killed before that. Until then
        the cost is estimated from the tokens, up to the remaining budget, so that such a launch
        still counts towards the cap. If the launch has `ended` and its price is unknown, it counts
        as unpriced.
        """
        # Before the first turn, only the prompt counts.
        turns = self._list_turns() or ([self._given] if self._given else [])
        usd = self._find_cost(turns)
        guess = self._guess_remaining_cost(turns) if usd is None else 0.0
        unpriced = int(ended and usd is None and bool(turns))
        return self._make_spending(turns, usd or guess, self._before.unpriced + unpriced)

    def estimate(self) -> float:
        """Return the launch's cost so far in dollars, based on list prices if not reported."""
        turns = self._list_turns()
        usd = self._find_cost(turns)
        return _sum_list_prices(turns) if usd is None else usd

    def certain(self) -> RunSpending:
        """Return the spending without estimates. Estimates must not end a running launch."""
        turns = self._list_turns()
        return self._make_spending(turns, self._find_cost(turns) or 0.0, self._before.unpriced)

    def _list_turns(self) -> list[WindowUsage]:
        """Return the reported turns. An estimate counts only if there are none."""
        turns = self._turns.values()
        return [turn for turn in turns if turn.known != "estimated"] or list(turns)

    def _make_spending(
        self, turns: Sequence[WindowUsage], usd: float, unpriced: int
    ) -> RunSpending:
        tokens = sum(turn.tokens + turn.written for turn in turns)
        return RunSpending(
            self._before.seq,
            self._before.usd + usd,
            self._before.tokens + max(tokens, self._counted),
            unpriced,
            is_reported=not (self._before.is_estimated or (usd and self._told is None)),
        )

    def _find_cost(self, turns: Sequence[WindowUsage]) -> float | None:
        return self._told if self._told is not None else self._sum_priced(turns)

    def _guess_remaining_cost(self, turns: Sequence[WindowUsage]) -> float:
        return 0.0 if self._usd_left is None else min(_sum_list_prices(turns), self._usd_left)

    def _sum_priced(self, turns: Sequence[WindowUsage]) -> float | None:
        total = 0.0
        for turn in turns:
            cost = self._prices.compute_cost(turn, self._day)
            if cost is None:
                return None
            total += cost
        return total if turns else None


def _sum_list_prices(turns: Sequence[WindowUsage]) -> float:
    return sum(budget.guess_cost(read=turn.tokens, written=turn.written) for turn in turns)
