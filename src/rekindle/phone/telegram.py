"""Telegram, by the Bot API: https://core.telegram.org/bots/api."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from rekindle.documents.phone.phone_messages import PhoneInput, PhoneMessage
from rekindle.errors import PhoneError
from rekindle.phone import service_calls
from rekindle.phone.service_calls import ServiceError
from rekindle.policy.phone.question_messages import cut_text
from rekindle.thresholds.phone_limits import (
    PHONE_CALL_SECONDS,
    PHONE_POLL_SECONDS,
    PHONE_RETRY_MOST_SECONDS,
    PHONE_RETRY_SECONDS,
)

NAME = "telegram"
SERVER = "https://api.telegram.org"
_WRONG_TOKEN = (401, 404)
_REFUSED_CHAT = (400, 403)
_CONFLICT = 409
_TOO_MANY = 429
_SERVER_ERRORS = 500
_TOAST_CHARACTERS = 200
_UNCHANGED = "message is not modified"


class TelegramChannel:
    """A bot. Its settings are `token` and, for a Bot API server of your own, `server`."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        server = service_calls.require_server(settings.get("server") or SERVER)
        self._start = f"{server}/bot{settings['token']}/"
        self._confirmed = ""
        """Cursor that Telegram has already got."""

    def check(self) -> str:
        """Return the bot's name."""
        return f"@{self._call('getMe').get('username', '')}"

    def receive(self, cursor: str) -> Iterator[PhoneInput]:
        """Wait for updates after a cursor, which is the id of the next update."""
        # Confirm each cursor only once: after a week without updates, new ids may be lower.
        offset = {"offset": int(cursor)} if cursor and cursor != self._confirmed else {}
        updates = self._call(
            "getUpdates",
            seconds=PHONE_POLL_SECONDS + PHONE_CALL_SECONDS,
            timeout=PHONE_POLL_SECONDS,
            allowed_updates=["message", "callback_query"],
            **offset,
        )
        self._confirmed = cursor
        for update in updates:
            yield _read_update(update)

    def send(self, chat: str, message: PhoneMessage) -> str:
        keys = [[{"text": each.label, "callback_data": each.press}] for each in message.buttons]
        words: dict[str, Any] = {"reply_markup": {"inline_keyboard": keys}} if keys else {}
        # Telegram fetches the pages that a message links to, so a link could carry secrets out.
        words["link_preview_options"] = {"is_disabled": True}
        sent = self._call("sendMessage", chat_id=int(chat), text=message.text, **words)
        return _identify(sent)

    def close(self, chat: str, message: str, text: str) -> None:
        number = int(message.partition(":")[0])
        try:
            self._call("editMessageText", chat_id=int(chat), message_id=number, text=text)
        except PhoneError as error:
            if _UNCHANGED not in str(error):
                raise

    def acknowledge(self, received: PhoneInput, text: str) -> None:
        if received.press_id:
            toast = cut_text(text, _TOAST_CHARACTERS)
            self._call("answerCallbackQuery", callback_query_id=received.press_id, text=toast)
        else:
            self.send(received.chat, PhoneMessage(text))

    def _call(self, method: str, *, seconds: float = PHONE_CALL_SECONDS, **words: Any) -> Any:
        try:
            answer = service_calls.call(NAME, self._start + method, words, seconds=seconds)
        except ServiceError as error:
            raise _explain(error, words.get("chat_id")) from None
        if not isinstance(answer, dict) or "result" not in answer:
            raise PhoneError(NAME, "its answer is not valid", retry_after=PHONE_RETRY_SECONDS)
        return answer["result"]


def _explain(error: ServiceError, chat: int | None) -> PhoneError:
    why = f"HTTP {error.code} {error.answer.get('description', '')}".strip()
    if error.code in _WRONG_TOKEN:
        return PhoneError(
            NAME,
            why,
            hint="the token is not valid anymore; run `rekindle phone setup telegram`",
            retry_after=PHONE_RETRY_MOST_SECONDS,
        )
    if error.code == _CONFLICT:
        return PhoneError(
            NAME,
            why,
            hint="another program uses this bot: a bridge on another host, a webhook, or a stolen"
            " token; end it, or get a new token from @BotFather and run"
            " `rekindle phone setup telegram`",
            retry_after=PHONE_RETRY_MOST_SECONDS,
        )
    if error.code == _TOO_MANY:
        parameters = error.answer.get("parameters") or {}
        return PhoneError(NAME, why, retry_after=float(parameters.get("retry_after") or 1))
    if error.code in _REFUSED_CHAT and chat is not None:
        return PhoneError(
            NAME,
            f"chat {chat}: {why}",
            hint="open the chat, unblock the bot and send it /start; if the chat does not exist"
            f" anymore, run `rekindle phone remove {chat}`",
        )
    is_temporary = error.code >= _SERVER_ERRORS
    return PhoneError(NAME, why, retry_after=PHONE_RETRY_SECONDS if is_temporary else None)


def _read_update(update: dict[str, Any]) -> PhoneInput:
    """Return an update as an input. An update of another kind becomes an empty input."""
    cursor = str(int(update["update_id"]) + 1)
    try:
        if query := update.get("callback_query"):
            return _read_press(cursor, query)
        if message := update.get("message"):
            return _read_message(cursor, message)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError, OSError):
        pass  # an update in a format that we do not know must not stop the bridge
    return PhoneInput(cursor=cursor, channel=NAME)


def _read_press(cursor: str, query: dict[str, Any]) -> PhoneInput:
    message = query.get("message") or {}
    return PhoneInput(
        cursor=cursor,
        channel=NAME,
        chat=str((message.get("chat") or {}).get("id", "")),
        user=_find_user(query),
        press=str(query.get("data") or "-"),
        press_id=str(query["id"]),
        message=_identify(message),
        is_edited="edit_date" in message,
    )


def _read_message(cursor: str, message: dict[str, Any]) -> PhoneInput:
    replied = message.get("reply_to_message") or {}
    return PhoneInput(
        cursor=cursor,
        channel=NAME,
        chat=str(message["chat"]["id"]),
        user=_find_user(message),
        text=str(message.get("text") or ""),
        message=_identify(replied),
        is_edited="edit_date" in replied,
        is_forwarded=any(name.startswith("forward_") for name in message) or "via_bot" in message,
        at=datetime.fromtimestamp(int(message["date"]), UTC),
    )


def _identify(message: dict[str, Any]) -> str:
    """Return a message's id with a hash of its text and buttons, or "" if there is no message.

    Telegram may not mark a message as edited if only its buttons are changed.
    """
    if "message_id" not in message:
        return ""
    rows = (message.get("reply_markup") or {}).get("inline_keyboard") or ()
    keys = [[key.get("text"), key.get("callback_data")] for row in rows for key in row]
    shown = json.dumps([message.get("text"), keys])
    return f"{message['message_id']}:{hashlib.sha256(shown.encode()).hexdigest()}"


def _find_user(facts: dict[str, Any]) -> str:
    """Return the sender's id, or "" if it does not name one person.

    All anonymous administrators of a group have the same id, and a channel has no person at all.
    """
    sender = facts.get("from") or {}
    return "" if sender.get("is_bot") or "sender_chat" in facts else str(sender.get("id", ""))
