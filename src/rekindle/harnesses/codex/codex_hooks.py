"""Codex hooks: their settings, their trust records and their reports."""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rekindle.documents.events import AnyEvent
from rekindle.documents.hooks.hook_record import HookRecord
from rekindle.documents.hooks.hook_settings import (
    HookEntries,
    HookFiles,
    HookInstallation,
    HookObstacle,
    parse_hook_command,
)
from rekindle.documents.launches.launch_types import (
    LaunchSpec,
)
from rekindle.harnesses import ask_gate, hook_dialect
from rekindle.harnesses.codex.codex_settings import (
    render_setting,
)
from rekindle.harnesses.untrusted_json import (
    parse_object,
    to_mapping,
)
from rekindle.thresholds.hook_limits import HOOK_CONTEXT_TOKENS, HOOK_SECONDS

NAME = "codex"


_TRANSCRIPTS = r"/.+/(?:archived_)?sessions/(?:\d+/){{0,3}}rollout-[^/]+-{session}\.jsonl"


HOOK_FILES = HookFiles(
    program="codex",
    folder=".codex",
    moved_by="CODEX_HOME",
    project="hooks.json",
    user="hooks.json",
    packed="hooks.json",
    taken_in="copy {folder}/hooks.json to .codex in the project, or to ~/.codex",
    deciding=("config.toml",),
    trust="Codex runs only hooks that you trust: start `codex` here and trust them when it asks,"
    " or use /hooks; the hooks of a project also need a trusted project",
)


ENDING_SECONDS = 3
"""Codex's own timeout for a hook at the end of a session, in seconds."""


_SWITCHES = ("hooks", "codex_hooks")
"""Keys in [features] that can disable hooks: the current name and the former one."""


_SOURCES = ("startup", "resume", "clear", "compact", "fork")


_EVENTS = ("SessionEnd", "UserPromptSubmit", "PreCompact", "PostToolUse")


BOUNDARY = "PreToolUse"


_BY_THE_LAUNCH = "/<session-flags>/config.toml"
"""File name that Codex uses for hooks on the command line."""


_NO_SERVERS = {
    "matcher": ".*mcp_.*",
    "hooks": [
        hook_dialect.make_handler("echo 'the persona does not allow it' >&2; exit 2", HOOK_SECONDS)
    ],
}
"""Hook that refuses every call to an MCP server. No setting disables all servers, and the names of
the user's servers are unknown.
"""


def hooks(program: Sequence[str], *, supervised: bool, folder: str = "") -> dict[str, Any]:
    """Return the `hooks` section of a hooks file, which runs `program` on each event.

    In a supervised session, the hooks can also hold the next tool call.
    """

    def make_entry(event: str, seconds: int, **more: Any) -> dict[str, Any]:
        line = hook_dialect.render_command_line(program, NAME, event, folder)
        return {"hooks": [hook_dialect.make_handler(line, seconds, **more)]}

    starts = [
        {
            "matcher": source,
            **make_entry(
                f"SessionStart:{source}", HOOK_SECONDS, additionalContextLimit=HOOK_CONTEXT_TOKENS
            ),
        }
        for source in _SOURCES
    ]
    seconds = {"SessionEnd": ENDING_SECONDS}
    events = (*_EVENTS, BOUNDARY) if supervised else _EVENTS
    plain = {event: [make_entry(event, seconds.get(event, HOOK_SECONDS))] for event in events}
    return {"SessionStart": starts, **plain}


def find_hook_obstacle(found: HookInstallation) -> HookObstacle | None:
    """Return an obstacle, unless the user trusts the project and exactly these hooks in Codex."""
    config = _parse_config(found.deciding.get("config.toml", ""))
    features = to_mapping(config.get("features"))
    if any(features.get(name) is False for name in _SWITCHES):
        return HookObstacle(
            "Codex's config.toml disables hooks", "remove that line below [features]"
        )
    projects = to_mapping(config.get("projects"))
    trusted = {
        path for path in projects if to_mapping(projects[path]).get("trust_level") == "trusted"
    }
    if found.project and not any(_is_in(found.project, path) for path in trusted):
        return HookObstacle("Codex does not trust this project", HOOK_FILES.trust)
    state = to_mapping(to_mapping(config.get("hooks")).get("state"))
    these = to_mapping(parse_object(found.text.encode()).get("hooks"))
    states = {
        key: to_mapping(state.get(key))
        for key, _, _, handler in _list_places(these, found.file)
        if parse_hook_command(handler.get("command"))
    }
    expected = make_trust_state(these, found.file)
    if any(state.get("enabled") is False for state in states.values()):
        return HookObstacle("some hooks are disabled in Codex", "start `codex`, and use /hooks")
    if any(
        state.get("trusted_hash") != expected[key]["trusted_hash"] for key, state in states.items()
    ):
        return HookObstacle("Codex does not trust these hooks yet", HOOK_FILES.trust)
    return None


