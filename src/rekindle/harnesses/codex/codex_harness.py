"""Codex: how it is started, what it says, how it ends; all in our words.

Seen with 0.166.0, and held to it by the recordings in tests/recordings.

What npm puts on the PATH is a wrapper. It passes TERM, INT and HUP on; killed, it leaves the real
program alive, but in its own process group, which is ended with it before anything else is started.
So whatever `codex` is found is run. What it cannot do:

- A new session cannot be given its id: it is taken from what the program prints.
- Permissions are for whole tools, by its own sandbox: a rule for a part of one is refused.
- A person's MCP servers cannot be switched off all at once: a hook of ours refuses their tools.
- Hooks that nobody has trusted never run: those of a launch come with their hashes.
- No hook can stop it between two turns: the next tool call is held before it begins, until the
  program is ended. Interrupted it ends with 1 and without a word.
- Without a network it waits for ever, and says so only at first: its silence is noticed.
- It goes on without a word with what is left of a rollout: whether the last prompt is still in it
  is looked at before.
- Two tools are offered with every question: to ask the user, who is not there, and to patch files,
  which the sandbox refuses. A person's MCP servers are started, and their tools found by a search;
  a call is refused, unless the person has approved the tool, or it calls itself one that reads.
  What AGENTS.md beside its settings says goes along.
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
"""Those of a session that we may have been started from ourselves."""
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
    trust="Codex runs no hooks that nobody has looked at: start `codex` here and trust them when "
    "it asks, or by /hooks; a project's also need the project itself to be trusted",
)
ENDING_SECONDS = 3
"""What it cuts the time of a hook to at a session's end."""

_SWITCHES = ("hooks", "codex_hooks")
"""What turns hooks off below [features]: its name, and the one that it had."""
_SOURCES = ("startup", "resume", "clear", "compact", "fork")
_EVENTS = ("SessionEnd", "UserPromptSubmit", "PreCompact", "PostToolUse")
_BOUNDARY = "PreToolUse"
_BY_THE_LAUNCH = "/<session-flags>/config.toml"
"""Where Codex says that hooks stand that its command line told it of."""
_WHOLE_TOOL = re.compile(r"(\w+)(?:\(\*?\*?\))?")
"""A permission for all that a tool does; Codex has none for a part of it."""
_TOOLS = {
    "Bash": "shell",
    **dict.fromkeys(("Write", "Edit", "MultiEdit", "NotebookEdit"), "write"),
    **dict.fromkeys(("WebSearch", "WebFetch"), "web"),
    **dict.fromkeys(("Read", "Grep", "Glob", "LS"), "read"),
}
"""What the tools of a persona are in Codex, which does nearly everything by its shell."""
_NO_SERVERS = {
    "matcher": ".*mcp_.*",
    "hooks": [
        hook_dialect.make_handler("echo 'the persona does not allow it' >&2; exit 2", HOOK_SECONDS)
    ],
}
"""A hook that refuses every call of an MCP server. No setting takes the servers away: those that a
person has set up are known by their names alone, which we do not know."""
_TELLING = (b"token", b"context_window", b'"compacted"', b'"turn_context"')
"""What stands in the lines of a rollout that tell how full the window is."""


