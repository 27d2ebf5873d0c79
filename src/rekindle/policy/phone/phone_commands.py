"""The commands that a phone can send."""

import re
from typing import NamedTuple

from rekindle.documents.phone.phone_records import ChatRight, PairedChat
from rekindle.policy.phone.chat_rights import has_right


class CommandRow(NamedTuple):
    """What a command does, and the right that it needs."""

    right: ChatRight
    arguments: str
    meaning: str
    is_once: bool = False
    """Whether the command must not be run again if the bridge is killed while it runs."""


COMMANDS: dict[str, CommandRow] = {
    "status": CommandRow("read", "", "what each agent is doing or waiting for"),
    "questions": CommandRow("read", "", "the open questions"),
    "morning": CommandRow("read", "", "the morning page"),
    "answer": CommandRow("answer", "ID TEXT", "answer a question"),
    "stop": CommandRow("operate", "AGENT", "stop an agent and keep it stopped"),
    "tell": CommandRow("operate", "AGENT TEXT", "send a message to an agent", is_once=True),
    "help": CommandRow("read", "", "this list"),
}
_OTHER_NAMES = {"start": "help", "pair": "help"}
"""Commands of a chat that is paired already."""
_COMMAND = re.compile(r"/([a-z]+)(?:@\w+)?(?:\s+(.*))?", re.DOTALL)


class PhoneCommand(NamedTuple):
    name: str
    words: str


def parse_command(text: str) -> PhoneCommand | None:
    """Return the command in a message, or None if the message is not a known command."""
    match = _COMMAND.fullmatch(text.strip())
    name = _OTHER_NAMES.get(match[1], match[1]) if match else ""
    if match is None or name not in COMMANDS:
        return None
    return PhoneCommand(name, (match[2] or "").strip())


def render_help(chat: PairedChat) -> str:
    """Return the commands that a chat may use."""
    lines = [
        f"{' '.join(filter(None, (f'/{name}', row.arguments)))}: {row.meaning}"
        for name, row in COMMANDS.items()
        if has_right(chat, row.right)
    ]
    if has_right(chat, "answer"):
        lines.append("Reply to a question to answer it in your own words.")
    return "\n".join(lines)
