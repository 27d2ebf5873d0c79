"""The harness for Gemini CLI: its commands, hooks, output and session files.

Checked with version 0.61.0, by the recordings in tests/recordings. Limits of the CLI:

- A launch cannot be given hooks: they are in the settings of the user or the project, or in files
  that only root can change. Hooks installed there report a launch too, those of a project only in a
  folder that the user has trusted: `--skip-trust` takes effect after the settings were read.
  Without hooks only the stream is available, which does not show how full the window is.
- Its PreCompress hook runs before every request, whether anything is compacted or not, and no other
  sign exists: compactions are unknown, and no context is repeated after one.
- Output of a SessionStart hook removes the user's prompts when the session is resumed, so the
  context is given at the first prompt, by BeforeAgent only.
- A failed tool call is reported as a success and has no id: the payload of its hook identifies it.
- Prompts have no ids, so it is not checked whether a transcript still has its last prompt.
- It lets two processes into one session: the caller must know that no other process uses it.
- A refused request, or the last of its turns, ends it without a SessionEnd hook.
- It reports success when it has stopped itself or a hook has blocked it; see the last warning. If
  a hook told it to stop, there is no sign at all.
- A question leaves a session file behind, and the user's own hooks run for it. A file in its folder
  that the prompt names after an @ is read into it; no other file is.
- Its answers cannot be bound to a schema.
- It does not report the size of a window: a table is used. Only an installed hook can hand off a
  session, and only by what its last calls have left in the session file: a session that was resumed
  or compacted is handed off after its next call at the earliest. It compacts itself at half of its
  window, before our hook runs, unless `model.compressionThreshold` in its settings is higher: only
  a sudden jump reaches a threshold above that.
- It denies a command by the start of its line: `/usr/bin/touch` or `env touch` would pass. So a
  command can be allowed by its start, but not denied.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rekindle.documents.launches.launch_types import (
    AssistantText,
    Brake,
    Capabilities,
    FinalReport,
    LaunchSpec,
    OutputItem,
    ProgramCommand,
    RefusedCall,
    SessionOpened,
    ToolCallFinished,
    ToolCallStarted,
    UsageReport,
    WarningReport,
    WindowUsage,
)
from rekindle.documents.launches.one_shot import (
    OneShotAnswer,
    OneShotQuestion,
)
from rekindle.documents.manifest import Permissions
from rekindle.documents.transcripts.turns import SubagentTranscripts
from rekindle.errors import UsageError
from rekindle.formats import json_codec
from rekindle.harnesses import (
    one_shot_common,
    untrusted_json,
)
from rekindle.harnesses.gemini import gemini_exits, gemini_hooks, gemini_transcript
from rekindle.harnesses.gemini.gemini_policy import (
    TOOLS,
    render_policy,
    render_protection,
)
from rekindle.thresholds.texts import QUOTED_CHARACTERS

NAME = gemini_hooks.NAME
HOOK_FILES = gemini_hooks.HOOK_FILES
hooks = gemini_hooks.hooks
find_hook_obstacle = gemini_hooks.find_hook_obstacle
render_hook_output = gemini_hooks.render_hook_output
read_hook = gemini_hooks.read_hook
read_transcript = gemini_transcript.read_transcript
classify = gemini_exits.classify

CAN = Capabilities(launch_hooks=False, permits_tools=True, denies_paths=True, model=True)
INSTALL = "install it: npm install -g @google/gemini-cli"
POLICY_FILE = "gemini-policy.toml"
PROTECTION_FILE = "gemini-protection.toml"
PASSED_PREFIXES = ("GEMINI_", "GOOGLE_", "CLOUDSDK_", "SANDBOX_", "SEATBELT_PROFILE")
"""Prefixes of the environment variables that configure Gemini CLI."""
BLOCKED_VARIABLES = (
    "GEMINI_CLI",
    "GEMINI_CWD",
    "GEMINI_PLANS_DIR",
    "GEMINI_PROJECT_DIR",
    "GEMINI_SESSION_ID",
)
"""Variables that are set if Rekindle itself was started in a session of the CLI."""
_STOP = {"decision": "block", "reason": "a fresh session continues from here"}

_NOT_OFFERED = re.compile(r'Tool "(\w+)" not found')
_WINDOWS = {"gemini-": 1_048_576, "gemma-4": 256_000}
"""Window sizes in tokens, by prefix of the model's name. The CLI does not report them, but uses
these numbers to decide when to compact.
"""


def command(start: LaunchSpec) -> ProgramCommand:
    """Return the command for a launch; each option and its value are one argument.

    Without a terminal, the CLI denies every call that it would ask its user about. An agent may
    therefore do only what its persona or the user's own settings allow, and never waits for a
    person. A persona's system prompt replaces the CLI's own, because nothing can be added to that
    one. A persona's temperature has no effect.
    """
    if not untrusted_json.to_uuid(start.session):
        raise UsageError(
            f"{start.session[:QUOTED_CHARACTERS]!r} is not a valid session id for Gemini CLI",
            hint="session ids are UUIDs in lower case",
        )
    # The operator trusts the folder by running an agent in it. The CLI does not start in a folder
    # without trust.
    argv = list(start.program or ("gemini",))
    if not start.interactive:
        argv.append("--output-format=stream-json")
    argv.append("--skip-trust")
    argv.append(f"--{'resume' if start.resumes else 'session-id'}={start.session}")
    # Otherwise the CLI would start itself again as a child, and the parent ignores SIGTERM.
    environment = {"GEMINI_CLI_NO_RELAUNCH": "true"}
    files = {}
    if rules := render_policy(start.persona.permissions):
        files[POLICY_FILE] = rules
        argv.append(f"--policy={start.scratch}/{POLICY_FILE}")
    if protection := render_protection(start.protected, start.draft, start.folder):
        files[PROTECTION_FILE] = protection
        argv.append(f"--admin-policy={start.scratch}/{PROTECTION_FILE}")
    if start.persona.model:
        argv.append(f"--model={start.persona.model}")
    if start.persona.system_prompt_file:
        environment["GEMINI_SYSTEM_MD"] = start.persona.system_prompt_file
    if start.interactive and start.prompt:
        prompt = untrusted_json.make_argument(start.prompt, "Gemini CLI")
        argv.append(f"--prompt-interactive={prompt}")
    return ProgramCommand(tuple(argv), environment, files)


def ask(question: OneShotQuestion) -> ProgramCommand:
    """Return the command that asks a question; only tools that read are allowed."""
    tools = one_shot_common.select_granted_tools(question, "Gemini CLI")
    model = (f"--model={question.persona.model}",) if question.persona.model else ()
    argv = (
        *(question.program or ("gemini",)),
        "--output-format=stream-json",
        "--skip-trust",
        # No extension or MCP server has this name, so none is started.
        "--extensions=none",
        "--allowed-mcp-server-names=none",
        f"--policy={question.scratch}/{POLICY_FILE}",
        *model,
    )
    environment = {"GEMINI_CLI_NO_RELAUNCH": "true", **one_shot_common.ONE_SHOT_ENVIRONMENT}
    files = {POLICY_FILE: render_policy(Permissions(allowed_tools=tools))}
    given = one_shot_common.make_files(question)
    if instructions := given.get(one_shot_common.INSTRUCTIONS_FILE):
        files[one_shot_common.INSTRUCTIONS_FILE] = instructions
        environment["GEMINI_SYSTEM_MD"] = f"{question.scratch}/{one_shot_common.INSTRUCTIONS_FILE}"
    return ProgramCommand(argv, environment, files)


def answer(output: Iterable[bytes]) -> OneShotAnswer | None:
    """Return the model's last message, joined from its parts."""
    seen = (one for line in output for one in read_stream(line))
    return one_shot_common.find_answer(seen, joined=True)


