"""A question on a phone is short, redacted and bound to its exact request."""

import hashlib
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from rekindle.documents.events import QuestionAsked
from rekindle.documents.phone.phone_messages import PhoneButton
from rekindle.documents.phone.phone_records import PairedChat
from rekindle.policy.operator.asked_calls import AskedCall, ask_about_waiting_call
from rekindle.policy.operator.questions import QuestionTerms
from rekindle.policy.phone.question_messages import (
    OpenQuestion,
    cut_text,
    digest_question,
    explain_refused_words,
    join_lines,
    list_choices,
    make_question_message,
    render_open_question,
)
from rekindle.policy.projection.projection import Projection
from rekindle.policy.redact.redaction import Redaction

NOW = datetime(2026, 3, 1, 3, tzinfo=UTC)
CODE = "c" * 16
PUSH = QuestionAsked(
    ts=NOW,
    question="trades-3",
    number=3,
    about="permission",
    text="permission for a call: Bash git push",
    request={"tool": "Bash", "arguments": {"command": "git push"}},
    choices=("allow", "deny"),
    default="deny",
    deadline=NOW + timedelta(minutes=30),
)
SECRET = "ghp_" + hashlib.sha256(b"a token").hexdigest()[:36]


def chat(right="answer", user="42"):
    return PairedChat("telegram", "42", user, right, NOW)


def message(question=PUSH, right="answer", user="42"):
    asked = OpenQuestion("/shop", "shop", "trades", question, Redaction())
    return make_question_message(asked, CODE, chat(right, user))


def ending(**facts):
    """Return the lines after the call and the buttons of a message."""
    user, right = facts.pop("user", "42"), facts.pop("right", "answer")
    shown = message(changed(deadline=None, request={}, **facts), right, user)
    return shown.text.partition("\n\n")[2], [button.label for button in shown.buttons]


def changed(**facts):
    return msgspec.structs.replace(PUSH, **facts)


def test_a_message_names_the_call_the_deadline_and_the_choices():
    shown = message()
    assert shown.text == (
        "shop/trades asks (trades-3):\n"
        "permission for a call: Bash git push\n"
        '{"tool":"Bash","arguments":{"command":"git push"}}\n\n'
        "Without an answer by 2026-03-01 03:30 UTC: deny."
    )
    assert shown.buttons == (
        PhoneButton("Allow once", f"{CODE}.0"),
        PhoneButton("Deny", f"{CODE}.1"),
    )


def test_a_chat_that_may_only_read_gets_no_buttons():
    shown = message(changed(choices=("TEXT", "stop")), "read")
    assert shown.buttons == ()
    assert "Reply" not in shown.text


def test_other_answers_are_given_as_a_reply():
    assert ending(about="stalled", choices=("TEXT", "retry", "stop")) == (
        "Reply to this message to answer in your own words.",
        ["Retry", "Stop"],
    )
    assert ending(about="budget", choices=("raise AMOUNT", "stop"), right="operate") == (
        "Reply to this message to answer with `raise` and the new limit, such as `raise 20`.",
        ["Stop"],
    )


def test_only_permitted_answers_are_offered():
    raising = ending(about="budget", choices=("raise AMOUNT", "stop"))
    assert raising == ("This chat may not raise a budget.", ["Stop"])
    words, labels = ending(about="settings", choices=("accept", "stop"), right="operate")
    assert words == ("Settings are accepted only on the computer: rekindle answer trades-3 accept")
    assert labels == ["Stop"]


def test_a_service_without_senders_has_no_replies():
    """Only codes count there, so the computer is the place for other words."""
    words, labels = ending(about="stalled", choices=("TEXT", "stop"), user="")
    assert words == "Answer in your own words on the computer: `rekindle questions trades-3`."
    assert labels == ["Stop"]


