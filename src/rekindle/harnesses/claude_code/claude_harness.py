"""Harness for Claude Code: its commands, hooks, output and transcripts.

Checked against version 2.1.325, using the recordings in tests/recordings. Limits of the CLI:

- The model's temperature cannot be set. A system prompt applies only to fresh sessions.
- The CLI silently continues with a truncated transcript, so Rekindle first checks that the
  transcript contains the last prompt.
- The CLI allows two processes in the same session. The caller must make sure that there is only
  one.
- If the CLI is killed, its tools keep running. Rekindle finds them through an environment variable
  and stops them.
- The CLI treats a prompt that starts with a slash as a command, even in a one-shot question. The
  model never sees such a prompt, so the output is not an answer.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from rekindle.documents.events import AnyEvent
from rekindle.documents.hooks.hook_record import HookRecord
from rekindle.documents.hooks.hook_settings import (
    HookFiles,
    HookInstallation,
    HookObstacle,
)
from rekindle.documents.launches.brake import Brake
from rekindle.documents.launches.launch_types import (
    Capabilities,
    LaunchSpec,
    ProgramCommand,
    UsageReport,
    WindowUsage,
)
from rekindle.documents.launches.one_shot import (
    OneShotAnswer,
    OneShotQuestion,
)
from rekindle.documents.launches.sandbox_needs import GatewayNeeds, SandboxNeeds, StateFolder
from rekindle.documents.transcripts.turns import SubagentTranscripts
from rekindle.errors import ManifestError, UsageError
from rekindle.formats import json_codec
from rekindle.harnesses import (
    ask_gate,
    hook_dialect,
    one_shot_common,
)
from rekindle.harnesses.claude_code import claude_exits, claude_messages, claude_stream
from rekindle.harnesses.claude_code.claude_messages import (
    read_usage,
)
from rekindle.harnesses.claude_code.claude_permissions import (
    list_ask_rules,
    list_permission_options,
)
from rekindle.harnesses.untrusted_json import (
    make_argument,
    parse_object,
    to_count,
    to_mapping,
    to_uuid,
    to_word,
)
from rekindle.thresholds.hook_limits import HOOK_SECONDS
from rekindle.thresholds.supervision import ARGUMENT_BYTES
from rekindle.thresholds.texts import QUOTED_CHARACTERS

NAME = "claude-code"
classify = claude_exits.classify
read_stream = claude_stream.read_stream
read_transcript = claude_messages.read_transcript
CAN = Capabilities(
    carries_sessions=True,
    reports_money=True,
    permits_tools=True,
    denies_paths=True,
    model=True,
    gate="closed",
)
HOOKS_FILE = "hooks.json"
_TRANSCRIPTS = r"/.+/projects/[^/]+/{session}\.jsonl"
HOOK_FILES = HookFiles(
    program="claude",
    folder=".claude",
    moved_by="CLAUDE_CONFIG_DIR",
    local="settings.local.json",
    project="settings.json",
    user="settings.json",
    has_status_line=True,
    package=".claude-plugin/plugin.json",
    taken_in="claude --plugin-dir {folder}",
)
INSTALL = "install it: npm install -g @anthropic-ai/claude-code"
PASSED_PREFIXES = (
    "ANTHROPIC_",
    "CLAUDE_",
    "AWS_",
    "GOOGLE_",
    "CLOUD_ML_",
    "VERTEX_",
    "DISABLE_",
    "API_TIMEOUT_MS",
    "MAX_THINKING_TOKENS",
    "BASH_",
    "MCP_",
    "IS_SANDBOX",
)
"""Prefixes of the environment variables that configure Claude Code."""
BLOCKED_VARIABLES = ("CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_PID", "CLAUDE_PROJECT_DIR")
"""Variables that Claude Code sets in its sessions."""
ACCOUNT_VARIABLE = HOOK_FILES.moved_by
LOGIN_SWITCHES = (
    *("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_MANTLE", "CLAUDE_CODE_USE_VERTEX"),
    *("CLAUDE_CODE_USE_FOUNDRY", "CLAUDE_CODE_USE_GATEWAY", "CLAUDE_CODE_USE_ANTHROPIC_AWS"),
    *("CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD", "CLAUDE_CODE_HOST_CREDS_FILE"),
    *("ANTHROPIC_CUSTOM_HEADERS", "ANTHROPIC_PROFILE", "ANTHROPIC_CONFIG_DIR"),
    "ANTHROPIC_FEDERATION_RULE_ID",
)
SANDBOX = SandboxNeeds(
    hosts=("api.anthropic.com", "platform.claude.com", "console.anthropic.com"),
    host_variables=("ANTHROPIC_BASE_URL",),
    gateway=GatewayNeeds(
        url="https://api.anthropic.com",
        url_variable="ANTHROPIC_BASE_URL",
        key_variables=("ANTHROPIC_API_KEY",),
    ),
    state=StateFolder(
        state=(".credentials.json", "history.jsonl"),
        folders=(
            *("projects", "sessions", "session-env", "shell-snapshots", "backups", "todos"),
            *("tasks", "plans", "file-history", "debug", "cache", "paste-cache"),
        ),
        is_closed=True,
        beside=(".claude.json",),
    ),
)

_EVENTS = ("SessionEnd", "UserPromptSubmit", "PreCompact", "PostToolUse", "PostToolUseFailure")
_SOURCES = ("startup", "resume", "clear", "compact", "fork")
_BOUNDARY = "PostToolBatch"
_ASKED = "UserPromptSubmit"
_STOP = {"continue": False, "stopReason": "a fresh session continues from here"}
_WAIT = {
    "decision": "block",
    "reason": "This window is nearly full. Rekindle starts a fresh session with a checkpoint of"
    " the work, and passes on what you have just asked.",
}
_USAGE = {"type": "control_request", "request_id": "1", "request": {"subtype": "get_context_usage"}}


def command(start: LaunchSpec) -> ProgramCommand:
    """Return the command for a launch. Each option and its value are one argument.

    A persona's temperature has no effect, because the CLI has no option for it. Only fresh sessions
    get the system prompt, because a session keeps the prompt that it started with. Our settings
    file contains only hooks, because a status line would replace the user's. If a persona lists its
    tools and none of them belongs to an MCP server, the CLI starts no servers. Otherwise, the
    user's settings decide which servers it starts.
    """
    if not to_uuid(start.session):
        raise UsageError(
            f"{start.session[:QUOTED_CHARACTERS]!r} is not a valid session id for Claude Code",
            hint="session ids are UUIDs in lower case",
        )
    argv = list(start.program or ("claude",))
    if not start.interactive:
        argv += ["-p", "--output-format=stream-json", "--verbose"]
    argv.append(f"--{'resume' if start.resumes else 'session-id'}={start.session}")
    files = {}
    settings: dict[str, Any] = {"hooks": hooks(start.hook, supervised=True)} if start.hook else {}
    permissions = start.persona.permissions
    rules = ask_gate.parse_rules(permissions.ask if permissions else None, "Claude Code")
    if rules:
        settings["permissions"] = {"ask": list_ask_rules(rules)}
        if not start.interactive:
            files[ask_gate.RULES_FILE] = ask_gate.render_rules(rules, start)
            events = settings.setdefault("hooks", {})
            events["PermissionRequest"] = [ask_gate.make_entry(start, NAME)]
            # The CLI's rules miss other spellings of a command, and -p has no question for a hook.
            before = ask_gate.make_entry(start, f"{NAME}:PreToolUse")
            before["hooks"][0]["onFailure"] = "block"
            events.setdefault("PreToolUse", []).append(before)
    if settings:
        files[HOOKS_FILE] = json_codec.encode_pretty(settings, HOOKS_FILE).decode()
        argv.append(f"--settings={start.scratch}/{HOOKS_FILE}")
    argv += list_permission_options(start)
    if start.persona.model:
        argv.append(f"--model={start.persona.model}")
    if start.persona.system_prompt_file and not start.resumes:
        argv.append(f"--append-system-prompt-file={start.persona.system_prompt_file}")
    if start.usd_left is not None:
        argv.append(_render_cap(start.usd_left))
    if start.interactive and start.prompt:
        argv += ["--", make_argument(start.prompt, "Claude Code")]
    return ProgramCommand(tuple(argv), files=files)


def ask(question: OneShotQuestion) -> ProgramCommand:
    """Return the command that asks a question, without settings, MCP servers or a transcript.

    Only read-only tools are allowed, and only in the folder where the CLI starts. With a schema,
    the model answers by calling one more tool.
    """
    tools, files = (
        one_shot_common.select_granted_tools(question, "Claude Code"),
        one_shot_common.make_files(question),
    )
    argv = [*(question.program or ("claude",)), "-p", "--output-format=stream-json", "--verbose"]
    argv += [f"--tools={','.join(tools)}", "--setting-sources=", "--strict-mcp-config"]
    argv += ["--disable-slash-commands", "--no-session-persistence"]
    if question.persona.model:
        argv.append(f"--model={question.persona.model}")
    if one_shot_common.INSTRUCTIONS_FILE in files:
        argv.append(f"--system-prompt-file={question.scratch}/{one_shot_common.INSTRUCTIONS_FILE}")
    if schema := files.pop(one_shot_common.SCHEMA_FILE, ""):
        argv.append(f"--json-schema={schema}")
        if "\0" in schema or len(argv[-1].encode()) > ARGUMENT_BYTES:
            raise ManifestError(
                f"the answer's schema contains a NUL, or is longer than {ARGUMENT_BYTES:,} bytes",
                hint="shorten it",
            )
    if question.usd_left is not None:
        argv.append(_render_cap(question.usd_left))
    # Otherwise, the CLI would read any file named after an @ in the prompt, without a tool call.
    environment = {"CLAUDE_CODE_DISABLE_ATTACHMENTS": "1", **one_shot_common.ONE_SHOT_ENVIRONMENT}
    return ProgramCommand(tuple(argv), environment, files)


def answer(output: Iterable[bytes]) -> OneShotAnswer | None:
    """Return the structured output from the program's result, or else its final text."""
    account: dict[str, Any] = {}
    for line in output:
        record = parse_object(line)
        if record.get("type") == "result":
            account = record
    report = claude_stream.read_final_report(account)
    structured = account.get("structured_output")
    text = report.text if structured is None else msgspec.json.encode(structured).decode()
    # If no tokens were used, the text comes from the CLI itself, not from the model.
    is_answered = report.ok and report.tokens and text.strip()
    return OneShotAnswer(text, report.usd, report.tokens) if is_answered else None