def read_stream(line: bytes) -> tuple[OutputItem, ...]:  # noqa: PLR0911 - one return per kind of line
    """Return the items in a line of output; an empty result if the line cannot be read.

    The model's text arrives in parts, as the model sent it.
    """
    record = untrusted_json.parse_object(line)
    match record.get("type"):
        case "init":
            session = untrusted_json.to_uuid(record.get("session_id"))
            model = untrusted_json.to_word(record.get("model"))
            return (SessionOpened(session, model, window=_find_window(model)),) if session else ()
        case "message" if record.get("role") == "assistant":
            text = untrusted_json.to_text(record.get("content"))
            return (AssistantText(text),) if text.strip() else ()
        case "tool_use":
            tool, call = (
                untrusted_json.to_word(record.get("tool_name")),
                untrusted_json.to_word(record.get("tool_id")),
            )
            given = untrusted_json.to_mapping(record.get("parameters"))
            return (ToolCallStarted(tool, call, untrusted_json.describe_call(given), given),)
        case "tool_result":
            call = untrusted_json.to_word(record.get("tool_id"))
            if _is_refused(record):
                return ToolCallFinished(call, refused=True), RefusedCall(call=call)
            return (ToolCallFinished(call),)
        case "error":
            text = untrusted_json.to_text(record.get("message"))
            return (WarningReport(text),) if text.strip() else ()
        case "result":
            error = untrusted_json.to_mapping(record.get("error"))
            return (
                FinalReport(
                    session="",
                    ok=record.get("status") == "success",
                    reason=untrusted_json.to_word(error.get("type")),
                    text=untrusted_json.to_text(error.get("message")),
                    tokens=untrusted_json.to_count(
                        untrusted_json.to_mapping(record.get("stats")).get("total_tokens")
                    ),
                ),
            )
        case _:
            return ()


