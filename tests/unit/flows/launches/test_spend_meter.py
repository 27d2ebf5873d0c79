"""The cost of a running launch, reported or computed from its turns."""

from datetime import UTC, date, datetime

import pytest

from rekindle.documents.launches.launch_types import FinalReport, UsageReport, WindowUsage
from rekindle.documents.manifest import ModelPrice
from rekindle.flows.launches.spend_meter import SpendMeter
from rekindle.policy.supervision.budget import RunSpending, guess_cost
from rekindle.policy.supervision.list_prices import PriceList

PRICES = PriceList({"m": ModelPrice(10.0, 100.0, cached=1.0)})
DAY = date(2026, 11, 18)
NOW = datetime(2026, 11, 18, tzinfo=UTC)


def meter(*items, before=None, prices=PRICES, left=None):
    made = SpendMeter(before or RunSpending(), prices, DAY, left)
    for item in items:
        made.take(item)
    return made


def turn(name, tokens, written=0, *, model="m", known="unknown", **more):
    return UsageReport(WindowUsage(tokens, None, known, model, written, **more), name)


def test_cached_tokens_have_their_own_price():
    spent = meter(turn("a", 1_000_000, 10_000, cached=900_000)).spent(ended=True)
    assert spent.usd == pytest.approx(1.0 + 0.9 + 1.0)
    assert spent.is_estimated
    assert spent.unpriced == 0


def test_a_turn_that_is_reported_again_counts_once_and_whole():
    """A CLI reports a turn before the model has finished, and its transcript has the whole one."""
    first, whole = turn("a", 1000, 1), turn("a", 1000, 500)
    for reports in ((first, whole), (whole, first), (first, whole, first)):
        spent = meter(*reports).spent()
        assert spent.tokens == 1500
        assert spent.usd == pytest.approx(0.06)


def test_the_cost_that_the_cli_reports_replaces_the_computed_one():
    spent = meter(turn("a", 1_000_000), FinalReport("s", ok=True, usd=3.0)).spent(ended=True)
    assert spent.usd == 3.0
    assert spent.is_reported
    assert not spent.is_estimated


def test_a_cost_that_is_reported_during_the_launch_counts_at_once():
    """A cap in dollars ends the launch, and a killed launch keeps its cost."""
    report = UsageReport(WindowUsage(50_000, 200_000, "reported"), "a", usd=12.0)
    made = meter(report, before=RunSpending(usd=1.0, is_reported=True))
    assert made.certain().usd == made.spent(ended=True).usd == 13.0
    assert made.spent(ended=True).is_reported
    assert made.reported_usd == 12.0


def test_the_tokens_of_all_requests_replace_the_context():
    """A CLI reports its context during a launch, and the tokens of all requests at the end."""
    total = turn("", 4_000_000, 20_000, cached=3_000_000).usage
    final = FinalReport("s", ok=True, tokens=4_020_000, usage=total)
    spent = meter(turn("a", 100_000), final).spent(ended=True)
    assert spent.usd == pytest.approx(10.0 + 3.0 + 2.0)
    assert (spent.tokens, spent.is_estimated) == (4_020_000, True)


def test_the_price_of_a_context_is_an_estimate_that_ends_no_launch():
    """Most of the context may be cached, and the total at the end may be lower."""
    context = UsageReport(WindowUsage(100_000, None, "unknown", "m"), "a", is_context=True)
    made = meter(context)
    assert made.spent().usd == pytest.approx(1.0)
    assert (made.certain().usd, made.certain().tokens) == (0.0, 100_000)
    made.take(FinalReport("s", ok=True, usage=turn("", 1_000_000).usage))
    assert made.certain().usd == pytest.approx(10.0)


def test_the_reported_cost_is_recorded_with_its_session():
    made = SpendMeter(RunSpending(), PRICES, DAY, session_usd=2.0)
    made.take(turn("a", 1000))
    event = made.make_event(NOW, "l1", "ses_1")
    assert (event.session, event.session_usd) == ("", 0.0)
    made.take(UsageReport(WindowUsage(1000, None, "unknown"), "a", usd=0.5))
    event = made.make_event(NOW, "l1", "ses_1")
    assert (event.usd, event.session, event.session_usd) == (0.5, "ses_1", 2.5)


def test_a_total_with_an_earlier_estimate_stays_an_estimate():
    told = FinalReport("s", ok=True, usd=3.0)
    assert meter(told, before=RunSpending(usd=1.0)).spent(ended=True).is_estimated
    reported = RunSpending(usd=1.0, is_reported=True)
    assert meter(told, before=reported).spent(ended=True).is_reported
    assert meter(turn("a", 10), before=reported).spent(ended=True).is_estimated
    # A launch that cost nothing does not change it.
    assert meter(before=reported).spent(ended=True).is_reported


def test_an_estimated_turn_counts_only_if_none_is_reported():
    guess = turn("all input and output", 5000, known="estimated", model="")
    assert meter(guess).spent().tokens == 5000
    spent = meter(guess, turn("a", 1000)).spent(ended=True)
    assert (spent.tokens, spent.unpriced) == (1000, 0)


def test_a_launch_of_an_unknown_model_counts_as_unpriced():
    spent = meter(turn("a", 1_000_000, model="other"), left=0.5).spent(ended=True)
    assert (spent.usd, spent.unpriced) == (0.5, 1)
    assert meter(turn("a", 1_000_000, model="other")).certain().usd == 0.0


def test_one_turn_of_an_unknown_model_does_not_hide_the_cost_of_the_others():
    priced = [turn(f"{each}", 100_000) for each in range(9)]
    other = turn("other", 100_000, 1_000, model="my-proxy-model")
    guess = guess_cost(read=100_000, written=1_000)
    spent = meter(*priced, other).spent(ended=True)
    assert spent.usd == pytest.approx(9.0 + guess)
    assert (spent.is_estimated, spent.unpriced) == (True, 1)
    assert meter(*priced, other).estimate() == spent.usd
    assert meter(*priced, other).certain().usd == pytest.approx(9.0)
    # The guess is at most the rest of the budget, but the priced turns count in full.
    assert meter(*priced, other, left=9.1).spent().usd == pytest.approx(9.1)
    assert meter(*priced, other, left=5.0).spent().usd == pytest.approx(9.0)


def test_an_unknown_model_is_guessed_without_a_budget_unless_nothing_has_a_price():
    other = turn("a", 1_000_000, model="other")
    assert meter(other).spent().usd == guess_cost(read=1_000_000, written=0)
    assert meter(other, prices=PriceList()).spent().usd == 0.0
