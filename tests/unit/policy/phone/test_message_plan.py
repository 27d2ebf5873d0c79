"""Each chat gets each open question once, and again if it may not have arrived."""

from datetime import UTC, datetime

import msgspec

from rekindle.documents.events import QuestionAsked
from rekindle.documents.phone.phone_records import PairedChat, PhoneState
from rekindle.policy.phone.message_plan import (
    drop_closed,
    find_closed,
    forget_messages,
    make_record,
    plan_messages,
    use_bot,
)
from rekindle.policy.phone.question_messages import OpenQuestion, digest_question
from rekindle.policy.redact.redaction import Redaction

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ME, OTHER = (PairedChat("telegram", chat, chat, "answer", NOW) for chat in ("42", "43"))


def ask(number, path="/shop"):
    question = QuestionAsked(
        ts=NOW,
        question=f"trades-{number}",
        number=number,
        about="permission",
        choices=("allow", "deny"),
        default="deny",
    )
    return OpenQuestion(path, "shop", "trades", question, Redaction())


def sent(asked, chat=ME, **changes):
    return msgspec.structs.replace(
        make_record(asked, chat), **{"messages": ("7",), "is_due": False} | changes
    )


def planned(state, *asked, chats=(ME,)):
    return [
        (each.chat.chat, each.asked.question.question, each.asked.path, each.code)
        for each in plan_messages(state, chats, asked)
    ]


def test_a_record_names_the_exact_question():
    asked = ask(1)
    record = make_record(asked, ME)
    assert (record.channel, record.chat, record.project) == ("telegram", "42", "/shop")
    assert (record.agent, record.question) == ("trades", "trades-1")
    assert (record.digest, record.choices) == (digest_question(asked.question), ("allow", "deny"))
    assert (record.messages, record.is_due, record.is_closed) == ((), True, False)


def test_new_questions_go_to_every_chat():
    state = PhoneState(questions={"a": sent(ask(1))})
    plan = planned(state, ask(1), ask(2), chats=(ME, OTHER))
    assert plan == [
        ("43", "trades-1", "/shop", ""),
        ("42", "trades-2", "/shop", ""),
        ("43", "trades-2", "/shop", ""),
    ]


def test_an_unconfirmed_question_is_sent_again_with_its_code():
    state = PhoneState(questions={"a": sent(ask(1), messages=(), is_due=True)})
    assert planned(state, ask(1)) == [("42", "trades-1", "/shop", "a")]


def test_the_same_id_in_another_project_is_another_question():
    state = PhoneState(questions={"a": sent(ask(1))})
    assert planned(state, ask(1, "/other")) == [("42", "trades-1", "/other", "")]


def test_a_question_that_is_open_again_gets_a_new_code():
    state = PhoneState(questions={"a": sent(ask(1), is_closed=True)})
    assert planned(state, ask(1)) == [("42", "trades-1", "/shop", "")]


def test_messages_of_answered_questions_are_closed():
    state = PhoneState(
        questions={
            "a": sent(ask(1)),
            "b": sent(ask(2)),
            "c": sent(ask(3), is_closed=True),
            "d": sent(ask(1, "/unreadable")),
        }
    )
    assert find_closed(state, [ask(1)], {"/shop"}) == [("b", state.questions["b"])]


def test_after_a_long_silence_open_questions_are_sent_again():
    """The old messages still count, and the codes stay the same."""
    other = sent(ask(3), PairedChat("ntfy", "news", "", "answer", NOW))
    state = PhoneState(
        questions={"a": sent(ask(1)), "b": sent(ask(2), is_closed=True), "c": other},
        cursors={"telegram": "9", "ntfy": "x"},
    )
    forgotten = forget_messages(state, "telegram")
    assert planned(forgotten, ask(1)) == [("42", "trades-1", "/shop", "a")]
    assert forgotten.questions["a"].messages == ("7",)
    assert forgotten.questions["b"] == state.questions["b"]
    assert forgotten.questions["c"] == other
    assert forgotten.cursors == {"ntfy": "x"}


def test_another_bot_sends_open_questions_again():
    """It has neither the cursor nor the messages of the first one."""
    other = sent(ask(3), PairedChat("ntfy", "news", "", "answer", NOW))
    state = PhoneState(
        questions={"a": sent(ask(1)), "b": other},
        cursors={"telegram": "9", "ntfy": "x"},
        bots={"telegram": "@first", "ntfy": "news"},
    )
    assert use_bot(state, "telegram", "@first") is state
    changed = use_bot(state, "telegram", "@second")
    assert planned(changed, ask(1)) == [("42", "trades-1", "/shop", "a")]
    assert changed.questions == {"a": sent(ask(1), messages=(), is_due=True), "b": other}
    assert changed.cursors == {"ntfy": "x"}
    assert changed.bots == {"telegram": "@second", "ntfy": "news"}


def test_only_the_oldest_closed_questions_are_dropped():
    questions = {f"c{number}": sent(ask(number), is_closed=True) for number in range(201)}
    state = PhoneState(questions={"open": sent(ask(500)), **questions})
    kept = drop_closed(state).questions
    assert list(kept) == ["open", *list(questions)[1:]]
    assert drop_closed(PhoneState(questions=kept)).questions == kept
