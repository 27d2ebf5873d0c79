"""Decide which question a button, a code or a reply answers."""

import re
from typing import NamedTuple

from rekindle.documents.phone.phone_messages import PhoneInput
from rekindle.documents.phone.phone_records import PairedChat, PhoneState, SentQuestion

NOT_YOURS = "Not yours."
TOO_OLD = "This button is too old. /questions lists the open questions."
CHANGED = "This message was changed, or there is a newer copy. /questions lists the open questions."
_PRESS = re.compile(r"([A-Za-z0-9_-]{16})(?:\.([0-9]{1,2})|\s+(.+))", re.DOTALL)
"""A code with the number of a choice, or with an answer in the person's own words."""


class PressVerdict(NamedTuple):
    """The question that an input answers and the answer, or the reason for a refusal."""

    question: SentQuestion | None = None
    words: str = ""
    refused: str = ""


def judge_press(state: PhoneState, received: PhoneInput, chat: PairedChat | None) -> PressVerdict:
    """Return which question a press answers. The log decides whether the answer still counts."""
    match = _PRESS.fullmatch(received.press.strip())
    sent = state.questions.get(match[1]) if match else None
    if chat is None:
        return PressVerdict(refused=NOT_YOURS)
    if match is None or sent is None:
        return PressVerdict(refused=TOO_OLD)
    if refused := _explain_refused(sent, received, chat):
        return PressVerdict(refused=refused)
    if match[3]:
        return PressVerdict(sent, match[3].strip())
    choice = sent.choices[int(match[2]) :][:1]
    return PressVerdict(sent, *choice) if choice else PressVerdict(refused=TOO_OLD)


def _explain_refused(sent: SentQuestion, received: PhoneInput, chat: PairedChat) -> str:
    if (sent.channel, sent.chat) != (chat.channel, chat.chat):
        return NOT_YOURS
    # The holder of a stolen token can edit the text above a button, or send a copy of the button
    # below another text. A press counts only below the text that the bridge has sent.
    is_other = bool(chat.user) and received.message not in sent.messages
    return CHANGED if received.is_edited or is_other else ""


def find_replied(state: PhoneState, received: PhoneInput) -> SentQuestion | None:
    """Return the question to whose message an input replies, or None.

    A reply to an edited message does not count, because the person has read another text.
    """
    if received.is_edited:
        return None
    place = (received.channel, received.chat)
    found = (
        sent
        for sent in state.questions.values()
        if (sent.channel, sent.chat) == place and received.message in sent.messages
    )
    return next(found, None)
