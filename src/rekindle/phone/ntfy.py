"""The ntfy service: https://docs.ntfy.sh/publish and https://docs.ntfy.sh/subscribe/api.

Questions go to one topic, and buttons send their codes to a second one, the reply topic. ntfy does
not say who sends a message, so only one-time codes count, and there are no commands.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from rekindle.documents.phone.phone_messages import PhoneInput, PhoneMessage
from rekindle.errors import PhoneError
from rekindle.phone import service_calls
from rekindle.phone.service_calls import ServiceError
from rekindle.thresholds.phone_limits import PHONE_RETRY_MOST_SECONDS, PHONE_RETRY_SECONDS

NAME = "ntfy"
SERVER = "https://ntfy.sh"
_BUTTONS = 3
_SILENT_SECONDS = 90.0
"""Longer than the 45 seconds between two signs of life of the server."""
_TOO_MANY = 429
_SERVER_ERRORS = 500


class NtfyChannel:
    """A topic. Its settings are `server`, `token`, `topic` and `reply_topic`."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._server = service_calls.require_server(settings.get("server") or SERVER)
        self._topic, self._replies = settings["topic"], settings["reply_topic"]
        token = settings.get("token", "")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def check(self) -> str:
        """Return the topic's name, after reading the reply topic."""
        list(self._read("poll=1&since=all"))
        return self._topic

    def receive(self, cursor: str) -> Iterator[PhoneInput]:
        """Wait for replies after a cursor, which is the id of a message."""
        for event in self._read(f"since={quote(cursor or 'all', safe='')}"):
            if event.get("event") == "message":
                yield PhoneInput(
                    cursor=str(event.get("id", "")),
                    channel=NAME,
                    chat=self._topic,
                    press=str(event.get("message") or "-"),
                )
            elif event.get("event") == "keepalive":
                return

    def send(self, chat: str, message: PhoneMessage) -> str:
        actions = [
            {
                "action": "http",
                "label": button.label,
                "url": f"{self._server}/{quote(self._replies, safe='')}",
                "method": "POST",
                "body": button.press,
                "clear": True,
            }
            for button in message.buttons[:_BUTTONS]
        ]
        text = message.text
        if others := [button.label for button in message.buttons[_BUTTONS:]]:
            text += f"\nOther choices, on the computer: {', '.join(others)}."
        body = {"topic": chat, "title": "Rekindle", "message": text, "actions": actions}
        try:
            sent = service_calls.call(NAME, self._server, body, self._headers)
        except ServiceError as error:
            raise _explain(error) from None
        return str(sent.get("id", ""))

    def close(self, chat: str, message: str, text: str) -> None:
        """Do nothing, because ntfy does not change messages. An old button has no effect."""

    def acknowledge(self, received: PhoneInput, text: str) -> None:
        self.send(received.chat, PhoneMessage(text))

    def _read(self, query: str) -> Iterator[dict[str, Any]]:
        url = f"{self._server}/{quote(self._replies, safe='')}/json?{query}"
        try:
            with service_calls.open_call(
                NAME, url, headers=self._headers, seconds=_SILENT_SECONDS
            ) as lines:
                for line in lines:
                    event = json.loads(line)
                    if isinstance(event, dict):
                        yield event
        except ServiceError as error:
            raise _explain(error) from None


def _explain(error: ServiceError) -> PhoneError:
    why = f"HTTP {error.code} {error.answer.get('error', '')}".strip()
    if error.code == _TOO_MANY:
        return PhoneError(NAME, why, retry_after=PHONE_RETRY_MOST_SECONDS)
    if error.code >= _SERVER_ERRORS:
        return PhoneError(NAME, why, retry_after=PHONE_RETRY_SECONDS)
    return PhoneError(
        NAME, why, hint="check the token and its access to both topics: `rekindle phone setup ntfy`"
    )
