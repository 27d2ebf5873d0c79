"""A fleet agent's workspace: the messages of its snapshots, and the url of its remote."""

import pytest

from rekindle.documents.commits.work_commit import (
    WorkSnapshot,
    find_replaced,
    make_work_ref,
    parse,
    render,
    strip_login,
    strip_user,
)

SNAPSHOT = WorkSnapshot("trades", 3, "here", "main", "9f86d0")


def test_the_message_of_a_snapshot():
    assert render(SNAPSHOT) == (
        "The workspace of trades\n\nRekindle-Agent: trades\nRekindle-Generation: 3\n"
        "Rekindle-Host: here\nRekindle-Branch: main\nRekindle-Head: 9f86d0\n"
    )


@pytest.mark.parametrize("snapshot", [SNAPSHOT, WorkSnapshot("trades", 12, "there", "", "")])
def test_a_message_reads_back(snapshot):
    assert parse(render(snapshot)) == snapshot


@pytest.mark.parametrize("message", ["", "Fix it\n", render(SNAPSHOT) + "More.\n"])
def test_another_commit_is_not_a_snapshot(message):
    assert parse(message) is None


def test_the_branch_of_an_agent():
    assert make_work_ref("trades") == "refs/heads/rekindle/trades/work"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("file:///srv/a?b", "file:///srv/a?b"),
        ("ssh://git:pw@h.org/a", "ssh://git@h.org/a"),
        ("git+ssh://git@h.org/a", "git+ssh://git@h.org/a"),
        ("https://me:token@h.org/a", "https://h.org/a"),
        ("https://h.org/a?token=x", "https://h.org/a"),
        ("git@h.org:a", "git@h.org:a"),
    ],
)
def test_a_url_without_what_one_person_logs_in_with(url, expected):
    """The user of ssh is a part of the address."""
    assert strip_user(url) == expected


def test_a_text_without_logins():
    text = "fatal: 'https://me:pw@h.org/a?t=1' not found"
    assert strip_login(text) == "fatal: 'https://h.org/a' not found"


def test_a_snapshot_says_which_one_it_replaces():
    """Older versions still read it, because the last paragraph is the same."""
    snapshot = WorkSnapshot("trades", 3, "here", "main", "1" * 40)
    message = render(snapshot, "2" * 40)
    assert parse(message) == snapshot
    assert find_replaced(message) == "2" * 40
    assert find_replaced(render(snapshot)) == ""
    assert find_replaced(f"This snapshot replaces {'2' * 40} and earlier ones.") == ""
