"""Messages between the bridge and a phone, as every service carries them."""

from datetime import datetime

import msgspec


class PhoneButton(msgspec.Struct, frozen=True):
    """A button below a message."""

    label: str
    press: str
    """Text that the service sends back when the button is pressed."""


class PhoneMessage(msgspec.Struct, frozen=True):
    """A message to a phone, as plain text."""

    text: str
    buttons: tuple[PhoneButton, ...] = ()


class PhoneInput(msgspec.Struct, frozen=True, kw_only=True):
    """A message from a phone, or the press of a button."""

    cursor: str
    """Value to store as soon as this input is handled. The service then sends what follows it."""
    channel: str
    chat: str = ""
    """Id of the chat, as the service reports it."""
    user: str = ""
    """Id of the sender, as the service reports it; empty if the service does not know senders."""
    text: str = ""
    press: str = ""
    """Text of the pressed button; empty if this is a message."""
    press_id: str = ""
    """Id with which to acknowledge the press; empty if the service expects no acknowledgement."""
    message: str = ""
    """Id of the message that has the pressed button, or that this message replies to."""
    is_forwarded: bool = False
    is_edited: bool = False
    """Whether the message was changed after it was sent: by its author, or with a stolen token."""
    at: datetime | None = None
    """When the message was sent; None for a press."""
