"""Decide which questions to send, and which messages to close."""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

import msgspec

from rekindle.documents.phone.phone_records import PairedChat, PhoneState, SentQuestion
from rekindle.policy.phone.chat_rights import list_recipients
from rekindle.policy.phone.question_messages import OpenQuestion, digest_question, list_choices
from rekindle.thresholds.phone_limits import PHONE_CLOSED_KEPT


class PlannedMessage(NamedTuple):
    """A question to send to a chat."""

    chat: PairedChat
    asked: OpenQuestion
    code: str
    """Code of an earlier attempt that was not confirmed; empty for a new question."""


def plan_messages(
    state: PhoneState, chats: Iterable[PairedChat], opened: Iterable[OpenQuestion]
) -> Iterator[PlannedMessage]:
    """Yield the questions that a chat has not got yet.

    A bridge that was killed while it sent a question does not know whether the message arrived. It
    sends the question again with the same code, so that the code still counts once.
    """
    recipients = list_recipients(chats)
    sent = {
        _identify(question): (code, question)
        for code, question in state.questions.items()
        if not question.is_closed
    }
    for asked in opened:
        for chat in recipients:
            code, known = sent.get(_identify(make_record(asked, chat)), ("", None))
            if known is None or known.is_due:
                yield PlannedMessage(chat, asked, code)


def make_record(asked: OpenQuestion, chat: PairedChat) -> SentQuestion:
    """Return the record of a question before it is sent."""
    return SentQuestion(
        channel=chat.channel,
        chat=chat.chat,
        project=asked.path,
        agent=asked.agent,
        question=asked.question.question,
        digest=digest_question(asked.question),
        choices=list_choices(asked.question),
    )


def find_closed(
    state: PhoneState, opened: Iterable[OpenQuestion], read: Collection[str]
) -> list[tuple[str, SentQuestion]]:
    """Return the messages whose question is not open anymore, with their codes.

    `read` contains the paths of the projects that could be read. A project on a disk that is not
    mounted may still have open questions.
    """
    still_open = {(asked.path, digest_question(asked.question)) for asked in opened}
    return [
        (code, sent)
        for code, sent in state.questions.items()
        if not sent.is_closed
        and sent.project in read
        and (sent.project, sent.digest) not in still_open
    ]


def forget_messages(state: PhoneState, channel: str) -> PhoneState:
    """Return the state in which a service's open questions are sent again.

    A service keeps presses only for some time. After a longer silence, some may be lost.
    """
    questions = {
        code: msgspec.structs.replace(sent, is_due=True)
        if sent.channel == channel and not sent.is_closed
        else sent
        for code, sent in state.questions.items()
    }
    cursors = {name: cursor for name, cursor in state.cursors.items() if name != channel}
    return msgspec.structs.replace(state, questions=questions, cursors=cursors)


def use_bot(state: PhoneState, channel: str, bot: str) -> PhoneState:
    """Return the state in which a service uses this bot.

    Another bot has other cursors and messages, so the open questions are sent again.
    """
    if state.bots.get(channel) == bot:
        return state
    forgotten = forget_messages(state, channel)
    questions = {
        code: msgspec.structs.replace(sent, messages=()) if sent.channel == channel else sent
        for code, sent in forgotten.questions.items()
    }
    bots = state.bots | {channel: bot}
    return msgspec.structs.replace(forgotten, questions=questions, bots=bots)


def drop_closed(state: PhoneState) -> PhoneState:
    """Return the state without the oldest closed questions."""
    closed = [code for code, sent in state.questions.items() if sent.is_closed]
    dropped = set(closed[: max(0, len(closed) - PHONE_CLOSED_KEPT)])
    if not dropped:
        return state
    kept = {code: sent for code, sent in state.questions.items() if code not in dropped}
    return msgspec.structs.replace(state, questions=kept)


def _identify(sent: SentQuestion) -> tuple[str, str, str, str]:
    return sent.channel, sent.chat, sent.project, sent.digest
