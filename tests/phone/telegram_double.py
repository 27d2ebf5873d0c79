"""A double of the Telegram Bot API on the loopback, with the people who use the bot.

    with Telegram() as double:
        double.say(42, "/status")    # a person writes to the bot
        double.press(42, "Deny")     # a person presses the newest button with this label
        double.texts(42)             # what the bot has sent to a chat

It keeps these properties of the service: an update comes again until a later `offset` confirms it;
a second poller ends the first with 409; a wrong token is refused with 401; text over 4096
characters and callback data over 64 bytes are refused with 400; a button pressed twice is two
updates; an edited message has an `edit_date`. `failures` lists errors for the next calls.
"""

import itertools
import json
import threading
import time
from email.parser import BytesParser
from urllib.parse import parse_qsl

from phone.double_server import DoubleServer

TOKEN = "123456:" + "T" * 35
BOT = {"id": 123456, "is_bot": True, "first_name": "Rekindle", "username": "rekindle_bot"}


class Telegram(DoubleServer):
    def __init__(self, token=TOKEN, port=0):
        self.token = token
        self.calls = []
        """Every call except getUpdates: the method and its parameters."""
        self.messages = {}
        """The bot's messages by their ids, as the service shows them."""
        self.updates = []
        self.offsets = []
        self.failures = []
        self.busy = {}
        """Seconds that the bot must wait before it sends to a chat, by the chat's id."""
        self.refused = {}
        """Errors for messages to a chat: HTTP codes by the chat's id."""
        self.changed = threading.Condition()
        self._poller = 0
        self._numbers = itertools.count(100)
        super().__init__(port)

    def exchange(self, http, body):
        path, _, query = http.path.partition("?")
        token, _, method = path.removeprefix("/bot").rpartition("/")
        given = {**dict(parse_qsl(query)), **_parse(http.headers.get("content-type", ""), body)}
        given = {name: _decode(value) for name, value in given.items()}
        if token != self.token:
            return _error(401, "Unauthorized")
        if self.failures and method != "getMe":
            code, parameters = self.failures.pop(0)
            return _error(code, "failure", parameters=parameters)
        if method != "getUpdates":
            with self.changed:
                self.calls.append((method, given))
        answer = _METHODS.get(method)
        result = answer(self, given) if answer else (200, {"ok": True, "result": True})
        with self.changed:
            self.changed.notify_all()
        return result

    def get_me(self, given):
        return _ok({**BOT, "can_join_groups": True, "can_read_all_group_messages": False})

    def get_updates(self, given):
        offset, limit = int(given.get("offset") or 0), int(given.get("limit") or 100)
        until = time.monotonic() + float(given.get("timeout") or 0)
        with self.changed:
            self.offsets.append(offset)
            self._poller = own = self._poller + 1
            self.updates = [each for each in self.updates if each["update_id"] >= offset]
            self.changed.notify_all()
            while not self.updates and self._poller == own and time.monotonic() < until:
                self.changed.wait(max(0.0, until - time.monotonic()))
            if self._poller != own:
                return _error(409, "Conflict: terminated by other getUpdates request")
            return _ok(self.updates[:limit])

    def send_message(self, given):
        markup = given.get("reply_markup") or {}
        keys = [key for row in markup.get("inline_keyboard", ()) for key in row]
        if seconds := self.busy.get(int(given["chat_id"])):
            return _error(429, "Too Many Requests", parameters={"retry_after": seconds})
        if code := self.refused.get(int(given["chat_id"])):
            return _error(code, "Forbidden: bot was blocked by the user")
        if not given.get("text") or len(given["text"]) > 4096:
            return _error(400, "Bad Request: message is too long")
        if any(len(key["callback_data"].encode()) > 64 for key in keys):
            return _error(400, "Bad Request: BUTTON_DATA_INVALID")
        with self.changed:
            message = self._make_message(int(given["chat_id"]), given["text"], BOT)
            if keys:
                message["reply_markup"] = markup
            self.messages[message["message_id"]] = message
        return _ok(message)

    def edit_message(self, given):
        message = self.messages.get(int(given["message_id"]))
        if message is None or message["chat"]["id"] != int(given["chat_id"]):
            return _error(400, "Bad Request: message to edit not found")
        if message["text"] == given["text"] and "reply_markup" not in message:
            return _error(400, "Bad Request: message is not modified")
        with self.changed:
            message = {**message, "text": given["text"], "edit_date": int(time.time())}
            message.pop("reply_markup", None)
            if given.get("reply_markup"):
                message["reply_markup"] = given["reply_markup"]
            self.messages[message["message_id"]] = message
        return _ok(message)

    def say(self, chat, text, user=None, *, at=None, **more):
        """Send a message to the bot, as a person does. `more` adds fields of the Bot API."""
        with self.changed:
            message = self._make_message(chat, text, _make_person(user or chat))
            message["date"] = int(at or message["date"])
            self.add_update(message={**message, **more})

    def reply(self, chat, text, message, user=None):
        """Reply to one of the bot's messages."""
        self.say(chat, text, user, reply_to_message=message)

    def press(self, chat, label, user=None, *, message=None, times=1):
        """Press a button of a message, or of the newest message that has it."""
        message, data = (message, find_key(message, label)) if message else self.find(chat, label)
        self.press_data(chat, data, message, user, times=times)

    def press_data(self, chat, data, message, user=None, *, times=1):
        """Send the update of a press, even of a button that the chat does not show."""
        with self.changed:
            for _ in range(times):
                query = {"id": str(next(self._numbers)), "chat_instance": "1", "data": data}
                query["from"] = _make_person(user or chat)
                self.add_update(callback_query={**query, "message": message})

    def find(self, chat, label):
        """Return the newest message of a chat with this button, and the button's data."""
        for message in reversed(self.messages.values()):
            if message["chat"]["id"] == chat and (data := find_key(message, label)):
                return message, data
        raise LookupError(f"no message in chat {chat} has the button {label!r}")

    def texts(self, chat):
        return [each["text"] for each in self.messages.values() if each["chat"]["id"] == chat]

    def toasts(self):
        """Return what the presses were answered with."""
        return [given["text"] for name, given in self.calls if name == "answerCallbackQuery"]

    def wait_for(self, condition, seconds=120):
        """Wait until a condition holds. It is checked after each call and update."""
        with self.changed:
            assert self.changed.wait_for(condition, seconds), self.calls

    def wait_until_handled(self):
        """Wait until the bot has confirmed all updates."""
        self.wait_for(lambda: not self.updates)

    def _make_message(self, chat, text, sender):
        place = {"id": chat, "type": "private" if chat > 0 else "group", "first_name": "person"}
        if chat < 0:
            place = {"id": chat, "type": "group", "title": "team"}
        number = next(self._numbers)
        head = {"message_id": number, "date": int(time.time()), "chat": place, "from": sender}
        return {**head, "text": text}

    def add_update(self, **update):
        """Add an update of any kind."""
        with self.changed:
            self.updates.append({"update_id": next(self._numbers), **update})
            self.changed.notify_all()


