"""The caps of a team, and the permits of its agents."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.errors import UsageError
from rekindle.policy.fleet import team_permits
from rekindle.policy.fleet.team_permits import (
    HeldPermit,
    PermitRequest,
    TeamCaps,
    TeamState,
    change_caps,
)

NOON = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)


def ask(team: TeamState, name: str, number: int = 1, usd: float = 0.0) -> TeamState:
    return team_permits.record_request(team, make(name, number, usd), NOON)


def make(name: str, number: int = 1, usd: float = 0.0) -> PermitRequest:
    return PermitRequest(workflow=name, number=number, usd=usd)


def grant(team: TeamState, now: datetime = NOON) -> tuple[TeamState, list[str]]:
    team, granted = team_permits.grant_permits(team, now)
    return team, [request.workflow for request in granted]


def make_team(*names: str, **caps) -> TeamState:
    team = TeamState(name="shop", caps=TeamCaps(**caps))
    for name in names:
        team = ask(team, name)
    return team


def test_agents_get_permits_in_the_order_in_which_they_asked():
    team, granted = grant(make_team("a", "b", "c", agents=2))
    assert granted == ["a", "b"]
    assert team.held["a"] == HeldPermit(number=1, usd=0.0, since=NOON)
    assert [request.workflow for request in team.waiting] == ["c"]
    assert team_permits.explain_cap(team, NOON) == "2 of 2 agents are running"


def test_without_caps_all_agents_get_permits():
    assert grant(make_team("a", "b"))[1] == ["a", "b"]


def test_an_agent_that_asks_for_its_next_cycle_lets_the_others_go_first():
    team, _ = grant(make_team("a", "b", agents=1))
    team, granted = grant(ask(team, "a", number=2))
    assert granted == ["b"]
    assert [request.number for request in team.waiting] == [2]


def test_a_repeated_request_changes_nothing():
    """The agent may already be using the permit; the place of a waiting agent stays."""
    team, _ = grant(make_team("a", "b", "c", agents=1))
    for name in ("a", "b"):
        again = ask(team, name)
        assert (again.held, again.waiting) == (team.held, team.waiting)


def test_a_returned_permit_is_free_for_the_next_agent():
    team, _ = grant(make_team("a", "b", agents=1))
    team, granted = grant(team_permits.end_permit(team, make("a"), NOON))
    assert (granted, list(team.held)) == (["b"], ["b"])


def test_an_agent_that_is_gone_has_no_permit_and_no_place():
    team, _ = grant(make_team("a", "b", agents=1))
    assert team_permits.drop_agent(team, "a").held == {}
    assert team_permits.drop_agent(team, "b").waiting == ()


def test_spending_counts_from_the_permit_on():
    team, _ = grant(ask(make_team(), "a", usd=5.0))
    team = team_permits.record_spending(team, make("a", usd=7.0), NOON)
    team = team_permits.record_spending(team, make("a", usd=8.0), NOON)
    assert team.spent_on(NOON) == 3.0
    assert team.spent_on(NOON + timedelta(days=1)) == 0.0
    assert team_permits.record_spending(team, make("stranger", usd=9.0), NOON) == team


def test_a_new_run_starts_at_zero():
    team, _ = grant(ask(make_team(), "a", usd=5.0))
    assert team_permits.end_permit(team, make("a", usd=1.5), NOON).usd == 1.5


def test_a_team_that_has_spent_its_money_waits_for_the_next_day():
    team, _ = grant(make_team("a", usd_per_day=2.0))
    team = ask(team_permits.end_permit(team, make("a", usd=2.0), NOON), "b")
    assert grant(team)[1] == []
    assert team_permits.explain_cap(team, NOON) == "$2.00 of $2.00 are spent today (UTC)"
    midnight = team_permits.find_next_day(NOON)
    assert midnight == datetime(2026, 4, 10, tzinfo=UTC)
    assert grant(team, midnight)[1] == ["b"]


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["ask", "end", "drop"]))))
def test_a_cap_is_never_exceeded(steps):
    team = make_team(agents=2)
    for number, (name, step) in enumerate(steps):
        if step == "ask":
            team = ask(team, name, number)
        elif step == "end":
            team = team_permits.end_permit(team, make(name, number), NOON)
        else:
            team = team_permits.drop_agent(team, name)
        team, _ = grant(team)
        waiting = [request.workflow for request in team.waiting]
        assert len(team.held) <= 2
        assert len(set(waiting)) == len(waiting)
        assert not set(waiting) & set(team.held)
        assert not waiting or len(team.held) == 2


def test_caps_from_the_command_line():
    caps = change_caps(TeamCaps(), "3", "12.50")
    assert caps == TeamCaps(agents=3, usd_per_day=12.5)
    assert change_caps(caps, None, "none") == TeamCaps(agents=3)
    assert change_caps(caps, "0", None).agents == 0


@pytest.mark.parametrize("text", ["", "-1", "many", "nan", "inf"])
def test_a_cap_that_is_not_a_number_is_refused(text):
    with pytest.raises(UsageError, match="not a valid value for --money-per-day"):
        change_caps(TeamCaps(), None, text)
    with pytest.raises(UsageError, match="not a valid value for --agents"):
        change_caps(TeamCaps(), text, None)
