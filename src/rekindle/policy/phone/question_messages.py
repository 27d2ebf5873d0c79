"""Compose the messages that ask a person on a phone, and check the answers that come back."""

import hashlib
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

import msgspec

from rekindle.documents.events import QuestionAsked
from rekindle.documents.phone.phone_messages import PhoneButton, PhoneMessage
from rekindle.documents.phone.phone_records import PairedChat
from rekindle.formats.identifiers import strip_invisible, to_one_line
from rekindle.policy.operator.answers import (
    ACCEPT,
    ANSWERS,
    ANSWERS_ABOUT,
    RAISE_ANSWER,
    TEXT_ANSWER,
)
from rekindle.policy.phone.chat_rights import has_right
from rekindle.policy.redact.redaction import Redaction
from rekindle.thresholds.phone_limits import PHONE_CHARACTERS

_LABELS = {"allow": "Allow once"}
_WITHOUT_BUTTON = {
    TEXT_ANSWER: "in your own words",
    RAISE_ANSWER: "with `raise` and the new limit, such as `raise 20`",
}
"""How a person gives the answers that no button can give."""
_CALL_HASH, _WAITS_UNTIL = "call", "waits_until"
"""Keys in the request of a call that waits for its answer."""
_CUT = "… (cut: `rekindle questions {}` shows the rest)"


class OpenQuestion(NamedTuple):
    """An open question, with its agent and its project."""

    path: str
    """Path of the project's folder."""
    project: str
    """Name of the project."""
    agent: str
    question: QuestionAsked
    redaction: Redaction


def list_choices(question: QuestionAsked) -> tuple[str, ...]:
    """Return the choices that a phone offers as buttons.

    Settings are accepted only on the computer, where the user can see them.
    """
    hidden = {TEXT_ANSWER, RAISE_ANSWER, *([ACCEPT] if _accepts_settings(question) else [])}
    return tuple(choice for choice in question.choices if choice not in hidden)


def explain_refused_words(question: QuestionAsked, words: str, chat: PairedChat) -> str:
    """Explain why this chat may not give this answer, or return "" if it may."""
    head = words.strip().casefold()
    if not has_right(chat, "answer"):
        return "This chat may only read."
    if head == ACCEPT and _accepts_settings(question):
        command = f"rekindle answer {question.question} {ACCEPT}"
        return f"Settings are accepted only on the computer: {command}"
    if head.startswith("raise") and RAISE_ANSWER in question.choices:
        return "" if has_right(chat, "operate") else "This chat may not raise a budget."
    return ""


def digest_question(question: QuestionAsked) -> str:
    """Return a hash of everything that the person decides about."""
    facts = [
        *(question.question, question.about, question.text, question.request),
        *(question.choices, question.default, question.ts),
    ]
    return hashlib.sha256(msgspec.json.encode(facts)).hexdigest()


def make_question_message(asked: OpenQuestion, code: str, chat: PairedChat) -> PhoneMessage:
    """Return the message that asks a question, with buttons if the chat may answer."""
    question = asked.question
    ending = [_render_wait(question) or _render_deadline(question.default, question.deadline)]
    buttons: tuple[PhoneButton, ...] = ()
    if has_right(chat, "answer"):
        buttons = tuple(
            PhoneButton(_render_label(choice, asked.redaction), f"{code}.{number}")
            for number, choice in enumerate(list_choices(question))
        )
        ending += _explain_other_answers(question, chat)
    head = f"{asked.project}/{asked.agent} asks ({question.question}):\n"
    tail = "\n\n" + "\n".join(filter(None, ending))
    body = question.text
    hidden = {_CALL_HASH, _WAITS_UNTIL}
    request = {key: value for key, value in question.request.items() if key not in hidden}
    if request:
        body += f"\n{msgspec.json.encode(request).decode()}"
    body = asked.redaction.text(strip_invisible(body))
    text = cut_text(body, PHONE_CHARACTERS - len(head) - len(tail), _CUT.format(question.question))
    return PhoneMessage(f"{head}{text}{tail}", buttons)


def render_open_question(asked: OpenQuestion) -> str:
    """Return one line about an open question."""
    line = f"{asked.project}/{asked.agent} {asked.question.question}: {asked.question.text}"
    return asked.redaction.text(to_one_line(strip_invisible(line)))


def join_lines(lines: Iterable[str]) -> list[str]:
    """Return the lines in as few messages as possible. A line that is too long is cut."""
    texts: list[str] = []
    for line in map(cut_text, lines):
        if texts and len(texts[-1]) + 1 + len(line) <= PHONE_CHARACTERS:
            texts[-1] += f"\n{line}"
        else:
            texts.append(line)
    return texts


def cut_text(text: str, limit: int = PHONE_CHARACTERS, mark: str = "…") -> str:
    """Return the text, or its beginning and a mark if it is too long."""
    if len(text) <= limit:
        return text
    return f"{text[: max(0, limit - len(mark))].rstrip()}{mark}"


def _render_label(choice: str, redaction: Redaction) -> str:
    words = redaction.text(strip_invisible(choice))
    return _LABELS.get(choice) or words[:1].upper() + words[1:]


def _explain_other_answers(question: QuestionAsked, chat: PairedChat) -> Iterator[str]:
    """Yield how the chat gives each answer that has no button, or why it may not."""
    for choice in question.choices:
        if choice in list_choices(question):
            continue
        if refused := explain_refused_words(question, choice, chat):
            yield refused
        elif chat.user:
            yield f"Reply to this message to answer {_WITHOUT_BUTTON[choice]}."
        else:  # the service does not know senders, so replies do not count
            command = f"rekindle questions {question.question}"
            yield f"Answer {_WITHOUT_BUTTON[choice]} on the computer: `{command}`."


def _render_deadline(default: str, deadline: datetime | None) -> str:
    return f"Without an answer by {deadline:%Y-%m-%d %H:%M} UTC: {default}." if deadline else ""


def _render_wait(question: QuestionAsked) -> str:
    """Return how long a call waits, or "" if it does not wait."""
    try:
        until = datetime.fromisoformat(str(question.request[_WAITS_UNTIL]))
    except (LookupError, ValueError):
        return ""
    return f"The call waits until {until:%H:%M:%S} UTC. A later answer counts for the next cycle."


def _accepts_settings(question: QuestionAsked) -> bool:
    row = ANSWERS_ABOUT.get((question.about, ACCEPT), ANSWERS[ACCEPT])
    return row.effect == ANSWERS[ACCEPT].effect
