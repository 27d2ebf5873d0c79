"""Records of the bridge: its settings, its paired chats and the questions that it has sent."""

from datetime import datetime
from typing import Literal

import msgspec

SCHEMA = 1

ChatRight = Literal["read", "answer", "operate"]
"""What a chat may do. Each right includes the ones before it."""


class PairedChat(msgspec.Struct, frozen=True):
    """A chat that may use the bridge, and the one person in it who may."""

    channel: str
    chat: str
    user: str
    """Id of the person; empty if the service does not know senders, so that only codes count."""
    right: ChatRight
    at: datetime


class PairingOffer(msgspec.Struct, frozen=True):
    """A code that pairs one chat. Only its hash is stored."""

    sha256: str
    right: ChatRight
    until: datetime
    wrong: int = 0
    """Number of wrong codes that were sent since."""


class PhoneSettings(msgspec.Struct, frozen=True):
    """The services, with their tokens, and the chats that may use them."""

    channels: dict[str, dict[str, str]] = {}
    """Settings of each service, by its name."""
    chats: tuple[PairedChat, ...] = ()
    offer: PairingOffer | None = None
    v: int = SCHEMA


class SentQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question that was sent to one chat, under a code of its own."""

    channel: str
    chat: str
    project: str
    """Path of the project's folder."""
    agent: str
    question: str
    """Id of the question."""
    digest: str
    """Hash of the question with its exact request. A changed request is another question."""
    choices: tuple[str, ...]
    """Answers of the buttons, in order."""
    messages: tuple[str, ...] = ()
    """Ids of the messages that the service has confirmed, oldest first."""
    is_due: bool = True
    """Whether the question is still to be sent, or to be sent again."""
    is_closed: bool = False
    """Whether the question no longer accepts an answer, and the message shows that."""


class PhoneState(msgspec.Struct, frozen=True):
    """The state that lets the bridge continue after it was killed."""

    cursors: dict[str, str] = {}
    """For each service, the cursor of the last input that was handled."""
    heard: dict[str, datetime] = {}
    """For each service, when it last answered."""
    problems: dict[str, str] = {}
    """For each service, or for one chat of it, why it cannot be used at the moment."""
    questions: dict[str, SentQuestion] = {}
    """Questions by their code, oldest first."""
    begun: dict[str, str] = {}
    """For each service, the cursor of the last command that must not be run twice."""
    bots: dict[str, str] = {}
    """For each service, the bot or topic to which its cursor and messages belong."""
    v: int = SCHEMA
