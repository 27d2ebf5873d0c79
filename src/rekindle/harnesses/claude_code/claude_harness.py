"""Claude Code: how it is started, what it says, how it ends; all in our words.

Seen with 2.1.325, and held to it by the recordings in tests/recordings. What it cannot do:

- Its model's temperature cannot be set, and is left as it is; a system prompt counts for a fresh
  session only.
- It goes on without a word with what is left of a transcript: whether the last prompt is still in
  it is looked at before.
- It lets a second process into a session: whoever resumes must know that nobody works in it.
- Killed, it leaves its tools running: they are found by their mark, and ended.
- A prompt that begins with a slash is a command of its own, also in a question, and asks no model:
  what it then says is no answer.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from rekindle.documents.events import AnyEvent
from rekindle.documents.hooks.hook_record import HookRecord
from rekindle.documents.hooks.hook_settings import (
    HookFiles,
    HookInstallation,
    HookObstacle,
)
from rekindle.documents.launches.cli_output import (
    Brake,
    Capabilities,
    CompactionReport,
    FinalReport,
    LaunchSpec,
    LimitReport,
    OutputItem,
    ProgramCommand,
    RefusedCall,
    RetryReport,
    SessionOpened,
    ToolCallFinished,
    UsageReport,
    WindowUsage,
)
from rekindle.documents.launches.one_shot import (
    OneShotAnswer,
    OneShotQuestion,
)
from rekindle.documents.transcripts.turns import SubagentTranscripts
from rekindle.errors import ManifestError, UsageError
from rekindle.formats import json_codec
from rekindle.harnesses import (
    hook_dialect,
    one_shot_common,
)
from rekindle.harnesses.claude_code.claude_exits import classify
from rekindle.harnesses.claude_code.claude_messages import (
    is_denied,
    read_answer,
    read_denials,
    read_transcript,
    read_usage,
)
from rekindle.harnesses.claude_code.claude_permissions import list_permission_options
from rekindle.harnesses.untrusted_json import (
    make_argument,
    parse_object,
    to_count,
    to_mapping,
    to_text,
    to_uuid,
    to_word,
)
from rekindle.thresholds.supervision import (
    ARGUMENT_BYTES,
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
    "measure",
    "measured",
    "muted",
    "read_hook",
    "read_stream",
    "read_transcript",
    "told",
    "turn",
    "usage",
]

NAME = "claude-code"
CAN = Capabilities(reports_money=True, denies_paths=True, model=True)
HOOKS_FILE = "hooks.json"
_TRANSCRIPTS = r"/.+/projects/[^/]+/{session}\.jsonl"
HOOK_FILES = HookFiles(
    program="claude",
    folder=".claude",
    moved_by="CLAUDE_CONFIG_DIR",
    local="settings.local.json",
    project="settings.json",
    user="settings.json",
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
"""How the variables begin that Claude Code is set up with."""
BLOCKED_VARIABLES = ("CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_PID", "CLAUDE_PROJECT_DIR")
"""Those of a session that we may have been started from ourselves."""

_EVENTS = ("SessionEnd", "UserPromptSubmit", "PreCompact", "PostToolUse", "PostToolUseFailure")
_SOURCES = ("startup", "resume", "clear", "compact", "fork")
_BOUNDARY = "PostToolBatch"
_ASKED = "UserPromptSubmit"
_STOP = {"continue": False, "stopReason": "a fresh session goes on from here"}
_WAIT = {
    "decision": "block",
    "reason": "This window is nearly full. Rekindle begins a fresh session with a checkpoint of"
    " the work, and passes on what you have just asked.",
}
_USAGE = {"type": "control_request", "request_id": "1", "request": {"subtype": "get_context_usage"}}
_SPENT = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")


def command(start: LaunchSpec) -> ProgramCommand:
    """What is to be started; every option is joined to its value, so that none passes for another.

    A persona's temperature has no effect: the CLI has no option for it. Its system prompt counts
    for a fresh session only: a session keeps the one that it began with, whatever a later launch
    says. What we pass as settings has hooks alone: a status line in it would take the place of the
    person's own. Where a persona lists its tools and none is a server's, no MCP server is started;
    where one is, the person's own settings decide about the servers that it does not name.
    """
    if not to_uuid(start.session):
        raise UsageError(
            f"{start.session[:QUOTED_CHARACTERS]!r} cannot be a session of Claude Code",
            hint="its sessions are named by a UUID, in lower case",
        )
    argv = list(start.program or ("claude",))
    if not start.interactive:
        argv += ["-p", "--output-format=stream-json", "--verbose"]
    argv.append(f"--{'resume' if start.resumes else 'session-id'}={start.session}")
    files = {}
    if start.hook:
        settings = {"hooks": hooks(start.hook, supervised=True)}
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
    """What answers a question: nobody's settings, no server, no tool but what reads, no transcript.

    With a schema it is offered one more tool, by which it answers. It may read where it is started,
    and nowhere else.
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
                f"the answer's schema is none, or longer than {ARGUMENT_BYTES:,} bytes",
                hint="shorten it",
            )
    if question.usd_left is not None:
        argv.append(_render_cap(question.usd_left))
    # Else it would read any file that the prompt names behind an @, without a tool.
    environment = {"CLAUDE_CODE_DISABLE_ATTACHMENTS": "1", **one_shot_common.ONE_SHOT_ENVIRONMENT}
    return ProgramCommand(tuple(argv), environment, files)


