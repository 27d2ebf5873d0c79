"""Harness for agents that speak the Agent Client Protocol.

Checked with the agents in `acp_presets`, using the recordings in tests/recordings. Each launch runs
the bridge, which reads the prompt, runs one turn of the agent and prints its own lines. Limits:

- An agent has no hooks that Rekindle could use, so a handoff cannot stop it between two turns.
  Messages reach it with its next launch.
- The agent chooses the id of its session, and resumes it with `session/resume` or `session/load`.
- A persona's rules apply only to the calls about which an agent asks. Rekindle refuses a persona
  with rules for an agent that runs some calls without asking. Reading is always allowed.
- Settings in the workspace can permit calls and start programs. The agent must not write them, and
  a persona with rules is refused if they exist.
- The protocol has no system prompt, so a persona's text comes before the first prompt of a session.
- Several agents retry a refused request without a word. The watch ends them as hung.
- Gemini CLI is not among the presets, because it loses sessions over this protocol.
"""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from rekindle.documents.launches.launch_types import (
    AssistantText,
    Capabilities,
    LaunchSpec,
    LimitReport,
    OutputItem,
    ProgramCommand,
    RefusedCall,
    SessionOpened,
    ToolCallFinished,
    ToolCallStarted,
    UsageReport,
    UsageSource,
    WindowUsage,
)
from rekindle.documents.launches.sandbox_needs import SandboxNeeds
from rekindle.documents.manifest import Permissions
from rekindle.errors import UnenforceableError, UsageError
from rekindle.formats import json_codec
from rekindle.harnesses import ask_gate
from rekindle.harnesses.acp import acp_exits
from rekindle.harnesses.acp.acp_calls import FETCHING, READING, WRITING
from rekindle.harnesses.acp.acp_presets import ANY, PRESETS, AcpPreset
from rekindle.harnesses.untrusted_json import (
    describe_call,
    parse_object,
    to_count,
    to_mapping,
    to_text,
    to_word,
)
from rekindle.thresholds.texts import QUOTED_CHARACTERS

BRIDGE = "rekindle.harnesses.acp.acp_bridge"
RULES_FILE = "acp-rules.json"
INSTRUCTIONS_FILE = "acp-instructions.md"
TURN = "all input and output"
"""Name of the only turn of a launch. Rekindle's own estimate has it until the agent reports."""
_SESSION = re.compile(r"(?=[^0-9]*[0-9])[A-Za-z0-9][A-Za-z0-9_-]{7,63}\Z")
_RULE = re.compile(r"(?P<tool>[A-Za-z]+)(?:\((?P<text>[^\x00-\x1f\x7f]*)\))?")
_WHOLE = ("", "*", "**")
_LIMITED = (ask_gate.SHELL, *WRITING, *FETCHING)
"""Tools about which every agent with `asks` asks."""