def render_hook_output(event: str, text: str) -> str:
    """Return the hook output that adds text to the session.

    The output is JSON, because Codex would try to parse plain text that starts with a bracket as
    JSON, and drop it.
    """
    output = {"hookEventName": event, "additionalContext": text}
    return json.dumps({"hookSpecificOutput": output})


def read_hook(line: HookRecord) -> AnyEvent | None:
    """Return the event that a hook reported, or None if Rekindle does not record such events."""
    return hook_dialect.read_hook_record(line, NAME, transcripts=_TRANSCRIPTS, prompt_id="turn_id")


def list_hook_settings(start: LaunchSpec) -> list[str]:
    """Return a launch's hooks: ours, the gate, and the one that denies MCP servers to a persona."""
    entries_of, argv = hooks(start.hook, supervised=True) if start.hook else {}, []
    permissions = start.persona.permissions
    if permissions and permissions.allowed_tools is not None:
        entries_of[BOUNDARY] = [*entries_of.get(BOUNDARY, ()), _NO_SERVERS]
        argv.append("--enable=hooks")  # even if the user has disabled hooks
    if make_gate_files(start):
        gate = {"matcher": ask_gate.SHELL, **ask_gate.make_entry(start, NAME)}
        entries_of[BOUNDARY] = [gate, *entries_of.get(BOUNDARY, ())]
        argv = ["--enable=hooks"]
    if entries_of:
        argv += [render_setting(f"hooks.{event}", entries) for event, entries in entries_of.items()]
        argv.append(render_setting("hooks.state", make_trust_state(entries_of, _BY_THE_LAUNCH)))
    return argv


def make_gate_files(start: LaunchSpec) -> dict[str, str]:
    """Return the gate's rules, or nothing if the persona has none."""
    asked = start.persona.permissions.ask if start.persona.permissions else None
    rules = ask_gate.parse_rules(asked, "Codex", only_shell=True)
    has_gate = rules and not start.interactive
    return {ask_gate.RULES_FILE: ask_gate.render_rules(rules, start)} if has_gate else {}


def make_trust_state(these: HookEntries, file: str) -> dict[str, Any]:
    """Return the `hooks.state` setting with which Codex trusts exactly these hooks in a file.

    Codex identifies a hook by its position and the hash of its content.
    """
    return {
        key: {"trusted_hash": _hash_hook(event, entry, handler)}
        for key, event, entry, handler in _list_places(these, file)
    }


def _list_places(
    these: Mapping[str, object], file: str
) -> Iterator[tuple[str, str, dict[str, Any], dict[str, Any]]]:
    for event, entries in these.items():
        for place, entry in enumerate(
            map(to_mapping, entries if isinstance(entries, list) else ())
        ):
            handlers = entry.get("hooks")
            for number, handler in enumerate(handlers if isinstance(handlers, list) else ()):
                yield (
                    f"{file}:{_to_snake_case(event)}:{place}:{number}",
                    event,
                    entry,
                    to_mapping(handler),
                )


def _parse_config(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}  # Codex itself does not start with a damaged settings file


def _is_in(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{folder.rstrip('/')}/")


def _hash_hook(event: str, entry: Mapping[str, Any], handler: Mapping[str, Any]) -> str:
    alone = {**entry, "hooks": [{"async": False, **handler}], "event_name": _to_snake_case(event)}
    form = json.dumps(alone, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(form.encode('utf-8', 'replace')).hexdigest()}"


def _to_snake_case(event: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", event).lower()