def answer(output: Iterable[bytes]) -> OneShotAnswer | None:
    """What the program's account holds: what its schema asked for, else its last words."""
    account: dict[str, Any] = {}
    for line in output:
        record = parse_object(line)
        if record.get("type") == "result":
            account = record
    told = _read_final_report(account)
    structured = account.get("structured_output")
    said = told.text if structured is None else msgspec.json.encode(structured).decode()
    # Where no token was used, no model was asked: these are the CLI's own words.
    is_answered = told.ok and told.tokens and said.strip()
    return OneShotAnswer(said, told.usd, told.tokens) if is_answered else None


def _render_cap(usd: float) -> str:
    # It says what it has cost only when it is done: until then it must hold itself to it.
    return f"--max-budget-usd={max(usd, 0.01):.4f}"


def hooks(program: Sequence[str], *, supervised: bool, folder: str = "") -> dict[str, Any]:
    """The `hooks` of a settings file: `program` is told of each event that we keep.

    A supervised session can also be stopped, between its model's turns.
    """

    def entry(event: str, **matcher: str) -> dict[str, Any]:
        line = hook_dialect.render_command_line(program, NAME, event, folder)
        return {**matcher, "hooks": [hook_dialect.make_handler(line, HOOK_SECONDS)]}

    plain = (*_EVENTS, _BOUNDARY) if supervised else _EVENTS
    return {
        "SessionStart": [entry(f"SessionStart:{source}", matcher=source) for source in _SOURCES],
        **{event: [entry(event)] for event in plain},
    }


def muted(found: HookInstallation) -> HookObstacle | None:
    """A file can say that no hook is to run."""
    if parse_object(found.text.encode()).get("disableAllHooks") is not True:
        return None
    return HookObstacle(
        f"{to_word(found.file)} says disableAllHooks: no hook runs", "remove that line"
    )


def told(event: str, text: str) -> str:  # noqa: ARG001 - part of the interface
    """What a hook prints, so that the session is told a text: at a start, the plain text."""
    return text


def read_hook(line: HookRecord) -> AnyEvent | None:
    """The fact that a hook reports; None where it reports nothing that we keep."""
    return hook_dialect.read_hook_record(
        line, NAME, transcripts=_TRANSCRIPTS, prompt_id="prompt_id"
    )


def read_stream(line: bytes) -> tuple[OutputItem, ...]:  # noqa: PLR0911 - one return per kind of line
    """What a line of the program's output shows; nothing, where it cannot be read or is not known.

    A sub-agent's own messages are left out: they fill another window.
    """
    record = parse_object(line)
    match record.get("type"), record.get("subtype"):
        case "system", "init":
            session = to_uuid(record.get("session_id"))
            model, version = (
                to_word(record.get("model")),
                to_word(record.get("claude_code_version")),
            )
            billed = _is_billed(record.get("apiKeySource"))
            return (SessionOpened(session, model, version, billed=billed),) if session else ()
        case "system", "api_retry":
            seconds = (to_count(record.get("retry_delay_ms")) or 0) / 1000
            return (RetryReport(to_count(record.get("error_status")), seconds),)
        case "system", "compact_boundary":
            sizes = to_mapping(record.get("compact_metadata"))
            return (
                CompactionReport(
                    to_count(sizes.get("pre_tokens")), to_count(sizes.get("post_tokens"))
                ),
            )
        case "rate_limit_event", _:
            limit = to_mapping(record.get("rate_limit_info"))
            # The other statuses come on ordinary turns, also beside a rejected `overageStatus`.
            refused = limit.get("status") == "rejected"
            return (LimitReport(to_count(limit.get("resetsAt"))),) if refused else ()
        case "assistant", _ if record.get("parent_tool_use_id") is None:
            return tuple(read_answer(to_mapping(record.get("message"))))
        case "user", _ if record.get("parent_tool_use_id") is None:
            return tuple(_read_results(to_mapping(record.get("message"))))
        case "result", _:
            return (*read_denials(record), _read_final_report(record))
        case _:
            return ()


def _is_billed(source: object) -> bool | None:
    """Return whether the account is billed per token: it is if the CLI uses an API key.

    Without a key the CLI writes `none`: a subscription, or a cloud account that it does not show.
    """
    if not isinstance(source, str) or not source:
        return None
    return source not in {"none", "oauth"}


