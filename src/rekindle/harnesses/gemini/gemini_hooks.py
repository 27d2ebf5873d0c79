"""Gemini CLI hooks: their settings, obstacles and reports."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from rekindle.documents.events import (
    AnyEvent,
    SessionStarted,
)
from rekindle.documents.hooks.hook_record import HookRecord
from rekindle.documents.hooks.hook_settings import (
    HookFiles,
    HookInstallation,
    HookObstacle,
    find_installed,
)
from rekindle.errors import DocumentError
from rekindle.formats import json_codec
from rekindle.harnesses import (
    hook_dialect,
    untrusted_json,
)
from rekindle.thresholds.hook_limits import GATE_MOST_SECONDS, HOOK_SECONDS

NAME = "gemini"


_TRANSCRIPTS = r"/.+/chats/session-[^/]+-{short}\.jsonl?"


HOOK_FILES = HookFiles(
    program="gemini",
    folder=".gemini",
    home_moved_by="GEMINI_CLI_HOME",
    project="settings.json",
    user="settings.json",
    trust="Gemini CLI runs a project's hooks only in a trusted folder: start `gemini` there and "
    "trust it when it asks, or use /permissions",
    deciding=("settings.json", "trustedFolders.json"),
    package="gemini-extension.json",
    taken_in="gemini extensions link {folder}",
)


HOOK_MILLISECONDS = HOOK_SECONDS * 1_000


TOLD_AT = "BeforeAgent"


BOUNDARY = "BeforeModel"


GATE_EVENT = "BeforeTool"
"""Event at which the gate holds a call."""
GATE_VARIABLE = "GEMINI_CLI_REKINDLE_GATE"
"""Variable with the path of the gate's rules. Without it, the gate permits every call. `hook` uses
the same name. No setting can hide a variable with this prefix from a hook.
"""
_REDACTION = "environmentVariableRedaction"


_HOOKS = {
    "SessionStart": "SessionStart",
    "SessionEnd": "SessionEnd",
    "BeforeAgent": TOLD_AT,
    # With this name, the hook records only that a tool was used.
    "AfterTool": "PostToolUse",
    "BeforeModel": BOUNDARY,
}
"""Events that Rekindle records, with the name that each hook reports."""


_FACTS: dict[str, hook_dialect.HookFact] = {
    "SessionStart": "started",
    "SessionEnd": "ended",
    TOLD_AT: "asked",
    "PostToolUse": "worked",
}


def hooks(
    program: Sequence[str],
    *,
    supervised: bool,  # noqa: ARG001 - part of the interface
    folder: str = "",
) -> dict[str, Any]:
    """Return the `hooks` section of a settings file, which runs `program` on each event."""

    def make_entry(word: str) -> dict[str, Any]:
        line = hook_dialect.render_command_line(program, NAME, word, folder)
        return {"hooks": [hook_dialect.make_handler(line, HOOK_MILLISECONDS)]}

    return {event: [make_entry(word)] for event, word in _HOOKS.items()}


def gate_hooks(program: Sequence[str]) -> dict[str, Any]:
    """Return the hook that holds calls, for the user's own settings.

    It does nothing in a person's own sessions, even if its program is missing.
    """
    line = shlex.join([*program, NAME, GATE_EVENT])
    command = f'{line} || [ -z "${GATE_VARIABLE}" ] || exit 2'
    handler = hook_dialect.make_handler(command, int(GATE_MOST_SECONDS * 2 * 1_000))
    return {GATE_EVENT: [{"hooks": [handler]}]}


def find_gate_obstacle(
    user: HookInstallation, project: str, environment: Mapping[str, str]
) -> HookObstacle | None:
    """Return an obstacle if the CLI might not run the gate, or None if it would.

    `user` is the user's installation, and `project` the text of the settings in the agent's folder,
    which the agent may have written. Its hooks could replace the gate, or a call that was approved.
    """
    if environment.get("GITHUB_SHA") or environment.get("SURFACE") == "Github":
        return HookObstacle(
            "with GITHUB_SHA, or SURFACE=Github, Gemini CLI hides variables from its hooks",
            "remove both from `env:`",
        )
    own, here = _parse_settings(user.text), _parse_settings(project)
    if own is None or here is None:
        where = "your own settings" if own is None else "the settings in the agent's folder"
        return HookObstacle(
            f"{where} for Gemini CLI cannot be read", "correct .gemini/settings.json there"
        )
    refused: list[str] = [key for key in ("hooks", "hooksConfig") if key in here]
    if any(_REDACTION in untrusted_json.to_mapping(each.get("security")) for each in (own, here)):
        refused.append(_REDACTION)
    if refused:
        return HookObstacle(
            f"the settings of Gemini CLI contain `{refused[0]}`, which could disable the gate",
            f"remove `{refused[0]}` from .gemini/settings.json in the agent's folder"
            + (" and in your home folder" if refused[0] == _REDACTION else ""),
        )
    return _find_own_obstacle(user, untrusted_json.to_mapping(own.get("hooksConfig")))


def _find_own_obstacle(user: HookInstallation, switch: Mapping[str, Any]) -> HookObstacle | None:
    """Return an obstacle if the user's own settings lack the gate or disable it."""
    gates = [
        entry.hook
        for entry in find_installed(user.text, user.file)
        if entry.event == GATE_EVENT
        and not entry.matcher
        and f"${GATE_VARIABLE}" in str(entry.hook.get("command"))
    ]
    off = _to_list(switch.get("disabled"))
    is_off = any((gate.get("name") or gate.get("command")) in off for gate in gates)
    if switch.get("enabled", True) is not True or is_off:
        return HookObstacle("the settings of Gemini CLI disable hooks", "remove `hooksConfig`")
    if not gates:
        return HookObstacle(
            "the hooks of Gemini CLI are not installed in your own settings",
            "run `rekindle hooks install --harness gemini --for user`",
        )
    return None


