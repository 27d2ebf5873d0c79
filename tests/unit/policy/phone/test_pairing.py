"""A code pairs one person once, in time, and only if it is right."""

from datetime import UTC, datetime, timedelta

import pytest

from rekindle.documents.phone.phone_messages import PhoneInput
from rekindle.documents.phone.phone_records import PairedChat, PhoneSettings
from rekindle.policy.phone.pairing import judge_pairing, make_offer, remove_chat

NOW = datetime(2026, 3, 1, tzinfo=UTC)
CODE = "abcdefgh23456777"
OFFERED = PhoneSettings(offer=make_offer(CODE, "operate", NOW))


def message(text, **facts):
    given = {"cursor": "1", "channel": "telegram", "chat": "-100", "user": "42", **facts}
    return PhoneInput(text=text, **given)


@pytest.mark.parametrize("text", [f"/pair {CODE}", f"/start@bot  {CODE.upper()} "])
def test_the_right_code_pairs_its_sender(text):
    result = judge_pairing(OFFERED, message(text), NOW)
    assert result.chat == PairedChat("telegram", "-100", "42", "operate", NOW)
    assert result.settings == PhoneSettings(chats=(result.chat,))
    assert result.reply.startswith("Paired: this chat may operate")
    assert judge_pairing(result.settings, message(text), NOW) is None


def test_a_new_pairing_replaces_the_right_of_the_same_person():
    same = PairedChat("telegram", "-100", "42", "read", NOW)
    other = PairedChat("telegram", "-100", "43", "read", NOW)
    settings = PhoneSettings(chats=(same, other), offer=OFFERED.offer)
    result = judge_pairing(settings, message(f"/pair {CODE}"), NOW)
    assert result.settings.chats == (other, result.chat)


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        (CODE, {}),
        (f"pair {CODE}", {}),
        (f"/pair {CODE} please", {}),
        (f"/pair {CODE}", {"is_forwarded": True}),
        (f"/pair {CODE}", {"user": ""}),
    ],
)
def test_any_other_message_is_ignored(text, facts):
    assert judge_pairing(OFFERED, message(text, **facts), NOW) is None


def test_it_expires():
    late = judge_pairing(OFFERED, message(f"/pair {CODE}"), NOW + timedelta(minutes=10))
    assert late.chat is None
    assert late.settings == PhoneSettings()
    assert judge_pairing(OFFERED, message(f"/pair {CODE}"), NOW + timedelta(seconds=599)).chat


def test_five_wrong_codes_cancel_it():
    settings = OFFERED
    for _ in range(4):
        result = judge_pairing(settings, message("/pair wrong"), NOW)
        assert (result.chat, result.reply) == (
            None,
            judge_pairing(OFFERED, message("/pair x"), NOW).reply,
        )
        settings = result.settings
    assert judge_pairing(settings, message(f"/pair {CODE}"), NOW).chat
    assert judge_pairing(settings, message("/pair wrong"), NOW).settings.offer is None


def test_the_record_does_not_contain_the_code():
    assert CODE not in repr(OFFERED)


def test_a_chat_is_removed_with_all_its_persons_or_one():
    first, second = (PairedChat("telegram", "-100", user, "read", NOW) for user in "12")
    other = PairedChat("telegram", "5", "1", "read", NOW)
    settings = PhoneSettings(chats=(first, second, other))
    assert remove_chat(settings, "telegram", "-100").chats == (other,)
    assert remove_chat(settings, "telegram", "-100", "1").chats == (second, other)
    assert remove_chat(settings, "slack", "-100").chats == settings.chats
