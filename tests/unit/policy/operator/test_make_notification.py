"""The content of a notification: what happened, the command to type, and the place."""

from rekindle.policy.operator.make_notification import make_notice

PLACE = {"project": "shop", "host": "tower"}


def test_a_notice_has_project_host_severity_and_command():
    words = "not logged in\n→ rekindle answer trades-1 retry  (or: stop)"
    notice = make_notice("trades", "auth", words, **PLACE)
    assert (notice.title, notice.severity) == ("trades: needs you", "failure")
    assert notice.body == f"{words}\nfailure: agent trades, project shop, host tower"


def test_a_notice_without_a_command_names_the_one_that_shows_the_agent():
    notice = make_notice("trades", "limit", "until 06:00: a usage limit", **PLACE)
    assert "\n→ rekindle status trades\nwarning: agent trades" in notice.body


def test_other_news_have_a_severity_of_their_own():
    notice = make_notice("trades", "does not come up", "exit 1", **PLACE)
    assert (notice.title, notice.severity) == ("trades: does not come up", "failure")
