"""The bridge's records are what was stored, and a new user's are empty."""

from datetime import UTC, datetime

import msgspec

from rekindle.documents.phone.phone_records import (
    PairedChat,
    PhoneSettings,
    PhoneState,
    SentQuestion,
)

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def test_the_settings_are_read_as_they_were_stored():
    chat = PairedChat("telegram", "1", "2", "answer", NOON)
    settings = PhoneSettings(channels={"telegram": {"token": "t"}}, chats=(chat,))
    stored = msgspec.json.encode(settings)
    assert msgspec.json.decode(stored, type=PhoneSettings) == settings


def test_a_question_is_due_until_it_was_sent():
    question = SentQuestion(
        channel="telegram",
        chat="1",
        project="/shop",
        agent="trades",
        question="trades-1",
        digest="d",
        choices=("allow", "deny"),
    )
    assert (question.is_due, question.is_closed, question.messages) == (True, False, ())
    state = PhoneState(questions={"code": question})
    assert msgspec.json.decode(msgspec.json.encode(state), type=PhoneState) == state


def test_a_new_user_allows_no_one():
    assert (PhoneSettings().chats, PhoneSettings().offer) == ((), None)
