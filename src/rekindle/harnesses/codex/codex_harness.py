"""The harness for Codex: its commands, hooks, output and rollouts.

Checked with version 0.166.0, by the recordings in tests/recordings.

npm installs a wrapper on the PATH. It passes on TERM, INT and HUP. If it is killed, the real
program stays alive in the wrapper's process group, which Rekindle ends before it starts anything
else. So the first `codex` on the PATH can be used. Limits of the CLI:

- A new session cannot be given an id: Rekindle reads it from the program's output.
- Permissions apply to whole tools, by its own sandbox: a rule for a part of a tool is refused.
- A user's MCP servers cannot be disabled all at once: a hook of ours refuses their tools.
- Hooks that the user has not trusted never run: the hooks of a launch come with their hashes.
- No hook can stop it between two turns. Instead, a hook holds the next tool call before it starts,
  until the program is ended. If it is interrupted, it exits with 1 and without a message.
- Without a network it waits forever and reports that only at first: Rekindle notices the silence.
- It silently continues with a truncated rollout, so Rekindle first checks that the last prompt is
  still in it.
- Two tools are offered with every question: to ask the user, who is not there, and to patch files,
  which the sandbox refuses. The user's MCP servers are started, and the model can find their tools
  by a search; a call is refused unless the user has approved the tool or it claims to be read-only.
  The AGENTS.md beside the settings is sent too.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from rekindle.documents.launches.cli_output import (
    Brake,
    Capabilities,
    LaunchSpec,
    ProgramCommand,
    UsageReport,
    WindowUsage,
)
from rekindle.documents.manifest import Permissions
from rekindle.documents.transcripts.turns import SubagentTranscripts
from rekindle.errors import UnenforceableError, UsageError
from rekindle.harnesses import hook_dialect
from rekindle.harnesses.codex.codex_exits import classify
from rekindle.harnesses.codex.codex_one_shot import (
    answer,
    ask,
)
from rekindle.harnesses.codex.codex_refusals import refused_calls
from rekindle.harnesses.codex.codex_rollout import (
    find_own_start,
    read_transcript,
    read_usage,
)
from rekindle.harnesses.codex.codex_settings import (
    render_instructions,
    render_setting,
)
from rekindle.harnesses.codex.codex_stream import read_stream
from rekindle.harnesses.untrusted_json import (
    make_argument,
    parse_object,
    to_count,
    to_mapping,
    to_uuid,
    to_word,
)
from rekindle.thresholds.supervision import (
    HOOK_CONTEXT_TOKENS,
    HOOK_SECONDS,
)
from rekindle.thresholds.texts import QUOTED_CHARACTERS

__all__ = [
    "BLOCKED_VARIABLES",
    "CAN",
    "HOOK_FILES",
    "INSTALL",
    "NAME",
    "PASSED_PREFIXES",
    "answer",
    "asides",
    "ask",
    "brake",
    "classify",
    "command",
    "holds",
    "hooks",
    "make_trust_state",
    "measure",
    "measured",
    "muted",
    "read_hook",
    "read_stream",
    "read_transcript",
    "refused_calls",
    "told",
    "turn",
    "usage",
]

NAME = "codex"
CAN = Capabilities(names_sessions=False, splits_path=True, model=True)
INSTALL = "install it: npm install -g @openai/codex"
PASSED_PREFIXES = ("OPENAI_", "AZURE_OPENAI_", "CODEX_")
BLOCKED_VARIABLES = (
    *("CODEX_THREAD_ID", "CODEX_SESSION_ID", "CODEX_TOOL_CALL_ID", "CODEX_CI", "CODEX_VERSION"),
    *("CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_PERMISSION_PROFILE"),
)
"""Variables of a session in which Rekindle itself may have been started."""
_TRANSCRIPTS = r"/.+/(?:archived_)?sessions/(?:\d+/){{0,3}}rollout-[^/]+-{session}\.jsonl"
HOOK_FILES = HookFiles(
    program="codex",
    folder=".codex",
    moved_by="CODEX_HOME",
    project="hooks.json",
    user="hooks.json",
    packed="hooks.json",
    taken_in="put {folder}/hooks.json into .codex of the project, or into ~/.codex",
    deciding=("config.toml",),
    trust="Codex runs only hooks that you trust: start `codex` here and trust them when "
    "it asks, or with /hooks; hooks of a project also need a trusted project",
)
ENDING_SECONDS = 3
"""Seconds to which Codex limits a hook at the end of a session."""

_SWITCHES = ("hooks", "codex_hooks")
"""Keys below [features] that turn hooks off: the current name and the former one."""
_SOURCES = ("startup", "resume", "clear", "compact", "fork")
_EVENTS = ("SessionEnd", "UserPromptSubmit", "PreCompact", "PostToolUse")
_BOUNDARY = "PreToolUse"
_BY_THE_LAUNCH = "/<session-flags>/config.toml"
"""File name that Codex uses for hooks given on its command line."""
_WHOLE_TOOL = re.compile(r"(\w+)(?:\(\*?\*?\))?")
"""A permission for a whole tool; Codex has none for a part of one."""
_TOOLS = {
    "Bash": "shell",
    **dict.fromkeys(("Write", "Edit", "MultiEdit", "NotebookEdit"), "write"),
    **dict.fromkeys(("WebSearch", "WebFetch"), "web"),
    **dict.fromkeys(("Read", "Grep", "Glob", "LS"), "read"),
}
"""Kind of each tool of a persona in Codex, which does nearly everything with its shell."""
_NO_SERVERS = {
    "matcher": ".*mcp_.*",
    "hooks": [
        hook_dialect.make_handler("echo 'the persona does not allow it' >&2; exit 2", HOOK_SECONDS)
    ],
}
"""Hook that refuses every call of an MCP server. No setting removes all servers, and the names of
the user's servers are unknown.
"""
_TELLING = (b"token", b"context_window", b'"compacted"', b'"turn_context"')
"""Texts in the rollout lines that show how full the window is."""


def command(start: LaunchSpec) -> ProgramCommand:
    """Return the command of a launch; each option is one word with its value.

    Codex names its sessions itself. It would take anything but an id as a name, and silently open a
    new session if there is none of that name, so only ids are passed on. Without a terminal there
    is nobody to ask for an approval. A persona's temperature has no effect; its system prompt
    applies to a fresh session only, which keeps it.
    """
    if start.resumes and not to_uuid(start.session):
        raise UsageError(
            f"{start.session[:QUOTED_CHARACTERS]!r} cannot be a session of Codex",
            hint="its sessions are named by a UUID, in lower case",
        )
    argv = list(start.program or ("codex",))
    if not start.interactive:
        argv += [
            "exec",
            "--json",
            "--skip-git-repo-check",
            render_setting("approval_policy", "never"),
        ]
    argv += _list_hook_settings(start)
    if start.path and not start.interactive:
        # In a terminal the user may approve commands that then run outside the sandbox.
        argv.append(render_setting("shell_environment_policy.set.PATH", start.path))
    if start.persona.model:
        argv.append(render_setting("model", start.persona.model))
    if start.persona.permissions:
        argv += _list_permission_settings(start.persona.permissions, start.draft)
    if start.instructions and not start.resumes:
        argv.append(render_instructions(start.instructions))
    if start.resumes:
        argv += ["resume", start.session]
    if not start.interactive:
        argv.append("-")
    elif start.prompt:
        argv += ["--", make_argument(start.prompt, "Codex")]
    return ProgramCommand(tuple(argv))


def hooks(program: Sequence[str], *, supervised: bool, folder: str = "") -> dict[str, Any]:
    """Return the `hooks` of a hooks file, which start `program` at each recorded event.

    The hooks of a supervised session can also hold its next tool call.
    """

    def entry(event: str, seconds: int, **more: Any) -> dict[str, Any]:
        line = hook_dialect.render_command_line(program, NAME, event, folder)
        return {"hooks": [hook_dialect.make_handler(line, seconds, **more)]}

    starts = [
        {
            "matcher": source,
            **entry(
                f"SessionStart:{source}", HOOK_SECONDS, additionalContextLimit=HOOK_CONTEXT_TOKENS
            ),
        }
        for source in _SOURCES
    ]
    seconds = {"SessionEnd": ENDING_SECONDS}
    kept = (*_EVENTS, _BOUNDARY) if supervised else _EVENTS
    plain = {event: [entry(event, seconds.get(event, HOOK_SECONDS))] for event in kept}
    return {"SessionStart": starts, **plain}


def muted(found: HookInstallation) -> HookObstacle | None:
    """Return an obstacle unless the project and these exact hooks are trusted in Codex."""
    config = _parse_config(found.deciding.get("config.toml", ""))
    features = to_mapping(config.get("features"))
    if any(features.get(name) is False for name in _SWITCHES):
        return HookObstacle(
            "config.toml of Codex disables hooks", "remove that line below [features]"
        )
    projects = to_mapping(config.get("projects"))
    trusted = {
        path for path in projects if to_mapping(projects[path]).get("trust_level") == "trusted"
    }
    if found.project and not any(_is_in(found.project, path) for path in trusted):
        return HookObstacle("Codex does not trust this project", HOOK_FILES.trust)
    state = to_mapping(to_mapping(config.get("hooks")).get("state"))
    these = to_mapping(parse_object(found.text.encode()).get("hooks"))
    known = {
        key: to_mapping(state.get(key))
        for key, _, _, handler in _list_places(these, found.file)
        if parse_hook_command(handler.get("command"))
    }
    wanted = make_trust_state(these, found.file)
    if any(one.get("enabled") is False for one in known.values()):
        return HookObstacle("some hooks are disabled in Codex", "start `codex`, and see /hooks")
    if any(one.get("trusted_hash") != wanted[key]["trusted_hash"] for key, one in known.items()):
        return HookObstacle("Codex does not trust these hooks yet", HOOK_FILES.trust)
    return None


def told(event: str, text: str) -> str:
    """Return the output of a hook that adds a text to the session.

    It is JSON, because Codex would parse a plain text that starts with a bracket as JSON, and lose
    it.
    """
    said = {"hookEventName": event, "additionalContext": text}
    return json.dumps({"hookSpecificOutput": said})


def read_hook(line: HookRecord) -> AnyEvent | None:
    """Return the event that a hook reports; None if Rekindle does not record it."""
    return hook_dialect.read_hook_record(line, NAME, transcripts=_TRANSCRIPTS, prompt_id="turn_id")


def usage(tail: bytes, windows: Mapping[str, int]) -> WindowUsage | None:
    """Return how full the window was at the end of a rollout, whose lines may be torn.

    The API's count is written before a tool starts; the count with the window, when the tool has
    ended.
    """
    tokens, window, model = None, None, ""
    for line in reversed(tail.split(b"\n")):
        # Most lines are large and irrelevant; searching the bytes is cheaper than decoding.
        if not any(sign in line for sign in _TELLING):
            continue
        record = parse_object(line)
        payload = to_mapping(record.get("payload"))
        info = to_mapping(payload.get("info"))
        if record.get("type") == "compacted" and tokens is None:
            return None  # earlier counts are of a window that was emptied since
        if tokens is None:
            counted = to_mapping(info.get("last_token_usage")) or to_mapping(payload.get("usage"))
            tokens = to_count(counted.get("total_tokens"))
        window = window or to_count((info or payload).get("model_context_window"))
        model = model or to_word(payload.get("model"))
        if tokens is not None and window and model:
            break
    if tokens is None:
        return None
    if window:
        return WindowUsage(tokens, window, "reported", model)
    return WindowUsage(tokens, None, "unknown", model).within(windows)


def turn(line: bytes) -> UsageReport | None:
    """Return the API's token count for one answer; the running totals beside it are ignored.

    The stream has only the total at the end.
    """
    if b'"token_usage_record"' not in line:
        return None
    record = parse_object(line)
    if record.get("type") != "token_usage_record":
        return None
    return next(read_usage(to_mapping(record.get("payload"))), None)


def brake(*, interactive: bool) -> Brake | None:
    """Return how to stop a session: the hook before a tool call holds it, so no call is cut off.

    The usage is written after the calls of a turn, so the calls of the turn that fills the window
    still run. In a terminal this would end the session that its user is looking at.
    """
    if interactive:
        return None
    return Brake(
        event=_BOUNDARY,
        signs=('"type":"token_count"', '"last_token_usage"'),
        after='"last_token_usage":{',
        counts=("total_tokens",),
        window="model_context_window",
        beside=('"type":"task_started"', '"type":"task_complete"', '"type":"turn_aborted"'),
    )


def measure(program: Sequence[str]) -> ProgramCommand | None:  # noqa: ARG001 - part of the interface
    """Return None: every line with the usage has the window too."""
    return None


def measured(output: Iterable[bytes]) -> dict[str, int]:  # noqa: ARG001 - part of the interface
    return {}


def asides(transcript: str, session: str) -> SubagentTranscripts | None:
    """Return where sub-agents' rollouts are: among all others, with the parent in line 1."""
    return SubagentTranscripts(
        transcript.rpartition("/")[0],
        "rollout-*.jsonl",
        sign=f'"parent_thread_id":"{session}"',
        begins=find_own_start,
    )


