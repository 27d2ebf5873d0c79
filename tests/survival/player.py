"""The scripted model that plays the task: it decides from the conversation in each request.

It looks at the tool results in the request and at nothing else. If the conversation does not say
what is done, it lists the folder; otherwise it writes the next missing item. After the last one, it
reports the end in the way that the prompt asks for.
"""

import json
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from loopback.log import Part
from loopback.script import Text, ToolCall, Usage
from survival import task

_RELAY: Final = re.compile(r"write the relay for the next one to this file, then stop:\n(\S+)")
_DONE: Final = re.compile(r"^(?:Output: )?done (\d\d+)$", re.MULTILINE)
"""A line of a list; Gemini CLI puts a word before the first line of an output."""
_WRITTEN: Final = re.compile(r"^(?:Output: )?written (\d\d+)$", re.MULTILINE)
DONE: Final = "DONE"
"""The directive that ends the work."""
SENTENCE: Final = "All twenty items are written, and the check passes."
_CHARACTERS: Final = 4
"""Characters of a token, on average."""


@dataclass(frozen=True, slots=True)
class Look:
    """List what is done."""


@dataclass(frozen=True, slots=True)
class Write:
    """Write one item."""

    item: int


@dataclass(frozen=True, slots=True)
class Relay:
    """Write the next cycle's relay to a file, as the prompt asks."""

    path: str
    directive: str


@dataclass(frozen=True, slots=True)
class Finish:
    """Report the end to the tool by a shell command, as the prompt asks."""

    line: str


@dataclass(frozen=True, slots=True)
class Say:
    """End the turn with a text."""

    text: str


Move = Look | Write | Relay | Finish | Say


@dataclass(frozen=True, slots=True)
class View:
    """What a conversation says about the work."""

    known: frozenset[int] | None
    """Items that are done; None if this is not known since the last prompt or error."""
    relay: str
    """The file to which the prompt asks to write the relay, if any."""
    finish: str
    """The command by which the prompt asks to report the end, if any."""
    is_relayed: bool
    """Whether the relay or this command has been written or run since the last prompt."""
    calls: int
    """Tool results in the conversation."""
    errors: int
    """Failed item calls since the last prompt."""


def look(parts: Iterable[Part], finish: str = "") -> View:
    """Return what the conversation says; `finish` is the command that reports the end."""
    commands: dict[str, str] = {}
    open_calls: set[str] = set()
    known: frozenset[int] | None = None
    relay, is_relayed, calls, errors = "", False, 0, 0
    for part in parts:
        if found := _RELAY.search(part.text) if part.form == "text" else None:
            relay = found[1]
        if part.form == "call":
            commands[part.call] = part.text
            open_calls.add(part.call)
        elif part.form == "result":
            open_calls.discard(part.call)
            calls += 1
            command = commands.get(part.call, "")
            if task.LISTED in command:
                known = _listed(part)
            elif found := _WRITTEN.search(part.text) if not part.is_error else None:
                known = known | {int(found[1])} if known is not None else None
            elif (relay and relay in command) or (finish and _is_call_of(command, finish)):
                is_relayed = not part.is_error
            else:
                known, errors = None, errors + 1
        elif part.role == "user":
            known, is_relayed, errors = None, False, 0
    return View(None if open_calls else known, relay, finish, is_relayed, calls, errors)


def _is_call_of(command: str, line: str) -> bool:
    return json.dumps(line)[1:-1] in command


def _listed(part: Part) -> frozenset[int] | None:
    if task.LISTED not in part.text:
        return None
    return frozenset(int(number) for number in _DONE.findall(part.text))


def decide(view: View, total: int = task.TOTAL, word: str = "") -> Move:
    """Return the next move; `word` ends the work of tools that wait for one."""
    if view.known is None:
        return Look()
    missing = sorted(set(range(1, total + 1)) - view.known)
    return Write(missing[0]) if missing else report(view, DONE, f"{SENTENCE}\n{word}".strip())


def report(view: View, directive: str, text: str) -> Move:
    """Return the end of a session's work: the relay if it is missing, then the text."""
    if view.relay and not view.is_relayed:
        return Relay(view.relay, directive)
    if view.finish and directive == DONE and not view.is_relayed:
        return Finish(view.finish)
    return Say(text)


def command(move: Look | Write | Relay | Finish) -> str:
    """Return the shell command of a move."""
    match move:
        case Look():
            return task.list_command()
        case Write(item):
            return task.write_command(item)
        case Finish(line):
            return line
        case Relay(path, directive):
            text = f"## Current Phase\nWriting the items\n\n## Next Action\n{directive}\n"
            return f"printf %s {shlex.quote(text)} > {shlex.quote(path)}"


def answer(body: Any, move: Move, line: str, usage: Usage) -> Text | ToolCall:
    """Return the move in the tools that the request offers; `line` is its shell command."""
    if isinstance(move, Say):
        return Text(move.text, usage)
    tools = offered(body)
    if "Bash" in tools:
        given = {"command": line, "description": "Work on the items"}
        return ToolCall("Bash", given, usage)
    if "run_shell_command" in tools:
        return ToolCall("run_shell_command", {"command": line}, usage)
    return ToolCall("exec_command", {"cmd": line, "yield_time_ms": 30_000}, usage)


def offered(body: Any) -> set[str]:
    """Return the names of the tools in a request."""
    groups = [tool.get("functionDeclarations", [tool]) for tool in body.get("tools") or []]
    return {str(tool.get("name", tool.get("type", ""))) for group in groups for tool in group}


def has_shell(body: Any) -> bool:
    return bool(offered(body) & {"Bash", "exec_command", "run_shell_command"})


class Meter:
    """The tokens of all requests, as a vendor with a prefix cache would count them."""

    def __init__(self) -> None:
        self._prefixes: set[int] = set()
        self.input = self.cached = self.output = 0

    @property
    def total(self) -> int:
        return self.input + self.cached + self.output

    def read(self, body: Any, parts: Sequence[Part]) -> Usage:
        """Count a request; return its input tokens, without an output."""
        texts = [json.dumps(body.get("tools") or []), *(part.text for part in parts)]
        whole, cached, prefix, is_cached = 0, 0, 0, True
        for text in texts:
            prefix = hash((prefix, text))
            is_cached = is_cached and prefix in self._prefixes
            self._prefixes.add(prefix)
            whole += len(text)
            cached += len(text) if is_cached else 0
        fresh, known = (whole - cached) // _CHARACTERS + 1, cached // _CHARACTERS
        self.input += fresh
        self.cached += known
        return Usage(input=fresh, cache_read=known, output=0)

    def wrote(self, text: str) -> int:
        """Count an answer; return its tokens."""
        tokens = len(text) // _CHARACTERS + 1
        self.output += tokens
        return tokens
