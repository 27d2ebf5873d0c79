"""A press counts for one question, in its chat, below the message that the bridge sent."""

from datetime import UTC, datetime

import msgspec
import pytest

from rekindle.documents.phone.phone_messages import PhoneInput
from rekindle.documents.phone.phone_records import PairedChat, PhoneState, SentQuestion
from rekindle.policy.phone.press_verdicts import (
    CHANGED,
    NOT_YOURS,
    TOO_OLD,
    PressVerdict,
    find_replied,
    judge_press,
)

CODE = "c" * 16
CHAT = PairedChat("telegram", "-100", "42", "answer", datetime(2026, 3, 1, tzinfo=UTC))
SENT = SentQuestion(
    channel="telegram",
    chat="-100",
    project="/shop",
    agent="trades",
    question="trades-1",
    digest="d",
    choices=("allow", "deny"),
    messages=("7", "9"),
)
STATE = PhoneState(questions={CODE: SENT})


def press(data, **facts):
    given = {"cursor": "1", "channel": "telegram", "chat": "-100", "user": "42", "message": "9"}
    return PhoneInput(press=data, **given | facts)


@pytest.mark.parametrize(("number", "choice"), [(0, "allow"), (1, "deny")])
@pytest.mark.parametrize("message", ["7", "9"])
def test_a_press_selects_its_choice(number, choice, message):
    pressed = press(f"{CODE}.{number}", message=message)
    assert judge_press(STATE, pressed, CHAT) == PressVerdict(SENT, choice)


@pytest.mark.parametrize("data", [f"{CODE}.2", f"{'d' * 16}.0", "", "c.0", f"{CODE}.-1", CODE])
def test_an_unknown_button_is_too_old(data):
    assert judge_press(STATE, press(data), CHAT) == PressVerdict(refused=TOO_OLD)


def test_a_stranger_learns_nothing():
    for data in (f"{CODE}.0", "rubbish"):
        assert judge_press(STATE, press(data), None) == PressVerdict(refused=NOT_YOURS)


@pytest.mark.parametrize("place", [{"chat": "5"}, {"channel": "slack"}])
def test_a_code_counts_only_in_its_own_chat(place):
    other = msgspec.structs.replace(CHAT, **place)
    verdict = judge_press(STATE, press(f"{CODE}.0"), other)
    assert verdict == PressVerdict(refused=NOT_YOURS)


@pytest.mark.parametrize("facts", [{"message": "8"}, {"message": ""}, {"is_edited": True}])
def test_a_button_below_another_text_does_not_count(facts):
    verdict = judge_press(STATE, press(f"{CODE}.0", **facts), CHAT)
    assert verdict == PressVerdict(refused=CHANGED)


def test_a_service_without_senders_sends_codes_and_words():
    topic = PairedChat("ntfy", "news", "", "answer", CHAT.at)
    sent = msgspec.structs.replace(SENT, channel="ntfy", chat="news")
    state = PhoneState(questions={CODE: sent})
    facts = {"channel": "ntfy", "chat": "news", "user": "", "message": ""}
    assert judge_press(state, press(f"{CODE}.1", **facts), topic).words == "deny"
    assert judge_press(state, press(f"{CODE} use\nsqlite ", **facts), topic).words == "use\nsqlite"


def test_a_reply_belongs_to_the_message_in_its_chat():
    assert find_replied(STATE, press("", message="7")) is SENT
    for facts in (
        *({"message": "8"}, {"message": ""}, {"chat": "5"}, {"channel": "slack"}),
        {"is_edited": True},
    ):
        assert find_replied(STATE, press("", **{"message": "7"} | facts)) is None