def holds(transcript: Iterable[bytes], prompt: str) -> bool:
    """Return whether a rollout still has a prompt, by the id of its turn.

    Codex silently continues with whatever a power loss left of a rollout; with only the first line
    left, it is a session that was never asked anything.
    """
    sign = prompt.encode()
    for line in transcript:
        if sign in line and b'"UserMessage"' in line:
            payload = to_mapping(parse_object(line).get("payload"))
            is_prompt = to_mapping(payload.get("item")).get("type") == "UserMessage"
            if is_prompt and payload.get("turn_id") == prompt:
                return True
    return False


def _list_hook_settings(start: LaunchSpec) -> list[str]:
    """Return the hooks of a launch: ours, and the one that refuses MCP servers to a persona."""
    made, argv = hooks(start.hook, supervised=True) if start.hook else {}, []
    permissions = start.persona.permissions
    if permissions and permissions.allowed_tools is not None:
        made[_BOUNDARY] = [*made.get(_BOUNDARY, ()), _NO_SERVERS]
        argv.append("--enable=hooks")  # even if the user has disabled hooks
    if made:
        argv += [render_setting(f"hooks.{event}", entries) for event, entries in made.items()]
        argv.append(render_setting("hooks.state", make_trust_state(made, _BY_THE_LAUNCH)))
    return argv