def _render_cap(usd: float) -> str:
    # The CLI reports its cost only at the end, so it must enforce the limit itself.
    return f"--max-budget-usd={max(usd, 0.01):.4f}"


def hooks(program: Sequence[str], *, supervised: bool, folder: str = "") -> dict[str, Any]:
    """Return the `hooks` section of a settings file, which runs `program` on each event.

    In a supervised session, the hooks can also stop the session between two model turns.
    """

    def make_entry(event: str, **matcher: str) -> dict[str, Any]:
        line = hook_dialect.render_command_line(program, NAME, event, folder)
        return {**matcher, "hooks": [hook_dialect.make_handler(line, HOOK_SECONDS)]}

    plain = (*_EVENTS, _BOUNDARY) if supervised else _EVENTS
    return {
        "SessionStart": [
            make_entry(f"SessionStart:{source}", matcher=source) for source in _SOURCES
        ],
        **{event: [make_entry(event)] for event in plain},
    }


def find_hook_obstacle(found: HookInstallation) -> HookObstacle | None:
    """Return an obstacle if a settings file disables all hooks, or None if hooks can run."""
    if parse_object(found.text.encode()).get("disableAllHooks") is not True:
        return None
    return HookObstacle(
        f"{to_word(found.file)} has disableAllHooks, so no hook runs", "remove that line"
    )