class AcpHarness:
    """The harness for one preset, or for any agent."""

    def __init__(self, preset: AcpPreset) -> None:
        self._preset = preset
        self.NAME = preset.name
        self.INSTALL = preset.install
        self.PROGRAM = next(iter(preset.command), "")
        self.PASSED_PREFIXES = preset.prefixes
        self.BLOCKED_VARIABLES = preset.blocked
        self.SANDBOX = SandboxNeeds(hosts=preset.hosts)
        self.CAN = Capabilities(
            hooks=False,
            names_sessions=False,
            reports_money=preset.reports_money,
            reports_tokens=preset.reports_tokens,
            permits_tools=preset.asks,
            model=True,
            gate="closed" if preset.asks else "none",
            questions=False,
            terminal=False,
            asks=True,
        )
        self.read_stream = read_stream
        self.classify = acp_exits.classify

    def command(self, start: LaunchSpec) -> ProgramCommand:
        """Return the command of the bridge, with the agent's own command at its end."""
        program = start.program or self._preset.command
        self._refuse(start, program)
        permissions = start.persona.permissions or Permissions()
        # `-P` keeps the agent's folder out of Python's path.
        argv = [sys.executable, "-P", "-m", BRIDGE, f"--rules={start.scratch}/{RULES_FILE}"]
        if start.resumes:
            argv += [f"--session={start.session}", f"--spent={start.session_usd}"]
        if start.persona.model:
            argv.append(f"--model={start.persona.model}")
        environment: dict[str, str] = {}
        if start.persona.permissions is not None:
            self._refuse_settings(start.folder)
            environment |= self._preset.ask_environment
            if self._preset.ask_mode:
                argv.append(f"--mode={self._preset.ask_mode}")
        files = {RULES_FILE: self._render_rules(permissions, start)}
        if start.instructions and not start.resumes:
            files[INSTRUCTIONS_FILE] = start.instructions
            argv.append(f"--instructions={start.scratch}/{INSTRUCTIONS_FILE}")
        argv.append("--")
        return ProgramCommand((*argv, *program), environment, files, inner=len(argv))

    def _refuse(self, start: LaunchSpec, program: tuple[str, ...]) -> None:
        if not program:
            raise UsageError(
                "`command:` names no agent to start",
                hint="set it, for example `command: [my-agent, acp]`, or use one of: "
                + ", ".join(PRESETS),
            )
        if start.interactive:
            raise UsageError(
                f"{self._preset.title} cannot run in a terminal with `harness: {self.NAME}`",
                hint="write `mode: loop`, or start it with `harness: command`",
            )
        if start.resumes and not _SESSION.match(start.session):
            raise UsageError(
                f"{start.session[:QUOTED_CHARACTERS]!r} is not a valid session id",
                hint="session ids have 8 to 64 letters and digits",
            )

    def _refuse_settings(self, folder: str) -> None:
        """Refuse settings in the workspace, because they would override a persona's rules."""
        if path := find_settings(folder, self._preset.settings):
            raise UsageError(
                f"{self._preset.title} reads {path}, which can allow what `permissions:` forbids",
                hint=f"move it to your own settings for {self._preset.title}, or remove "
                "`permissions:` and use a sandbox",
            )

    def _render_rules(self, permissions: Permissions, start: LaunchSpec) -> str:
        """Return the rules for the bridge.

        Raises:
            UnenforceableError: The agent would not ask about the calls of a rule.
        """
        allowed, denied, asked = permissions.allowed_tools, permissions.deny, permissions.ask
        if not self._preset.asks:
            for rule in (*(allowed or ()), *(denied or ()), *(asked or ())):
                raise self._make_error(rule)
            if allowed is not None:
                raise self._make_error("allowed_tools: []")
        content = {
            "allowed": None if allowed is None else list(self._parse_allowed(allowed)),
            "deny": list(self._parse_denied(denied or [])),
            "ask": [
                [rule.tool, rule.text]
                for rule in ask_gate.parse_rules(asked, self._preset.title)
                if self._is_asked(rule)
            ],
            "folder": start.folder,
            "draft": start.draft,
            "protected": list(start.protected),
            "seconds": start.gate_seconds,
        }
        return json_codec.encode(content, RULES_FILE).decode()

    def _parse_allowed(self, rules: list[str]) -> Iterator[list[str]]:
        for rule in filter(None, rules):
            tool, text = self._parse_rule(rule)
            yield [tool, text]

    def _parse_denied(self, rules: list[str]) -> Iterator[list[str]]:
        for rule in filter(None, rules):
            tool, text = self._parse_rule(rule)
            if tool in READING:
                raise UnenforceableError(
                    self._preset.title, rule, hint="agents do not ask before they read: remove it"
                )
            yield [tool, text]

    def _parse_rule(self, rule: str) -> tuple[str, str]:
        match = _RULE.fullmatch(rule)
        tool = match["tool"] if match else ""
        text = (match["text"] or "") if match else ""
        text = "" if text in _WHOLE else text.removesuffix("*").removesuffix(":").strip()
        is_part = bool(text) and (tool != ask_gate.SHELL or "*" in text)
        if tool not in (*_LIMITED, *READING) or is_part:
            raise UnenforceableError(
                self._preset.title,
                rule,
                hint="list whole tools, or commands such as `Bash(git log:*)`: "
                + ", ".join((*_LIMITED, *READING)),
            )
        return tool, text

    def _is_asked(self, rule: ask_gate.AskRule) -> bool:
        if rule.tool not in _LIMITED:
            raise UnenforceableError(
                self._preset.title, rule.tool, hint=f"`ask:` takes {', '.join(_LIMITED)}"
            )
        return True

    def _make_error(self, rule: str) -> UnenforceableError:
        others = ", ".join(preset.name for preset in PRESETS.values() if preset.asks)
        own = self._preset.instead
        return UnenforceableError(
            self._preset.title,
            rule,
            hint=f"use `harness: {own}`, which enforces it"
            if own
            else f"it runs some calls without asking: remove `permissions:` and use a sandbox, or "
            f"use one of: {others}",
        )


