"""Set up services, and offer to pair chats with them."""

import base64
import secrets
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from rekindle.documents.phone.phone_records import ChatRight, PairedChat, PhoneSettings
from rekindle.errors import NotFoundError, UsageError
from rekindle.phone import ntfy, service_calls, telegram
from rekindle.phone.channels import open_channel
from rekindle.policy.phone import pairing
from rekindle.stores.folders.phone_files import PhoneFiles
from rekindle.system import clock
from rekindle.thresholds.phone_limits import PHONE_CODE_BYTES, PHONE_PAIRING_BYTES


class ServiceSetup(NamedTuple):
    """A service that was set up, and the name that people see."""

    name: str
    settings: Mapping[str, str]


class PairingCode(NamedTuple):
    """A new code, and the bots to which it can be sent."""

    code: str
    bots: list[str]


def set_up_service(service: str, token: str, server: str | None) -> ServiceSetup:
    """Check a service, then store its settings.

    Raises:
        UsageError: The token or the server cannot be used.
        PhoneError: The service cannot be reached, or refuses the token.
    """
    if service == telegram.NAME and not token:
        raise UsageError(
            "there is no token",
            hint="paste the token that @BotFather in Telegram prints for your bot",
        )
    if any(not char.isprintable() or char.isspace() or char == "/" for char in token):
        raise UsageError("this is not a token", hint="paste only the token, on one line")
    files = PhoneFiles()
    settings = {"token": token, **({"server": server} if server else {})}
    if service == ntfy.NAME:
        settings |= _choose_topics(settings, files.read_settings().channels.get(service, {}))
    name = settings["bot"] = open_channel(service, settings).check()
    files.change_settings(lambda current: _add_service(current, service, settings))
    return ServiceSetup(name, settings)


def _choose_topics(settings: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str]:
    if not settings["token"] and _find_host(settings.get("server")) == _find_host(ntfy.SERVER):
        raise UsageError(
            "on the public server, everyone who learns a topic's name can read it",
            hint="paste an access token, or use --server with your own server",
        )
    return {
        key: before.get(key) or f"rekindle-{secrets.token_hex(PHONE_CODE_BYTES)}"
        for key in ("topic", "reply_topic")
    }


def _find_host(server: str | None) -> str:
    address = service_calls.require_server(server or ntfy.SERVER)
    return (urlsplit(address).hostname or "").rstrip(".")


def _add_service(current: PhoneSettings, service: str, settings: dict[str, str]) -> PhoneSettings:
    chats = current.chats
    if service == ntfy.NAME:
        # ntfy does not know senders, so everyone who gets a question's code may use it once.
        topic = PairedChat(service, settings["topic"], "", "answer", clock.read_clock())
        chats = (*pairing.remove_chat(current, service, topic.chat).chats, topic)
    channels = current.channels | {service: settings}
    return msgspec.structs.replace(current, channels=channels, chats=chats)


def offer_pairing(right: ChatRight) -> PairingCode:
    """Return a new code that pairs one chat. An earlier code does not work anymore.

    Raises:
        UsageError: No service with chats is set up.
        PhoneError: A service cannot be reached.
    """
    files = PhoneFiles()
    channels = files.read_settings().channels
    services = [service for service in channels if service != ntfy.NAME]
    if not services:
        raise UsageError(
            "no service with chats is set up", hint="run `rekindle phone setup telegram`"
        )
    bots = [f"{open_channel(name, channels[name]).check()} ({name})" for name in services]
    code = base64.b32encode(secrets.token_bytes(PHONE_PAIRING_BYTES)).decode().lower()
    offer = pairing.make_offer(code, right, clock.read_clock())
    files.change_settings(lambda current: msgspec.structs.replace(current, offer=offer))
    return PairingCode(code, bots)


def remove_named(name: str) -> None:
    """Remove a chat by its id, one person in it by CHAT/USER, or a service with its chats.

    Raises:
        NotFoundError: There is neither a chat nor a service with this name.
    """

    def remove(current: PhoneSettings) -> PhoneSettings:
        channels = {key: value for key, value in current.channels.items() if key != name}
        chats = tuple(
            chat
            for chat in current.chats
            if name not in {chat.channel, chat.chat, f"{chat.chat}/{chat.user}"}
        )
        if (channels, chats) == (current.channels, current.chats):
            raise NotFoundError(
                f"there is no chat or service {name!r}", hint="`rekindle phone status` lists them"
            )
        return msgspec.structs.replace(current, channels=channels, chats=chats, offer=None)

    PhoneFiles().change_settings(remove)
