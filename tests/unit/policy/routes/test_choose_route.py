"""The route on which work continues."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.documents.launches.route import Route
from rekindle.policy.exits.restart import WaitUntil, decide_restart
from rekindle.policy.exits.stop_reasons import EXIT_KINDS
from rekindle.policy.projection.sessions import LaunchRecord
from rekindle.policy.routes.choose_route import RouteRequest, choose_route, is_first_login_exit
from rekindle.policy.routes.route_path import RoutePath
from rekindle.policy.settings.runtime_settings import (
    LIMIT_PROBE_SECONDS,
    OUTAGE_SECONDS,
    OUTAGE_TRIES,
    RestartSettings,
    RuntimeSettings,
)

NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)
A, B, C = Route("claude-code", "work"), Route("claude-code", "own"), Route("codex")
ROUTES = (A, B, C)
BLOCKING = ("limit", "auth", "billing", "misconfigured")
OUTAGES = ("overload", "network")


def launch(seq, route, exit_kind, *, cycle=1, ago=1.0, resets=None, seconds=1.0):
    ended = NOW - timedelta(seconds=ago)
    return LaunchRecord(
        cycle,
        f"s{seq}",
        resumes=False,
        harness=route.harness,
        account=route.account,
        seq=seq,
        exit=exit_kind,
        ended=ended,
        ended_seq=seq,
        opened=True,
        seconds=seconds,
        resets_at=None if resets is None else int((NOW + timedelta(seconds=resets)).timestamp()),
    )


def choose(*launches, cycle=1, routes=ROUTES, **more):
    return choose_route(routes, launches, cycle=cycle, now=NOW, limits=RestartSettings(), **more)


def test_the_first_route_begins():
    """Nothing is known, so nothing is blocked."""
    assert (choose().route, choose().wait) == (A, None)


@pytest.mark.parametrize("exit_kind", BLOCKING)
def test_a_refusal_moves_the_work_to_the_next_route(exit_kind):
    """A limit and an expired login block a route at once."""
    refused = launch(1, A, exit_kind)
    assert choose(refused).route == B
    assert choose(refused, launch(2, B, exit_kind)).route == C


@pytest.mark.parametrize("exit_kind", sorted({*EXIT_KINDS} - {*BLOCKING}))
def test_other_exits_do_not_block_a_route(exit_kind):
    """Another CLI would not do better, or a retry may, so the restart policy decides alone."""
    assert choose(launch(1, A, exit_kind)).route == A
    assert choose(launch(1, B, exit_kind)).route == B


@pytest.mark.parametrize("exit_kind", OUTAGES)
def test_an_outage_is_left_after_several_failures_or_minutes(exit_kind):
    """A move costs a session, and most outages are short."""
    failed = [launch(seq, A, exit_kind) for seq in range(1, OUTAGE_TRIES + 1)]
    assert choose(*failed[:-1]).route == A
    assert choose(*failed).route == B
    slow = [launch(1, A, exit_kind, ago=OUTAGE_SECONDS + 1), launch(2, A, exit_kind)]
    assert choose(*slow).route == B
    worked = [*failed[:-1], launch(9, A, "clean"), launch(10, A, exit_kind)]
    assert choose(*worked).route == A
    healthy = [*failed[:-1], launch(10, A, exit_kind, seconds=9e3)]
    assert choose(*healthy).route == A


@pytest.mark.parametrize("exit_kind", OUTAGES)
def test_an_outage_of_all_routes_moves_the_work_rarely(exit_kind):
    """Each launch fails for two hours; the pauses are those of the restart policy."""
    now, launches, runtime = NOW, [], RuntimeSettings()
    while now < NOW + timedelta(hours=2):
        choice = choose_route((A, C), launches, cycle=1, now=now, limits=runtime.restart)
        path = RoutePath(choice, launches[-1] if launches else None)
        wait = path.decide_hold() or decide_restart(path.select(launches), now=now, runtime=runtime)
        if wait is not None:
            assert isinstance(wait, WaitUntil)
            now = wait.until
            continue
        now += timedelta(seconds=5)
        failed = launch(len(launches) + 1, choice.route, exit_kind)
        launches.append(msgspec.structs.replace(failed, ended=now))
    moves = sum(one.route != other.route for one, other in pairwise(launches))
    assert 1 <= moves <= 5
    assert len(launches) <= 40


def test_work_stays_where_an_outage_of_all_routes_stopped_it():
    """The other route is free sooner, but its service is as likely to be down."""
    limited = launch(1, C, "limit", resets=300)
    down = [launch(seq, A, "overload", ago=1) for seq in range(2, OUTAGE_TRIES + 2)]
    assert choose(limited, *down, routes=(A, C)).route == A


def test_work_stays_on_its_route_within_a_cycle_and_returns_with_the_next():
    """The first route is free again, but a move would cost a session."""
    was = [launch(1, A, "limit", ago=60, resets=-5), launch(2, C, "crash")]
    assert choose(*was).route == C
    assert choose(*was, cycle=2).route == A


def test_the_next_cycle_skips_a_route_that_is_still_blocked():
    """It begins on the first route that is free."""
    was = [launch(1, A, "limit", resets=600), launch(2, B, "clean")]
    assert choose(*was, cycle=2).route == B


def test_if_all_are_blocked_the_first_reset_decides():
    """The wait ends when one of the routes is free again."""
    was = [
        launch(1, A, "limit", resets=600),
        launch(2, B, "limit", resets=300),
        launch(3, C, "auth"),
    ]
    choice = choose(*was)
    assert choice.route == B
    assert choice.wait
    assert choice.wait.until == NOW + timedelta(seconds=300)
    assert (choice.wait.why, choice.wait.after) == ("limit", 2)
    assert not choice.is_stuck


def test_only_expired_logins_need_a_person():
    """There is nothing to wait for."""
    choice = choose(*(launch(seq, route, "auth") for seq, route in enumerate(ROUTES, 1)))
    assert choice.is_stuck


def test_an_expired_login_is_tried_again_later():
    """A person may have logged in, and nothing reports that."""
    assert choose(launch(1, A, "auth", ago=LIMIT_PROBE_SECONDS + 1), cycle=2).route == A
    twice = [launch(1, A, "auth", ago=9e5), launch(2, A, "auth", ago=LIMIT_PROBE_SECONDS + 1)]
    assert choose(*twice, cycle=2).route == B


def test_refusals_before_the_operators_restart_do_not_count():
    """A person has fixed the problem, or wants another try."""
    assert choose(launch(1, A, "auth"), since=1).route == A


def test_a_hold_blocks_a_route():
    """The reserve of its account is reached; a wait for it is not mistaken for another one."""
    until = NOW + timedelta(minutes=5)
    assert choose(holds={A: until}).route == B
    assert choose(holds={A: NOW}).route == A
    choice = choose(holds=dict.fromkeys(ROUTES, until))
    assert choice.wait
    assert choice.wait.until == until
    assert choice.wait.after < 0


def test_the_operators_request_counts_until_the_cycle_ends():
    """It names a CLI, or a CLI with an account."""
    was = [launch(1, A, "handoff")]
    assert choose(*was, asked=RouteRequest(2, "codex")).route == C
    assert choose(*was, asked=RouteRequest(2, "claude-code/own")).route == B
    assert choose(*was, asked=RouteRequest(2, "gemini")).route == A
    moved = [*was, launch(3, C, "crash")]
    assert choose(*moved, asked=RouteRequest(2, "codex")).route == C
    assert choose(*moved, launch(4, C, "clean"), cycle=2, asked=RouteRequest(2, "codex")).route == A
    late = [*was, launch(3, C, "limit", resets=900)]
    assert choose(*late, asked=RouteRequest(2, "codex")).route == A


@given(
    st.lists(
        st.tuples(
            st.sampled_from(ROUTES),
            st.sampled_from((*EXIT_KINDS, "")),
            st.integers(1, 3),
            st.one_of(st.none(), st.integers(-900, 900)),
        ),
        max_size=8,
    ),
    st.permutations(range(8)),
)
def test_the_choice_does_not_depend_on_the_order_of_events(seen, order):
    """It is always one of the routes, and a wait is always in the future."""
    launches = [
        launch(seq, route, exit_kind, cycle=cycle, resets=resets)
        for seq, (route, exit_kind, cycle, resets) in enumerate(seen, 1)
    ]
    choice = choose(*launches, cycle=3)
    assert choice.route in ROUTES
    assert choice.wait is None or choice.wait.until > NOW
    assert (choice.wait is None) == (choice.route not in choice.blocks)
    shuffled = [launches[place] for place in order if place < len(launches)]
    assert choose(*shuffled, cycle=3) == choice


def test_only_the_first_of_several_expired_logins_counts():
    """Until the route has worked, or the operator has restarted the agent."""
    first, other, second = launch(1, A, "auth"), launch(2, B, "clean"), launch(3, A, "billing")
    was = [first, other, second]
    assert is_first_login_exit(first, was)
    assert not is_first_login_exit(second, was)
    assert not is_first_login_exit(other, was)
    assert is_first_login_exit(second, was, since=2)
    assert is_first_login_exit(launch(5, A, "auth"), [*was, launch(4, A, "crash")])
