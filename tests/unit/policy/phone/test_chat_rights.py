"""Only the paired person in the paired chat counts, with the right that was given."""

from datetime import UTC, datetime

import pytest

from rekindle.documents.phone.phone_messages import PhoneInput
from rekindle.documents.phone.phone_records import PairedChat
from rekindle.policy.phone.chat_rights import (
    RIGHTS,
    find_chat,
    has_right,
    list_recipients,
    name_sender,
)

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def chat(chat="-100", user="42", right="answer", channel="telegram"):
    return PairedChat(channel, chat, user, right, NOW)


@pytest.mark.parametrize("other", [{"chat": "-7"}, {"user": "66"}, {"channel": "slack"}])
def test_the_service_the_chat_and_the_person_must_all_match(other):
    facts = {"channel": "telegram", "chat": "-100", "user": "42"}
    own = chat()
    assert find_chat([chat("1", "1"), own], PhoneInput(cursor="1", **facts)) is own
    assert find_chat([chat("1", "1"), own], PhoneInput(cursor="1", **facts | other)) is None
    assert find_chat([], PhoneInput(cursor="1", **facts)) is None


def test_each_right_includes_the_ones_before_it():
    assert RIGHTS == ("read", "answer", "operate")
    table = [[has_right(chat(right=own), needed) for needed in RIGHTS] for own in RIGHTS]
    assert table == [[True, False, False], [True, True, False], [True, True, True]]


def test_a_chat_gets_each_question_once_with_its_widest_right():
    reader, operator = chat(right="read"), chat(user="43", right="operate")
    writer, other = chat(user="44", right="answer"), chat("1", "1", "read")
    assert list_recipients([reader, operator, writer, other]) == [operator, other]


def test_the_log_names_the_person_or_the_topic():
    assert name_sender(chat()) == "telegram:42"
    assert name_sender(chat("news", "", channel="ntfy")) == "ntfy:news"