def make_harness(name: str) -> AcpHarness:
    """Return the harness for a preset.

    Raises:
        KeyError: There is no such preset.
    """
    return AcpHarness(PRESETS[name])


def find_settings(folder: str, names: tuple[str, ...]) -> str:
    """Return the path of settings in a folder, or above it in the same repository, or ""."""
    if not folder:
        return ""
    home = Path.home()
    for place in (Path(folder), *Path(folder).parents):
        # Settings in the home directory are the user's own.
        if str(place) != folder and place in {home, Path("/")}:
            break
        for name in names:
            if os.path.lexists(place / name):
                return str(place / name)
        if os.path.lexists(place / ".git"):
            break
    return ""


def read_stream(line: bytes) -> tuple[OutputItem, ...]:  # noqa: PLR0911 - one return per kind of line
    """Return the items in a line of the bridge, or nothing if the line cannot be read."""
    record = parse_object(line)
    match record.get("type"):
        case "opened":
            session = to_word(record.get("session"))
            model, version = to_word(record.get("model")), to_word(record.get("version"))
            return (SessionOpened(session, model, version),) if session else ()
        case "said":
            text = to_text(record.get("text"))
            return (AssistantText(text),) if text.strip() else ()
        case "called":
            return (ToolCallStarted(*_read_call(record)),)
        case "decided" if record.get("decision") == "reject":
            tool, call, about, arguments = _read_call(record)
            return (RefusedCall(tool, about, arguments, call),)
        case "returned":
            refused = record.get("refused") is True
            return (ToolCallFinished(to_word(record.get("id")), refused),)
        case "used":
            tokens, window = to_count(record.get("tokens")), to_count(record.get("window"))
            if tokens is None:
                return ()
            known: UsageSource = "reported" if window else "unknown"
            usage = WindowUsage(tokens, window or None, known, to_word(record.get("model")))
            return (UsageReport(usage, TURN, acp_exits.read_cost(record), is_context=True),)
        case "limited":
            return (LimitReport(to_count(record.get("resets_at"))),)
        case "ended":
            return (acp_exits.make_report(record),)
        case _:
            return ()


def _read_call(record: dict[str, object]) -> tuple[str, str, str, dict[str, object]]:
    arguments = to_mapping(record.get("arguments"))
    tool, call = to_word(record.get("tool")), to_word(record.get("id"))
    return tool, call, describe_call(arguments), arguments


_any = AcpHarness(ANY)
NAME, INSTALL, CAN = _any.NAME, _any.INSTALL, _any.CAN
PASSED_PREFIXES, SANDBOX = _any.PASSED_PREFIXES, _any.SANDBOX
command = _any.command
classify = acp_exits.classify
