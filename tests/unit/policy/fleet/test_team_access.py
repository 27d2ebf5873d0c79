"""Hosts that accept only the agents of some teams."""

import pytest

from rekindle.errors import UsageError
from rekindle.policy.fleet.team_access import explain_refused_team, parse_teams


def test_a_list_of_teams_is_split_at_commas():
    assert parse_teams("shop, web") == {"shop", "web"}


@pytest.mark.parametrize("text", ["", "shop,", "Shop", "a b"])
def test_a_name_that_no_team_can_have_is_refused(text):
    with pytest.raises(UsageError, match="not a valid team name") as error:
        parse_teams(text)
    assert error.value.hint is not None


def test_a_host_without_a_list_accepts_everyone():
    assert explain_refused_team("one", (), "shop") == explain_refused_team("one", (), "") == ""


def test_a_host_accepts_the_teams_on_its_list_only():
    assert explain_refused_team("one", {"shop", "web"}, "web") == ""
    assert "accepts only agents of shop, web, not team ads;" in explain_refused_team(
        "one", {"web", "shop"}, "ads"
    )
    assert "not an agent without a team;" in explain_refused_team("one", {"web"}, "")
