"""Decide whether a message pairs its chat with the bridge.

The code is printed on the user's own computer and works once. The bridge never accepts a chat
without it, not even the first one.
"""

import hashlib
import re
from datetime import datetime, timedelta
from hmac import compare_digest
from typing import NamedTuple

import msgspec

from rekindle.documents.phone.phone_messages import PhoneInput
from rekindle.documents.phone.phone_records import (
    ChatRight,
    PairedChat,
    PairingOffer,
    PhoneSettings,
)
from rekindle.thresholds.phone_limits import PHONE_PAIRING_ERRORS, PHONE_PAIRING_SECONDS

_PAIR = re.compile(r"/(?:pair|start)(?:@\w+)?\s+(\S+)\s*")
"""`/start CODE` is what Telegram sends when the user opens a bot's link."""
_WRONG = "This code is not valid, or it was used. `rekindle phone pair` prints a new one."


class PairingResult(NamedTuple):
    """The settings after a pairing message, and the reply to it."""

    settings: PhoneSettings
    reply: str
    chat: PairedChat | None = None


def make_offer(code: str, right: ChatRight, now: datetime) -> PairingOffer:
    """Return the record of a new code."""
    return PairingOffer(_hash(code), right, now + timedelta(seconds=PHONE_PAIRING_SECONDS))


def judge_pairing(
    settings: PhoneSettings, received: PhoneInput, now: datetime
) -> PairingResult | None:
    """Return the result of a pairing message, or None if the message is to be ignored."""
    match = _PAIR.fullmatch(received.text)
    offer = settings.offer
    if match is None or offer is None or received.is_forwarded or not received.user:
        return None
    if now >= offer.until:
        return PairingResult(msgspec.structs.replace(settings, offer=None), _WRONG)
    if not compare_digest(offer.sha256, _hash(match[1])):
        wrong = offer.wrong + 1
        rest = msgspec.structs.replace(offer, wrong=wrong) if wrong < PHONE_PAIRING_ERRORS else None
        return PairingResult(msgspec.structs.replace(settings, offer=rest), _WRONG)
    chat = PairedChat(received.channel, received.chat, received.user, offer.right, now)
    others = remove_chat(settings, chat.channel, chat.chat, chat.user).chats
    paired = msgspec.structs.replace(settings, offer=None, chats=(*others, chat))
    return PairingResult(paired, f"Paired: this chat may {offer.right}. /help lists all.", chat)


def remove_chat(
    settings: PhoneSettings, channel: str, chat: str, user: str | None = None
) -> PhoneSettings:
    """Return the settings without a chat, or without one person in it."""
    kept = (
        each
        for each in settings.chats
        if (each.channel, each.chat) != (channel, chat) or user not in {None, each.user}
    )
    return msgspec.structs.replace(settings, chats=tuple(kept))


def _hash(code: str) -> str:
    return hashlib.sha256(code.strip().lower().encode("utf-8", "replace")).hexdigest()