def test_a_label_keeps_the_words_of_its_choice():
    choices = ("use PostgreSQL", "SQLite", f"\u202e{SECRET}", "TEXT", "skip")
    _, labels = ending(about="asked", choices=choices)
    assert labels[:2] == ["Use PostgreSQL", "SQLite"]
    assert SECRET[4:] not in labels[2]
    assert "\u202e" not in labels[2]
    assert labels[3:] == ["Skip"]


def test_a_call_that_waits_says_how_long():
    call = AskedCall("0" * 64, "Bash", {"command": "git push"}, "push", "/w/app")
    terms = QuestionTerms(NOW, 3600.0)
    asked = ask_about_waiting_call(
        Projection("trades"), call, "l1", NOW + timedelta(minutes=5), terms
    )
    shown = message(asked).text
    assert "The call waits until 03:05:00 UTC. A later answer counts for the next cycle." in shown
    assert '{"tool":"Bash","arguments":{"command":"git push"},"folder":"/w/app"}\n' in shown
    assert "Without an answer" not in shown


def test_a_long_call_is_cut_but_not_its_deadline():
    command = f"echo {SECRET} \u202e{'x' * 5000}"
    shown = message(changed(request={"tool": "Bash", "arguments": {"command": command}})).text
    assert len(shown) == 700
    assert SECRET not in shown
    assert "\u202e" not in shown
    assert "xx… (cut: `rekindle questions trades-3` shows the rest)\n\nWithout" in shown


@pytest.mark.parametrize(
    "facts",
    [
        {"request": {"tool": "Bash", "arguments": {"command": "git push -f"}}},
        {"text": "another"},
        {"question": "trades-4"},
        {"about": "budget"},
        {"choices": ("deny", "allow")},
        {"default": "allow"},
        {"ts": NOW + timedelta(seconds=1)},
    ],
)
def test_a_changed_question_is_another_one(facts):
    assert digest_question(changed(**facts)) != digest_question(PUSH)
    assert digest_question(changed(seq=7)) == digest_question(PUSH)


def test_settings_are_accepted_only_on_the_computer():
    asked = changed(about="settings", choices=("accept", "stop"))
    assert list_choices(asked) == ("stop",)
    assert "only on the computer" in explain_refused_words(asked, " Accept ", chat("operate"))
    done = changed(about="disputed", choices=("TEXT", "retry", "accept", "stop"))
    assert list_choices(done) == ("retry", "accept", "stop")
    assert explain_refused_words(done, "accept", chat()) == ""


def test_answers_need_their_rights():
    budget = changed(about="budget", choices=("raise AMOUNT", "stop"))
    assert list_choices(budget) == ("stop",)
    assert explain_refused_words(budget, "raise 20", chat("operate")) == ""
    assert explain_refused_words(budget, "Raise 20", chat()) == "This chat may not raise a budget."
    assert explain_refused_words(PUSH, "raise it", chat()) == ""
    assert explain_refused_words(PUSH, "allow", chat("read")) == "This chat may only read."
    assert explain_refused_words(PUSH, "allow", chat()) == ""


def test_a_list_has_one_line_per_question():
    asked = OpenQuestion("/shop", "shop", "trades", changed(text=f"a\nb {SECRET}"), Redaction())
    line = render_open_question(asked)
    assert line.startswith("shop/trades trades-3: a b ")
    assert SECRET not in line


def test_lines_are_joined_up_to_the_limit():
    assert join_lines([]) == []
    assert join_lines(["a", "b", "c" * 696, "d" * 800]) == [
        f"a\nb\n{'c' * 696}",
        f"{'d' * 699}…",
    ]
    assert join_lines(["a", "b" * 699]) == ["a", "b" * 699]


def test_a_text_is_cut_to_the_limit():
    assert cut_text("x" * 700) == "x" * 700
    assert cut_text("x" * 701) == "x" * 699 + "…"
    assert cut_text("abc def", 5) == "abc…"
    assert cut_text("abcdef", 2, "…more") == "…more"
