"""Actions run the command that the page shows, each request once."""

import uuid

import pytest

from rekindle import config
from rekindle.cli.command_table import COMMANDS
from rekindle.web.page_actions import ACTIONS, describe_commands
from rekindle.wiring.open_store import open_store


def act(page, action, **fields):
    request = {"id": str(uuid.uuid4()), "project": "shop", "agent": "trades", "action": action}
    return page.post("/api/act", json=request | fields)


RELAY = "## Next Action\nWrite the parser\n"


def read_relay(project):
    return open_store(config.load_project(project)).document("trades", "relay")


def test_an_action_runs_its_command_in_the_project(page):
    result = act(page, "stop").json()
    assert result["code"] == 0, result
    assert result["command"] == "rekindle stop trades"
    assert "trades" in result["output"]


def test_an_edited_relay_is_saved_only_if_it_is_based_on_the_current_one(page, project):
    assert act(page, "edit relay", text=RELAY).json()["code"] == 0
    assert b"Write the parser" in read_relay(project)
    base = page.get("/api/agent?project=shop&agent=trades").json()["relay"]["base"]
    first = act(page, "edit relay", text=RELAY.replace("parser", "tests"), base=base)
    second = act(page, "edit relay", text=RELAY.replace("parser", "docs"), base=base)
    assert first.json()["code"] == 0
    assert f"--base {base}" in second.json()["command"]
    assert second.json()["code"] == 8
    assert "not saved" in second.json()["output"]
    assert b"Write the tests" in read_relay(project)


def test_modules_in_the_project_are_not_imported(page, project):
    """An agent can write files there."""
    (project / "click.py").write_text("raise SystemExit('a module of the project ran')")
    assert act(page, "stop").json()["code"] == 0


def test_a_repeated_request_runs_once(page):
    sent = {"id": "one", "project": "shop", "agent": "trades", "action": "answer"}
    first = page.post("/api/act", json={**sent, "text": "Take ten an hour"})
    second = page.post("/api/act", json={**sent, "text": "Take ten an hour"})
    other = page.post("/api/act", json={**sent, "id": "two", "text": "Take ten an hour"})
    assert first.json() == second.json()
    assert other.status_code == 200


def test_a_message_is_sent(page, project):
    result = act(page, "tell", text="--help is not an option").json()
    assert result["code"] == 0, result
    assert result["command"] == "rekindle tell trades '--help is not an option'"
    assert "It will arrive" in result["output"]


def test_a_refusal_is_passed_on(page):
    result = act(page, "hand off").json()
    assert result["code"] == 9
    assert "is not running" in result["output"]


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"agent": "other"}, 404),
        ({"agent": "--help"}, 404),
        ({"project": "../shop"}, 404),
        ({"action": "forget"}, 400),
        ({"action": "answer"}, 400),
        ({"more": 1}, 400),
    ],
)
def test_other_requests_are_refused(page, fields, status):
    request = {"id": "x", "project": "shop", "agent": "trades", "action": "stop"} | fields
    assert page.post("/api/act", json=request).status_code == status


def test_text_is_never_an_option(page):
    result = act(page, "answer", text="--help").json()
    assert "Usage:" not in result["output"]


def test_a_read_only_server_runs_nothing(open_page):
    assert act(open_page(read_only=True), "stop").status_code == 403


@pytest.mark.parametrize("action", ACTIONS)
def test_each_command_exists(action):
    assert describe_commands()[action][0] in COMMANDS


def test_a_failed_action_can_be_corrected_and_sent_again(page):
    """The page sends the same id until its dialog is closed."""
    sent = {"id": "one", "project": "shop", "agent": "trades", "action": "answer"}
    wrong = page.post("/api/act", json={**sent, "target": "trades-9", "text": "Ten"})
    assert wrong.json()["code"] != 0
    empty = page.post("/api/act", json={**sent, "text": " "})
    assert empty.json()["error"] == "a text is missing"
    assert page.post("/api/act", json={**sent, "text": "Ten"}).json()["code"] == 0


@pytest.mark.parametrize("text", ["x" * 200_000, "one\0two"])
def test_a_text_that_no_command_can_take_is_refused(page, text):
    response = act(page, "answer", text=text)
    assert response.status_code == 400
    assert "cannot be started" in response.json()["error"]
    assert "shorten the text" in response.json()["hint"]