def _parse_settings(text: str) -> dict[str, Any] | None:
    """Return settings without comments, or None if the CLI could read something else in them."""
    if not text:
        return {}
    # A carriage return alone ends a comment for Rekindle, but not for the CLI.
    if "\r" in text.replace("\r\n", ""):
        return None
    try:
        settings = json_codec.decode_foreign(text.encode("utf-8", "replace"), "settings.json")
    except DocumentError:
        return None
    return settings if isinstance(settings, dict) else None


def find_hook_obstacle(found: HookInstallation) -> HookObstacle | None:
    """Return an obstacle if hooks are disabled or the project folder is not trusted, else None.

    The project's setting overrides the user's, but either can disable a single hook.
    """
    person = untrusted_json.parse_object(found.deciding.get("settings.json", "").encode())
    here = untrusted_json.parse_object(found.text.encode())
    if found.project and not _is_trusted(found, person):
        return HookObstacle("Gemini CLI does not trust this folder", HOOK_FILES.trust)
    switches = [untrusted_json.to_mapping(each.get("hooksConfig")) for each in (here, person)]
    enabled = [each["enabled"] for each in switches if "enabled" in each]
    if enabled and enabled[0] is False:
        return HookObstacle(
            "hooksConfig.enabled is false, so no hook runs", "remove that key from the settings"
        )
    off = [each for switch in switches for each in _to_list(switch.get("disabled"))]
    ours = [entry.hook for entry in find_installed(found.text, found.file)]
    if any((handler.get("name") or handler.get("command")) in off for handler in ours):
        return HookObstacle(
            "some hooks are listed in hooksConfig.disabled",
            "start `gemini`, and type /hooks enable-all",
        )
    return None


def _is_trusted(installation: HookInstallation, person: Mapping[str, Any]) -> bool:
    """Return whether the user trusts the nearest folder that has a trust decision."""
    security = untrusted_json.to_mapping(person.get("security"))
    if untrusted_json.to_mapping(security.get("folderTrust")).get("enabled") is False:
        return True
    decisions = untrusted_json.parse_object(
        installation.deciding.get("trustedFolders.json", "").encode()
    )
    folders = {
        path.rpartition("/")[0] if how == "TRUST_PARENT" else path: how
        for path, how in decisions.items()
    }
    above = [
        path for path in folders if f"{installation.project}/".startswith(f"{path.rstrip('/')}/")
    ]
    return bool(above) and folders[max(above, key=len)] != "DO_NOT_TRUST"


def _to_list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def render_hook_output(event: str, text: str) -> str:
    """Return the hook output that adds text to the session, or "" for other events."""
    if event != TOLD_AT:
        return ""
    output = {"hookSpecificOutput": {"hookEventName": TOLD_AT, "additionalContext": text}}
    return json_codec.encode(output, "what a hook says").decode()


def read_hook(line: HookRecord) -> AnyEvent | None:
    """Return the event that a hook reported, or None if Rekindle does not record such events."""
    event = hook_dialect.read_hook_record(line, NAME, _FACTS, transcripts=_TRANSCRIPTS)
    if isinstance(event, SessionStarted) and event.source == "resume":
        # When a session is resumed, the hook reports a file named after the minute of the resume,
        # but the CLI keeps writing to the session's original file.
        return msgspec.structs.replace(event, transcript="")
    return event
