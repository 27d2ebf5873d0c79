"""Build the gate that holds calls which match a persona's `ask` rules."""

import re
import shlex
from collections.abc import Iterable
from typing import Any

import msgspec

from rekindle.documents.launches.launch_types import LaunchSpec
from rekindle.errors import UnenforceableError
from rekindle.harnesses import hook_dialect

RULES_FILE = "gate.json"
SHELL = "Bash"
_RULE = re.compile(r"(?P<tool>[A-Za-z][\w-]*\*?)(?:\((?P<text>[^\x00-\x1f\x7f]*)\))?")
_END = re.compile(r"(?::\*|[ *]*)\Z")


class AskRule(msgspec.Struct, frozen=True):
    """A tool whose calls need approval."""

    tool: str
    text: str = ""
    """Text in the command; empty for every call of the tool."""


def parse_rules(
    lines: Iterable[str] | None, program: str, *, only_shell: bool = False
) -> list[AskRule]:
    """Return a persona's `ask` rules. With `only_shell`, the CLI can ask only about commands.

    Raises:
        UnenforceableError: A rule is neither a tool nor a command.
    """
    rules = []
    for line in lines or ():
        match = _RULE.fullmatch(line)
        text = _END.sub("", match["text"] or "").strip() if match else ""
        if match is None or ((text or only_shell) and match["tool"] != SHELL):
            tools = "`Bash`" if only_shell else "whole tools such as `WebFetch`"
            raise UnenforceableError(
                program, line, hint=f"`ask:` takes {tools}, and commands such as `Bash(git push*)`"
            )
        rules.append(AskRule(match["tool"], text))
    return rules


def render_rules(rules: Iterable[AskRule], start: LaunchSpec) -> str:
    """Return the file from which the gate reads its rules."""
    content = {
        "ask": [[rule.tool, rule.text] for rule in rules],
        "seconds": start.gate_seconds,
        "draft": start.draft,
    }
    return msgspec.json.encode(content).decode()


def make_entry(start: LaunchSpec, harness: str, *, unit: int = 1) -> dict[str, Any]:
    """Return the hook entry that runs the gate. `unit` is the CLI's number of units per second."""
    line = render_command_line((*start.gate, harness, f"{start.scratch}/{RULES_FILE}"))
    # A gate that outlives the CLI's timeout would let the call run in some CLIs.
    return {"hooks": [hook_dialect.make_handler(line, int(start.gate_seconds * 2 * unit))]}


def render_command_line(program: Iterable[str]) -> str:
    """Return the gate's shell command. Every failure becomes exit code 2, which refuses a call."""
    return f"{shlex.join(program)} || exit 2"
