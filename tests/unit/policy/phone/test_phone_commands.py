"""A phone has few commands, and each needs a right."""

from datetime import UTC, datetime

import pytest

from rekindle.documents.phone.phone_records import PairedChat
from rekindle.policy.phone.phone_commands import COMMANDS, PhoneCommand, parse_command, render_help

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/status", PhoneCommand("status", "")),
        (" /status@rekindle_bot ", PhoneCommand("status", "")),
        ("/answer trades-1 yes,\nplease", PhoneCommand("answer", "trades-1 yes,\nplease")),
        ("/stop  trades", PhoneCommand("stop", "trades")),
        ("/start", PhoneCommand("help", "")),
        ("/pair used", PhoneCommand("help", "used")),
    ],
)
def test_a_command_is_read_with_its_words(text, command):
    assert parse_command(text) == command


@pytest.mark.parametrize("text", ["", "status", "/run trades", "/Status", "x /status", "/"])
def test_other_text_is_not_a_command(text):
    assert parse_command(text) is None


def test_help_lists_what_the_chat_may_do():
    def help_for(right):
        return render_help(PairedChat("telegram", "1", "1", right, NOW))

    assert "/stop AGENT: stop an agent" in help_for("operate")
    assert "/stop" not in help_for("answer")
    assert "/answer ID TEXT: answer a question" in help_for("answer")
    assert "Reply to a question" in help_for("answer")
    assert "Reply to a question" not in help_for("read")
    assert len(help_for("operate").splitlines()) == len(COMMANDS) + 1


def test_only_reading_commands_need_no_more_than_read():
    assert {name for name, row in COMMANDS.items() if row.right == "read"} == {
        *("status", "questions", "morning", "help")
    }


def test_only_a_message_must_not_be_repeated_after_a_kill():
    """An answer counts once by itself, and a second stop changes nothing."""
    assert [name for name, row in COMMANDS.items() if row.is_once] == ["tell"]