def usage(tail: bytes, windows: Mapping[str, int]) -> WindowUsage | None:
    """How full the window is, by the last turn or compaction that a transcript's end tells of.

    `windows` is what `FinalReport` has told of each model. Without the model's own, how full it is
    is `unknown`: a guess at a window would end sessions that are half empty.
    """
    compacted: int | None = None
    for line in reversed(tail.split(b"\n")):
        # Most lines are large and of no interest; looking at the bytes is cheaper than decoding.
        if b'"usage"' not in line and b'"compact_boundary"' not in line:
            continue
        record = parse_object(line)
        if record.get("isSidechain") is True:
            continue
        if record.get("subtype") == "compact_boundary" and compacted is None:
            # The turns before it filled a window that has been emptied since.
            compacted = to_count(to_mapping(record.get("compactMetadata")).get("postTokens"))
            if compacted is None:
                return None
        if record.get("type") == "assistant":
            # The message names its model without what widens its window, as in `sonnet[1m]`.
            asked = to_word(record.get("requestedModel"))
            if found := read_usage(to_mapping(record.get("message")), asked):
                tokens = found.tokens if compacted is None else compacted
                return msgspec.structs.replace(found, tokens=tokens).within(windows)
    return None


def brake(*, interactive: bool) -> Brake | None:
    """By the hook behind all calls of a turn, failed ones too; in a terminal at the next prompt.

    There the transcript has what the turn has used already.
    """
    return Brake(
        event=_ASKED if interactive else _BOUNDARY,
        signs=('"type":"assistant"', '"isSidechain":false'),
        after='"usage":{',
        counts=("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
        # The message names its model without what widens its window, as in `sonnet[1m]`.
        models=("requestedModel", "model"),
        below="agent_id",
        call="" if interactive else "tool_use_id",
        calls=('"type":"tool_use","id":"', '"tool_use_id":"') if interactive else (),
        asides="subagents",
        answer=msgspec.json.encode(_WAIT if interactive else _STOP).decode(),
    )


def measure(program: Sequence[str]) -> ProgramCommand | None:
    """It tells what a session would have, once it is asked by its protocol and by no prompt.

    The settings that name its model count; no hook of theirs is run for it, and no server started.
    """
    argv = [*(program or ("claude",)), "-p", "--output-format=stream-json", "--verbose"]
    argv += ["--input-format=stream-json", "--no-session-persistence", "--strict-mcp-config"]
    argv.append('--settings={"disableAllHooks":true}')
    asked = msgspec.json.encode(_USAGE).decode() + "\n"
    return ProgramCommand(tuple(argv), dict(one_shot_common.ONE_SHOT_ENVIRONMENT), asked=asked)


def measured(output: Iterable[bytes]) -> dict[str, int]:
    found = {}
    for line in output:
        told = to_mapping(to_mapping(parse_object(line).get("response")).get("response"))
        model, window = to_word(told.get("model")), to_count(told.get("rawMaxTokens"))
        if model and window:
            found[model] = window
    return found


def turn(line: bytes) -> UsageReport | None:
    """A transcript tells of a turn as the stream does, in as many pieces."""
    if b'"usage"' not in line:
        return None
    return next((one for one in read_stream(line) if isinstance(one, UsageReport)), None)


def asides(transcript: str, session: str) -> SubagentTranscripts | None:  # noqa: ARG001 - part of the interface
    """Its sub-agents' transcripts are in a folder that is named like the session."""
    return SubagentTranscripts(f"{transcript.removesuffix('.jsonl')}/subagents", deep=True)


def holds(transcript: Iterable[bytes], prompt: str) -> bool:
    """Whether a transcript still has a prompt; with what is left of one it goes on in silence."""
    sign = prompt.encode()
    return any(sign in line and parse_object(line).get("promptId") == prompt for line in transcript)


def _read_results(message: dict[str, Any]) -> Iterator[OutputItem]:
    content = message.get("content")
    for block in map(to_mapping, content if isinstance(content, list) else ()):
        if block.get("type") == "tool_result":
            call, refused = to_word(block.get("tool_use_id")), is_denied(block)
            yield ToolCallFinished(call, refused)
            if refused:
                yield RefusedCall(call=call)


def _read_final_report(record: dict[str, Any]) -> FinalReport:
    errors, usd = record.get("errors"), record.get("total_cost_usd")
    models = {
        to_word(model): to_mapping(used)
        for model, used in to_mapping(record.get("modelUsage")).items()
    }
    windows = {
        model: size
        for model, used in models.items()
        if (size := to_count(used.get("contextWindow")))
    }
    spent = sum(to_count(used.get(name)) or 0 for used in models.values() for name in _SPENT)
    return FinalReport(
        session=to_uuid(record.get("session_id")),
        ok=record.get("subtype") == "success" and record.get("is_error") is False,
        reason=to_word(record.get("terminal_reason")) or to_word(record.get("subtype")),
        text=to_text(record.get("result")),
        errors=tuple(map(to_text, errors)) if isinstance(errors, list) else (),
        status=to_count(record.get("api_error_status")),
        usd=usd if isinstance(usd, float) else to_count(usd),
        tokens=spent or None,
        windows=windows,
    )