def _is_refused(record: dict[str, Any]) -> bool:
    """Return whether the CLI refused a tool, by policy or by not offering it to the model.

    A tool that does not exist, which the model made up, does not count as refused.
    """
    error = untrusted_json.to_mapping(record.get("error"))
    named = _NOT_OFFERED.match(untrusted_json.to_text(error.get("message")))
    is_tool = named is not None and (named[1] in TOOLS or named[1].startswith("mcp_"))
    kind = error.get("type")
    return kind == "policy_violation" or (kind == "tool_not_registered" and is_tool)


def usage(tail: bytes, windows: Mapping[str, int]) -> WindowUsage | None:
    """Return how full the window is, from the last turn at a transcript's end."""
    for line in reversed(tail.split(b"\n")):
        # Most lines are large and irrelevant, and searching the bytes is cheaper than decoding
        # them.
        if b'"tokens"' not in line:
            continue
        record = untrusted_json.parse_object(line)
        tokens = untrusted_json.to_count(
            untrusted_json.to_mapping(record.get("tokens")).get("input")
        )
        if record.get("type") == "gemini" and tokens is not None:
            model = untrusted_json.to_word(record.get("model"))
            window = _find_window(model)
            found = WindowUsage(tokens, window, "estimated" if window else "unknown", model)
            return found.within(windows)
    return None


def _find_window(model: str) -> int | None:
    return next((size for name, size in _WINDOWS.items() if model.startswith(name)), None)


def turn(line: bytes) -> UsageReport | None:
    """Return the usage of a message, which the CLI writes again when it knows more."""
    if b'"tokens"' not in line:
        return None
    record = untrusted_json.parse_object(line)
    counted = untrusted_json.to_mapping(record.get("tokens"))
    tokens, total = (
        untrusted_json.to_count(counted.get("input")),
        untrusted_json.to_count(counted.get("total")),
    )
    if record.get("type") != "gemini" or tokens is None:
        return None
    written = max(0, (total or tokens) - tokens)
    model = untrusted_json.to_word(record.get("model"))
    return UsageReport(
        WindowUsage(tokens, None, "unknown", model, written),
        untrusted_json.to_word(record.get("id")),
    )


def brake(*, interactive: bool) -> Brake | None:
    """Return how to stop a session: with the hook before the model's next turn, if installed.

    The hook gets the same input before a sub-agent's turn, but by then the calls of the turn that
    started the sub-agent are not in the transcript yet. In a terminal, this would end the session
    that the user is looking at.
    """
    if interactive:
        return None
    return Brake(
        event=gemini_hooks.BOUNDARY,
        signs=('"type":"gemini"',),
        after='"tokens":{',
        counts=("input",),
        answer=json_codec.encode(_STOP, "what a hook says").decode(),
        settled='"toolCalls":[',
        void='{"$set":{"messages":',
        is_kept=True,
    )


def asides(transcript: str, session: str) -> SubagentTranscripts | None:
    return SubagentTranscripts(f"{transcript.rpartition('/')[0]}/{session}")
