"""Decide which chat an input comes from, and what that chat may do."""

from collections.abc import Iterable
from typing import get_args

from rekindle.documents.phone.phone_messages import PhoneInput
from rekindle.documents.phone.phone_records import ChatRight, PairedChat

RIGHTS: tuple[ChatRight, ...] = get_args(ChatRight)


def find_chat(chats: Iterable[PairedChat], received: PhoneInput) -> PairedChat | None:
    """Return the paired chat that an input comes from, or None if it comes from a stranger.

    The chat and the person must both match, because all members of a group see its buttons.
    """
    sender = (received.channel, received.chat, received.user)
    return next((each for each in chats if (each.channel, each.chat, each.user) == sender), None)


def has_right(chat: PairedChat, needed: ChatRight) -> bool:
    return RIGHTS.index(chat.right) >= RIGHTS.index(needed)


def name_sender(chat: PairedChat) -> str:
    """Return the name of a chat's person for the log, such as `telegram:42`."""
    return f"{chat.channel}:{chat.user or chat.chat}"


def list_recipients(chats: Iterable[PairedChat]) -> list[PairedChat]:
    """Return each chat once, with the widest right of its paired persons."""
    widest: dict[tuple[str, str], PairedChat] = {}
    for chat in chats:
        known = widest.setdefault((chat.channel, chat.chat), chat)
        if has_right(chat, known.right):
            widest[chat.channel, chat.chat] = chat
    return list(widest.values())