def _list_permission_settings(permissions: Permissions, draft: str) -> list[str]:
    """Return a persona's permissions as Codex can enforce them: by removing whole tools.

    Writing is limited by the sandbox, which also applies to programs that the shell starts; a shell
    that may write can write in the agent's folder and to its draft. The sandbox has no rule for a
    path below those, but protects `.git`, `.codex` and `.agents`. If the persona lists nothing, the
    user's own settings for Codex apply; without any, Codex may only read.
    """
    is_limited = permissions.allowed_tools is not None
    allowed = _find_kinds(permissions.allowed_tools or ())
    denied = _find_kinds(permissions.deny or (), refused="read")
    granted = allowed - denied
    off = denied | ({"shell", "write", "web"} - granted if is_limited else set())
    argv = []
    if "write" in denied or (is_limited and not granted & {"shell", "write"}):
        argv.append("--sandbox=read-only")
    elif is_limited:
        argv.append("--sandbox=workspace-write")
        if draft:
            argv.append(f"--add-dir={draft.rpartition('/')[0]}")
    if "shell" in off:
        argv += ["--disable=shell_tool", "--disable=unified_exec"]
    if "web" in off:
        argv.append(render_setting("web_search", "disabled"))
    return argv


def _find_kinds(rules: Iterable[str], refused: str = "") -> set[str]:
    kinds = set()
    for rule in filter(None, rules):
        whole = _WHOLE_TOOL.fullmatch(rule)
        kind = _TOOLS.get(whole[1]) if whole else None
        if kind is None or kind == refused:
            raise UnenforceableError(
                "Codex", rule, hint=f"for Codex, name whole tools of: {', '.join(_TOOLS)}"
            )
        kinds.add(kind)
    return kinds


def make_trust_state(these: HookEntries, file: str) -> dict[str, Any]:
    """Return the `hooks.state` that makes Codex run exactly these hooks of a file.

    Codex identifies a hook by its position and by the hash of its content.
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
        return {}  # Codex does not start with such a file


def _is_in(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{folder.rstrip('/')}/")


def _hash_hook(event: str, entry: Mapping[str, Any], handler: Mapping[str, Any]) -> str:
    alone = {**entry, "hooks": [{"async": False, **handler}], "event_name": _to_snake_case(event)}
    form = json.dumps(alone, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(form.encode('utf-8', 'replace')).hexdigest()}"


def _to_snake_case(event: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", event).lower()