def render_hook_output(event: str, text: str) -> str:  # noqa: ARG001 - part of the interface
    """Return the hook output that adds text to the session. Claude Code takes the text as it is."""
    return text


def read_hook(line: HookRecord) -> AnyEvent | None:
    """Return the event that a hook reported, or None if Rekindle does not record such events."""
    return hook_dialect.read_hook_record(
        line, NAME, transcripts=_TRANSCRIPTS, prompt_id="prompt_id"
    )


def usage(tail: bytes, windows: Mapping[str, int]) -> WindowUsage | None:
    """Return the window usage from the last turn or compaction at a transcript's end.

    `windows` maps each model to the window size from `FinalReport`. If the size is not known, the
    usage is `unknown`, because a wrong guess could end sessions that are half empty.
    """
    compacted: int | None = None
    for line in reversed(tail.split(b"\n")):
        # Most lines are large and irrelevant, so search the bytes before decoding them.
        if b'"usage"' not in line and b'"compact_boundary"' not in line:
            continue
        record = parse_object(line)
        if record.get("isSidechain") is True:
            continue
        if record.get("subtype") == "compact_boundary" and compacted is None:
            # Usage from before the compaction no longer applies.
            compacted = to_count(to_mapping(record.get("compactMetadata")).get("postTokens"))
            if compacted is None:
                return None
        if record.get("type") == "assistant":
            # The message omits the suffix for a larger window, such as `[1m]` in `sonnet[1m]`.
            requested_model = to_word(record.get("requestedModel"))
            if window_usage := read_usage(to_mapping(record.get("message")), requested_model):
                tokens = window_usage.tokens if compacted is None else compacted
                return msgspec.structs.replace(window_usage, tokens=tokens).within(windows)
    return None