def command(start: LaunchSpec) -> ProgramCommand:
    """What is to be started; every option is joined to its value, so that none passes for another.

    Codex names its sessions itself. It would take what is no id for a name, and where nothing has
    that name open a new session without a word: only ids are passed on. Without a terminal nobody
    can be asked for an approval. A persona's temperature has no effect; its system prompt counts
    for a fresh session only, which keeps it.
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
        # In a terminal a person may approve commands that then run outside the sandbox.
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
    """The `hooks` of a hooks file: `program` is told of each event that we keep.

    A supervised session's next call can also be held, before it begins.
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
    """Codex runs only what a person has looked at, as it stands, in a project that is trusted."""
    config = _parse_config(found.deciding.get("config.toml", ""))
    features = to_mapping(config.get("features"))
    if any(features.get(name) is False for name in _SWITCHES):
        return HookObstacle(
            "config.toml of Codex switches hooks off", "remove that line below [features]"
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
        return HookObstacle("some hooks are switched off in Codex", "start `codex`, and see /hooks")
    if any(one.get("trusted_hash") != wanted[key]["trusted_hash"] for key, one in known.items()):
        return HookObstacle("nobody has told Codex to trust them, as they stand", HOOK_FILES.trust)
    return None


def told(event: str, text: str) -> str:
    """What a hook prints, so that the session is told a text.

    As JSON: a plain text that begins with a bracket would be taken for JSON, and lost.
    """
    said = {"hookEventName": event, "additionalContext": text}
    return json.dumps({"hookSpecificOutput": said})


def read_hook(line: HookRecord) -> AnyEvent | None:
    """The fact that a hook reports; None where it reports nothing that we keep."""
    return hook_dialect.read_hook_record(line, NAME, transcripts=_TRANSCRIPTS, prompt_id="turn_id")


def usage(tail: bytes, windows: Mapping[str, int]) -> WindowUsage | None:
    """How full the window was at the end of a rollout, whose lines may be torn.

    What the API counted is written before a tool begins, with the window when the tool has ended.
    """
    tokens, window, model = None, None, ""
    for line in reversed(tail.split(b"\n")):
        # Most lines are large and hold none of it: looking at the bytes is cheaper than decoding.
        if not any(sign in line for sign in _TELLING):
            continue
        record = parse_object(line)
        payload = to_mapping(record.get("payload"))
        info = to_mapping(payload.get("info"))
        if record.get("type") == "compacted" and tokens is None:
            return None  # what was counted before filled a window that has been emptied since
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
    """What the API counted, once for each of its answers; what is summed up beside it is not read.

    Its stream tells only at the end what it took.
    """
    if b'"token_usage_record"' not in line:
        return None
    record = parse_object(line)
    if record.get("type") != "token_usage_record":
        return None
    return next(read_usage(to_mapping(record.get("payload"))), None)


def brake(*, interactive: bool) -> Brake | None:
    """By the hook before a tool call, which holds it: nothing that has begun is cut.

    What is read is written behind the calls of a turn, so that those of the turn that has filled
    the window are let go on. In a terminal it would end what its person looks at.
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
    """Nothing needs to: every line that tells what was used tells the window too."""
    return None


def measured(output: Iterable[bytes]) -> dict[str, int]:  # noqa: ARG001 - part of the interface
    return {}


def asides(transcript: str, session: str) -> SubagentTranscripts | None:
    """A sub-agent's rollout lies among all others, and says in its first line whose it is."""
    return SubagentTranscripts(
        transcript.rpartition("/")[0],
        "rollout-*.jsonl",
        sign=f'"parent_thread_id":"{session}"',
        begins=find_own_start,
    )


def holds(transcript: Iterable[bytes], prompt: str) -> bool:
    """Whether a rollout still has a prompt, by its turn.

    Codex goes on with whatever a power loss left of one, without a word: with nothing but its first
    line, as a session that was never asked for anything.
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
    """The hooks of a launch: ours, and the one that keeps a persona from MCP servers."""
    made, argv = hooks(start.hook, supervised=True) if start.hook else {}, []
    permissions = start.persona.permissions
    if permissions and permissions.allowed_tools is not None:
        made[_BOUNDARY] = [*made.get(_BOUNDARY, ()), _NO_SERVERS]
        argv.append("--enable=hooks")  # also where the person has switched them off
    if made:
        argv += [render_setting(f"hooks.{event}", entries) for event, entries in made.items()]
        argv.append(render_setting("hooks.state", make_trust_state(made, _BY_THE_LAUNCH)))
    return argv


def _list_permission_settings(permissions: Permissions, draft: str) -> list[str]:
    """A persona's permissions as Codex can keep them: for whole tools, by taking them away.

    What writes is held by the sandbox, which also holds what the shell starts; a shell that may
    write may write in the agent's folder and its draft. The sandbox has no rule for a path below
    those, but keeps `.git`, `.codex` and `.agents` from being written. Where the persona says
    nothing, the person's own settings for Codex count, and without any it may read only.
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
    """The `hooks.state` by which Codex runs these hooks of a file, and nobody else's.

    It knows a hook by its place, and by the hash of what it is.
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
        return {}  # which Codex does not start with


def _is_in(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{folder.rstrip('/')}/")


def _hash_hook(event: str, entry: Mapping[str, Any], handler: Mapping[str, Any]) -> str:
    alone = {**entry, "hooks": [{"async": False, **handler}], "event_name": _to_snake_case(event)}
    form = json.dumps(alone, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(form.encode('utf-8', 'replace')).hexdigest()}"


def _to_snake_case(event: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", event).lower()
