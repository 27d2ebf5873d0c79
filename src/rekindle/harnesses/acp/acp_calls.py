"""Tool calls as agents describe them over the Agent Client Protocol.

An agent names the kind of a tool, not the tool. A title can come from an MCP server or the model,
so it never makes a call one of the tools that a persona can allow.

A call can be described in several messages: Vibe sends the command only when the call starts, and
not with its permission request. Kimi first sends the input as text, a few letters at a time, and
opencode first sends only the folder of a command.
"""

import json
import re
from typing import Any

from rekindle.harnesses.acp.named_paths import NamedPaths, find_paths
from rekindle.thresholds.bridge_limits import ACP_TEXT_CHARACTERS

TOOLS = {
    "execute": "Bash",
    "edit": "Edit",
    "delete": "Edit",
    "move": "Edit",
    "read": "Read",
    "search": "Grep",
    "fetch": "WebFetch",
}
"""A persona's name for each kind of tool."""
READING = ("Read", "Grep", "Glob", "LS")
WRITING = ("Edit", "Write", "MultiEdit", "NotebookEdit")
FETCHING = ("WebFetch", "WebSearch")
_NAMES = frozenset(name.lower() for name in (*TOOLS.values(), *READING, *WRITING, *FETCHING))
_COMMAND_KEYS = ("command", "cmd", "script", "command_line", "commandLine")
_SHELL = re.compile(r"(?:\S*/)?(?:ba|z|da)?sh")


class AcpCall:
    """One tool call, with everything that the agent has said about it so far."""

    def __init__(self, number: str) -> None:
        self.number = number
        self.status = "pending"
        self.is_reported = False
        self.is_refused = False
        self._kind, self._title = "", ""
        self._input: dict[str, Any] = {}
        self._places: dict[str, None] = {}
        self._texts: list[str] = []
        """The first and the last text. A running tool can repeat its whole output."""

    def add(self, update: dict[str, Any]) -> None:
        """Add the fields of a `tool_call`, a `tool_call_update` or a permission request."""
        self._kind = _to_text(update.get("kind")) or self._kind
        self._title = _to_text(update.get("title")) or self._title
        self.status = _to_text(update.get("status")) or self.status
        if isinstance(raw := update.get("rawInput"), dict) and raw:
            self._input = raw
        for place in _to_list(update.get("locations")):
            self._places[_to_text(place.get("path"))] = None
        for block in _to_list(update.get("content")):
            if block.get("type") == "diff":
                self._places[_to_text(block.get("path"))] = None
            content = block.get("content")
            if isinstance(content, dict) and not self.is_over:
                self._texts = [*self._texts[:1], _to_text(content.get("text"))]
                self._input = self._input or _parse_input(self._texts[-1])

    @property
    def is_over(self) -> bool:
        return self.status in {"completed", "failed"}

    @property
    def is_described(self) -> bool:
        """Return whether the call is worth reporting already."""
        is_growing = bool(self._texts) and self._texts[-1].startswith("{")
        is_running = self.status != "pending" and not is_growing
        is_known = bool(self.command if self._kind == "execute" else self._input)
        return is_known or self.is_over or is_running

    @property
    def tool(self) -> str:
        """Return the persona's name for the tool, or the agent's own.

        A call with a command runs it, whatever kind it claims to be.
        """
        if self.command:
            return TOOLS["execute"]
        own = "" if self.claimed_tool.lower() in _NAMES else self.claimed_tool
        return TOOLS.get(self._kind) or own or "tool"

    @property
    def claimed_tool(self) -> str:
        """Return the tool's name in the call's title, which only a rule that forbids may trust."""
        return self._title.partition(" ")[0] or self._kind

    @property
    def command(self) -> str:
        """Return the command of a shell call, if the agent named it as such."""
        values = [self._input[key] for key in _COMMAND_KEYS if key in self._input]
        lines = list(dict.fromkeys(filter(None, map(_join_words, values))))
        more = _join_words(self._input.get("args")) if lines else ""
        return " ".join(filter(None, ("; ".join(lines), more)))

    @property
    def paths(self) -> NamedPaths:
        """Return the files that the call names, and its texts that may be paths."""
        found = find_paths(self._input)
        files = (path for path in (*found.files, *self._places) if path)
        return found._replace(files=tuple(dict.fromkeys(files)))

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the input under the names that personas and questions use."""
        if self.tool == TOOLS["execute"]:
            return {"command": self.command or self._title.strip("`") or " ".join(self._texts)}
        if self.tool == TOOLS["edit"] and (files := self.paths.files):
            return {"file_path": files[0], **self._input}
        return self._input or {"description": self._title}

    @property
    def texts(self) -> list[Any]:
        """Return everything in which a forbidden command can occur."""
        return [self.command, self._title, *self._texts, self._input]

    def render(self) -> dict[str, Any]:
        """Return the call as the bridge prints it, with long texts shortened."""
        arguments = {key: _shorten(value) for key, value in self.arguments.items()}
        return {"id": self.number, "tool": self.tool, "arguments": arguments}


def _join_words(value: object) -> str:
    """Return a command line, which may be a list of words."""
    if not isinstance(value, list):
        return _to_text(value)
    words = [word for word in value if isinstance(word, str)]
    match words:
        # Codex wraps a command line in a shell.
        case [shell, "-c" | "-lc", line] if _SHELL.fullmatch(shell):
            return line
    return " ".join(words)


def _parse_input(text: str) -> dict[str, Any]:
    """Return the input that a text contains, or nothing if it is not complete."""
    try:
        value = json.loads(text) if text.startswith("{") else None
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _shorten(value: Any) -> Any:
    if isinstance(value, str):
        return value[:ACP_TEXT_CHARACTERS]
    return value if len(json.dumps(value)) <= ACP_TEXT_CHARACTERS else "…"


def _to_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _to_list(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