def brake(*, interactive: bool) -> Brake | None:
    """Return how to stop a session: after a turn's tool calls, or at the next prompt in a terminal.

    At that point, the transcript already contains the turn's usage.
    """
    return Brake(
        event=_ASKED if interactive else _BOUNDARY,
        signs=('"type":"assistant"', '"isSidechain":false'),
        after='"usage":{',
        counts=("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
        # The name with the suffix for a larger window comes first.
        models=("requestedModel", "model"),
        below="agent_id",
        call="" if interactive else "tool_use_id",
        calls=('"type":"tool_use","id":"', '"tool_use_id":"') if interactive else (),
        asides="subagents",
        told_at=_BOUNDARY,
        told_as=_BOUNDARY,
        answer=msgspec.json.encode(_WAIT if interactive else _STOP).decode(),
    )


def measure(program: Sequence[str]) -> ProgramCommand | None:
    """Return the command that reports the window size of the user's model, without using the model.

    The user's settings choose the model, but their hooks and MCP servers are not started.
    """
    argv = [*(program or ("claude",)), "-p", "--output-format=stream-json", "--verbose"]
    argv += ["--input-format=stream-json", "--no-session-persistence", "--strict-mcp-config"]
    argv.append('--settings={"disableAllHooks":true}')
    request = msgspec.json.encode(_USAGE).decode() + "\n"
    return ProgramCommand(tuple(argv), dict(one_shot_common.ONE_SHOT_ENVIRONMENT), asked=request)


def parse_window_sizes(output: Iterable[bytes]) -> dict[str, int]:
    windows = {}
    for line in output:
        usage = to_mapping(to_mapping(parse_object(line).get("response")).get("response"))
        model, window = to_word(usage.get("model")), to_count(usage.get("rawMaxTokens"))
        if model and window:
            windows[model] = window
    return windows


def turn(line: bytes) -> UsageReport | None:
    """Return a turn's usage from a transcript line, which has the same format as the output."""
    if b'"usage"' not in line:
        return None
    return next((item for item in read_stream(line) if isinstance(item, UsageReport)), None)


def asides(transcript: str, session: str) -> SubagentTranscripts | None:  # noqa: ARG001 - part of the interface
    """Return the location of the sub-agents' transcripts, in a folder named after the session."""
    return SubagentTranscripts(f"{transcript.removesuffix('.jsonl')}/subagents", deep=True)


def has_prompt(transcript: Iterable[bytes], prompt: str) -> bool:
    """Return whether a transcript contains a prompt. A truncated transcript may not."""
    sign = prompt.encode()
    return any(sign in line and parse_object(line).get("promptId") == prompt for line in transcript)
