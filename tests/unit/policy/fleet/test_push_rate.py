"""When a host may push again."""

import pytest

from rekindle.policy.fleet import push_rate
from rekindle.policy.fleet.push_rate import PushRate

START = 1_000_000.0


def push_without_pause(per_minute, count):
    """Return the times of pushes that each start as soon as possible."""
    rate, now, times = PushRate(), START, []
    for _ in range(count):
        now += push_rate.find_wait(rate, now, per_minute)
        rate = push_rate.start_push(rate, now, per_minute)
        times.append(now)
    return times


@pytest.mark.parametrize("per_minute", [1, 2, 3, 6, 7, 60])
def test_no_minute_has_more_pushes_than_allowed(per_minute):
    times = push_without_pause(per_minute, per_minute * 4)
    for start in times:
        assert sum(start <= time < start + 59.99 for time in times) <= per_minute
    assert times[-1] - START < 60 * 8, "the limit is used"


def test_the_first_pushes_do_not_wait():
    assert push_without_pause(6, 4) == pytest.approx([START] * 3 + [START + 15])
    assert push_without_pause(1, 2) == pytest.approx([START, START + 60])


def test_a_pause_gives_back_what_was_not_used():
    rate = PushRate(unused=0.0, at=START)
    assert push_rate.find_wait(rate, START, 6) == pytest.approx(15)
    assert push_rate.find_wait(rate, START + 15, 6) == 0
    assert push_rate.start_push(rate, START + 3600, 6).unused == pytest.approx(2)


def test_each_refusal_doubles_the_wait_until_a_push_is_accepted():
    rate, waits = PushRate(), []
    for _ in range(6):
        rate = push_rate.refuse_push(rate, START)
        waits.append(rate.until - START)
    assert waits == [5, 10, 20, 40, 60, 60]
    assert push_rate.find_wait(rate, START, 6) == 60
    assert push_rate.find_wait(push_rate.accept_push(rate), START + 15, 6) == 0


def test_a_clock_that_was_set_back_does_not_block_pushes():
    rate = PushRate(unused=1.0, at=START, until=START + 60, refusals=1)
    assert push_rate.find_wait(rate, START - 86_400, 6) == 60
    assert push_rate.find_wait(PushRate(unused=1.0, at=START), START - 86_400, 6) == 0


@pytest.mark.parametrize(
    ("complaint", "is_limit"),
    [
        ("fatal: unable to access 'x': The requested URL returned error: 429", True),
        ("remote: Too many pushes, try again later", True),
        ("remote: You have exceeded a secondary rate limit", True),
        ("fatal: unable to access 'x': The requested URL returned error: 403", False),
        ("fatal: repository 'https://host/4290' not found", False),
        ("", False),
    ],
)
def test_a_limit_is_told_from_other_refusals(complaint, is_limit):
    assert push_rate.is_limit_answer(complaint) is is_limit
