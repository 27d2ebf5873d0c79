"""Track the cost of a running launch, and add it to the run's total."""

from collections.abc import Sequence
from datetime import date, datetime

from rekindle.documents.events import SpendRecorded
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
        self,
        before: RunSpending,
        prices: PriceList,
        day: date,
        usd_left: float | None = None,
        session_usd: float = 0.0,
    ) -> None:
        """Start with the run's spending `before` the launch, and the prices of this day."""
        self._before, self._session_usd = before, session_usd
        self._prices, self._day = prices, day
        self._usd_left = usd_left
        self._turns: dict[str, WindowUsage] = {}
        self._told: float | None = None
        self._counted = 0
        self._total: WindowUsage | None = None
        self._context: WindowUsage | None = None
        self._given: WindowUsage | None = None

    def count_given(self, tokens: int) -> None:
        """Count the prompt of a program that does not report its turns.

        This estimate is used until the program prints something, and never ends a running program.
        """
        self._given = WindowUsage(tokens, None, "estimated")

    def take(self, seen: OutputItem) -> None:
        match seen:
            case UsageReport():
                name = seen.turn or str(len(self._turns))
                self._take_turn(name, seen.usage)
                self._context = self._turns[name] if seen.is_context else self._context
                self._take_total(seen.usd)
            case FinalReport():
                self._take_total(seen.usd)
                self._counted = max(self._counted, seen.tokens or 0)
                self._total = seen.usage or self._total
            case _:
                pass

    def _take_total(self, usd: float | None) -> None:
        """Take the cost of the launch so far. Each total includes the previous one."""
        if usd is not None:
            self._told = max(self._told or 0.0, usd)

    def _take_turn(self, name: str, usage: WindowUsage) -> None:
        """Count a turn. It may be reported several times, first without the whole answer."""
        before = self._turns.get(name)
        if before is None or usage.tokens + usage.written >= before.tokens + before.written:
            self._turns[name] = usage

    @property
    def turns(self) -> int:
        return len(self._turns)

    @property
    def reported_usd(self) -> float | None:
        """The launch's cost so far in dollars, if the CLI reported it."""
        return self._told

    @property
    def session_usd(self) -> float:
        """The cost in dollars that the CLI has reported for the session; 0 if it reported none."""
        return 0.0 if self._told is None else self._session_usd + self._told

    def make_event(self, ts: datetime, launch: str, session: str) -> SpendRecorded:
        """Return the event that records the run's spending so far."""
        spent = self.spent()
        return SpendRecorded(
            ts=ts,
            launch=launch,
            tokens=spent.tokens,
            usd=spent.usd,
            unpriced=spent.unpriced,
            session=session if self.session_usd else "",
            session_usd=self.session_usd,
        )

    def spent(self, *, ended: bool = False) -> RunSpending:
        """Return the run's spending, including this launch.

        Some CLIs report their cost only when they exit, and may be killed before that. Until then
        the cost is computed from the tokens. A turn without a known price is guessed, up to the
        remaining budget, so that it still counts towards the caps. If the launch has `ended` with
        such a turn, it counts as unpriced.
        """
        # Before the first turn, only the prompt counts.
        turns = self._list_turns() or ([self._given] if self._given else [])
        certain, guess = self._find_cost(turns)
        if self._usd_left is not None:
            guess = min(guess, max(self._usd_left - certain, 0.0))
        elif not self._prices:
            guess = 0.0  # the program may not use a paid model at all
        unpriced = int(ended and self._has_unpriced(turns))
        return self._make_spending(turns, certain + guess, self._before.unpriced + unpriced)

    def estimate(self) -> float:
        """Return the launch's cost so far in dollars, based on list prices if not reported."""
        return sum(self._find_cost(self._list_turns()))

    def certain(self) -> RunSpending:
        """Return the spending without guesses. A guess must not end a running launch."""
        turns = self._list_turns()
        priced = [turn for turn in turns if turn is not self._context]
        return self._make_spending(turns, self._find_cost(priced)[0], self._before.unpriced)

    def _list_turns(self) -> list[WindowUsage]:
        """Return the reported turns, or their total. An estimate counts if there are none."""
        if self._total is not None:
            return [self._total]
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

    def _find_cost(self, turns: Sequence[WindowUsage]) -> tuple[float, float]:
        """Return the cost that is reported or has a price, and a guess for the other turns."""
        if self._told is not None:
            return self._told, 0.0
        costs = [(turn, self._prices.compute_cost(turn, self._day)) for turn in turns]
        certain = sum(cost for _, cost in costs if cost is not None)
        return certain, sum(_guess_cost(turn) for turn, cost in costs if cost is None)

    def _has_unpriced(self, turns: Sequence[WindowUsage]) -> bool:
        return self._told is None and any(
            self._prices.compute_cost(turn, self._day) is None for turn in turns
        )


def _guess_cost(turn: WindowUsage) -> float:
    return budget.guess_cost(read=turn.tokens, written=turn.written)