_METHODS = {
    "getMe": Telegram.get_me,
    "getUpdates": Telegram.get_updates,
    "sendMessage": Telegram.send_message,
    "editMessageText": Telegram.edit_message,
}


def find_key(message, label):
    """Return the data of a message's button, or None."""
    rows = message.get("reply_markup", {}).get("inline_keyboard", ())
    return next((key["callback_data"] for row in rows for key in row if key["text"] == label), None)


def _make_person(user):
    return {"id": user, "is_bot": False, "first_name": "person"}


def _parse(kind, body):
    if "json" in kind:
        return json.loads(body)
    if "multipart" not in kind:
        return dict(parse_qsl(body.decode()))
    parts = BytesParser().parsebytes(f"content-type: {kind}\r\n\r\n".encode() + body).get_payload()
    named = [(part.get_param("name", header="content-disposition"), part) for part in parts]
    return {name: part.get_payload(decode=True).decode() for name, part in named}


def _decode(value):
    """Decode a nested object, which forms carry as JSON text."""
    if isinstance(value, str) and value[:1] in "{[":
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _ok(result):
    return 200, {"ok": True, "result": result}


def _error(code, text, **more):
    more = {name: value for name, value in more.items() if value}
    return code, {"ok": False, "error_code": code, "description": text, **more}
