"""Send a message to an agent, and see when it arrives."""

import dataclasses
import json

import pytest

import rekindle
from rekindle.api.tell_agent import tell_agent
from rekindle.cli import main
from rekindle.documents import events
from rekindle.errors import AgentError, UsageError
from rekindle.system import clock
from rekindle.thresholds.message_limits import MESSAGE_CHARACTERS, MESSAGES_WAITING

MANIFEST = """\
version: 1
agents:
  scout: {harness: command, command: ["true"], prompt: task.md}
"""


@pytest.fixture
def scout(tmp_path, monkeypatch):
    (tmp_path / "rekindle.yaml").write_text(MANIFEST)
    (tmp_path / "task.md").write_text("Build the form.")
    monkeypatch.chdir(tmp_path)
    with rekindle.connect(tmp_path) as home:
        yield home.agent("scout")


def known(agent):
    return agent.home.store.read(agent.name).projection


def test_a_message_waits_until_the_agent_starts(scout):
    """It does not start the agent, and says how to do that."""
    sent = scout.tell("  Use the blue one.\n")
    (waiting,) = known(scout).waiting_messages
    assert (waiting.message, waiting.text, waiting.origin) == (
        sent.message,
        "Use the blue one.",
        "program",
    )
    assert waiting.by
    assert sent.arrives == "when you start it: `rekindle run scout`"
    assert known(scout).run.desired != "running"


def test_the_messages_wait_in_their_order_until_they_are_delivered(scout):
    first, second = (scout.tell(text).message for text in ("one", "two"))
    assert [one.text for one in known(scout).waiting_messages] == ["one", "two"]
    delivery = events.MessageDelivered(
        ts=clock.read_clock(), message=first, session="s", how="prompt"
    )
    with scout.home.store.writer("scout") as writer:
        writer.append(delivery)
    assert [one.message for one in known(scout).waiting_messages] == [second]


@pytest.mark.parametrize("text", ["", " \n", "x" * (MESSAGE_CHARACTERS + 1), "TEXT"])
def test_an_unusable_message_is_refused(scout, text):
    with pytest.raises(UsageError):
        scout.tell(text)
    assert not known(scout).messages


def test_only_so_many_messages_wait(scout):
    for number in range(MESSAGES_WAITING):
        scout.tell(f"message {number}")
    with pytest.raises(AgentError, match="already wait for scout"):
        scout.tell("one more")


def test_the_command_says_when_it_arrives_and_the_log_shows_it(scout, capsys):
    assert main.run(["tell", "scout", "Use", "the", "blue", "one."]) == 0
    out = capsys.readouterr().out
    (sent,) = known(scout).waiting_messages
    assert f"message {sent.message} is recorded. It will arrive when you start it" in out
    with scout.home.store.writer("scout") as writer:
        writer.append(
            events.MessageDelivered(
                ts=clock.read_clock(), message=sent.message, session="s", how="hook"
            )
        )
    assert main.run(["logs", "scout"]) == 0
    log = capsys.readouterr().out
    assert f"sent message {sent.message}: Use the blue one." in log
    assert f"received message {sent.message} with the result of a tool call" in log
    assert main.run(["tell", "scout", "again", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["agent"], set(row)) == ("scout", {"v", "agent", "message", "arrives"})


def test_a_bridge_names_the_author(scout):
    bridge = dataclasses.replace(scout.home.operator, by="telegram:7", origin="phone")
    tell_agent(scout.home, "scout", "Use the blue one.", bridge)
    (sent,) = known(scout).waiting_messages
    assert (sent.by, sent.origin) == ("telegram:7", "phone")
