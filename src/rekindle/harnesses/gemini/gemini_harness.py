"""Harness for Gemini CLI: its commands, hooks, output and session files.

Checked against version 0.61.0, using the recordings in tests/recordings. Limits of the CLI:

- Hooks cannot be passed to a single launch. They must be in the user's or the project's settings,
  or in files that only root can change. Hooks installed there also report a supervisor's launches.
  A project's hooks run only in a folder that the user has trusted, because `--skip-trust` takes
  effect only after the CLI has read the settings. Without hooks, Rekindle has only the output
  stream, which does not report context-window usage.
- The PreCompress hook runs before every request, even if nothing is compacted, and there is no
  other sign of a compaction. Rekindle therefore does not record compactions or repeat the context
  after them.
- If a SessionStart hook prints anything, the CLI drops the user's prompts when it resumes the
  session. Rekindle therefore uses BeforeAgent to add the context at the first prompt.
- The CLI reports a failed tool call as a success, without an id. Rekindle identifies the call from
  the hook's payload.
- Prompts have no ids, so Rekindle cannot check whether a transcript contains its last prompt.
- The CLI allows two processes in the same session. The caller must make sure that there is only
  one.
- The SessionEnd hook does not run after a refused request or after the last allowed turn.
- The CLI reports success even if it stopped itself or a hook blocked it. Only its last warning
  shows what happened. If a hook told the CLI to stop, there is no warning at all.
- A one-shot question leaves a session file behind and runs the user's own hooks. If the prompt
  contains @ followed by the name of a file in the CLI's folder, the CLI reads that file, but no
  others.
- The CLI cannot enforce a schema for answers.
- The CLI does not report its context-window size, so Rekindle looks it up in a table. Only an
  installed hook can hand off a session. The hook reads recent usage from the session file, so it
  cannot hand off a resumed or compacted session until after the next call. By default, the CLI
  compacts a session when its context window is half full, before the hook runs. A higher handoff
  threshold requires a higher `model.compressionThreshold` in the CLI's settings.
- The CLI denies commands by prefix, so `/usr/bin/touch` or `env touch` would pass. Rekindle can
  therefore allow a command by its prefix, but cannot deny one.
- The gate for `ask` rules is an installed hook. The CLI runs a held call if the hook is disabled,
  or if the shell of the hook is killed. Rekindle therefore checks the settings before each launch,
  and accepts these rules only for an agent in a sandbox.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rekindle.documents.launches.brake import Brake
from rekindle.documents.launches.launch_types import (
    AssistantText,
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
from rekindle.documents.launches.sandbox_needs import GatewayNeeds, SandboxNeeds, StateFolder
from rekindle.documents.manifest import Permissions
from rekindle.documents.transcripts.turns import SubagentTranscripts
from rekindle.errors import UsageError
from rekindle.formats import json_codec
from rekindle.harnesses import (
    ask_gate,
    one_shot_common,
    untrusted_json,
)
from rekindle.harnesses.gemini import gemini_exits, gemini_hooks, gemini_transcript
from rekindle.harnesses.gemini.gemini_policy import (
    TOOLS,
    find_tools,
    render_policy,
    render_protection,
)
from rekindle.thresholds.texts import QUOTED_CHARACTERS

NAME = gemini_hooks.NAME
HOOK_FILES = gemini_hooks.HOOK_FILES
hooks = gemini_hooks.hooks
find_hook_obstacle = gemini_hooks.find_hook_obstacle
find_gate_obstacle = gemini_hooks.find_gate_obstacle
gate_hooks = gemini_hooks.gate_hooks
render_hook_output = gemini_hooks.render_hook_output
read_hook = gemini_hooks.read_hook
read_transcript = gemini_transcript.read_transcript
classify = gemini_exits.classify

CAN = Capabilities(
    launch_hooks=False, permits_tools=True, denies_paths=True, model=True, gate="open"
)
INSTALL = "install it: npm install -g @google/gemini-cli"
POLICY_FILE = "gemini-policy.toml"
PROTECTION_FILE = "gemini-protection.toml"
PASSED_PREFIXES = ("GEMINI_", "GOOGLE_", "CLOUDSDK_", "SANDBOX_", "SEATBELT_PROFILE")
"""Prefixes of the environment variables that configure Gemini CLI."""
BLOCKED_VARIABLES = (
    gemini_hooks.GATE_VARIABLE,
    "GEMINI_CLI",
    "GEMINI_CWD",
    "GEMINI_PLANS_DIR",
    "GEMINI_PROJECT_DIR",
    "GEMINI_SESSION_ID",
)
"""Variables that Gemini CLI or Rekindle sets in its sessions."""
ACCOUNT_VARIABLE = "GEMINI_CLI_HOME"
LOGIN_SWITCHES = (
    *("GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_USE_VERTEXAI", "GEMINI_CLI_USE_COMPUTE_ADC"),
    *("GEMINI_DEFAULT_AUTH_TYPE", "GEMINI_CLI_CUSTOM_HEADERS"),
)
SANDBOX = SandboxNeeds(
    hosts=(
        *("generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com"),
        *("oauth2.googleapis.com", "accounts.google.com"),
    ),
    host_variables=("GOOGLE_GEMINI_BASE_URL",),
    gateway=GatewayNeeds(
        url="https://generativelanguage.googleapis.com",
        url_variable="GOOGLE_GEMINI_BASE_URL",
        key_variables=("GEMINI_API_KEY",),
    ),
    state=StateFolder(
        state=(
            *("oauth_creds.json", "google_accounts.json", "installation_id", "state.json"),
            *("projects.json", "projects.json.*", "*.lock"),
        ),
        folders=("tmp", "history"),
        settings={"settings.json": "{}\n", "trustedFolders.json": "{}\n", ".env": ""},
        settings_folders=("extensions", "policies", "commands", "agents", "skills"),
    ),
)
_STOP = {"decision": "block", "reason": "a fresh session continues from here"}

_NOT_OFFERED = re.compile(r'Tool "(\w+)" not found')
_WINDOWS = {"gemini-": 1_048_576, "gemma-4": 256_000}
"""Window sizes in tokens, by prefix of the model's name. The CLI does not report them, but uses
these numbers to decide when to compact.
"""


def command(start: LaunchSpec) -> ProgramCommand:
    """Return the command for a launch. Each option and its value are one argument.

    Without a terminal, the CLI denies every call that needs the user's approval. An agent can
    therefore do only what its persona or the user's own settings allow, and never waits for a
    person. A persona's system prompt replaces the CLI's own, because the CLI has no way to extend
    it. A persona's temperature has no effect.
    """
    if not untrusted_json.to_uuid(start.session):
        raise UsageError(
            f"{start.session[:QUOTED_CHARACTERS]!r} is not a valid session id for Gemini CLI",
            hint="session ids are UUIDs in lower case",
        )
    # An operator who runs an agent in a folder trusts the folder. The CLI does not start in an
    # untrusted one.
    argv = list(start.program or ("gemini",))
    if not start.interactive:
        argv.append("--output-format=stream-json")
    argv.append("--skip-trust")
    argv.append(f"--{'resume' if start.resumes else 'session-id'}={start.session}")
    # Without this, the CLI starts itself again as a child, and the parent ignores SIGTERM.
    environment = {"GEMINI_CLI_NO_RELAUNCH": "true"}
    files = {}
    if policy := render_policy(start.persona.permissions):
        files[POLICY_FILE] = policy
        argv.append(f"--policy={start.scratch}/{POLICY_FILE}")
    if protection := render_protection(start.protected, start.draft, start.folder):
        files[PROTECTION_FILE] = protection
        argv.append(f"--admin-policy={start.scratch}/{PROTECTION_FILE}")
    if rules := _find_gate_rules(start):
        files[ask_gate.RULES_FILE] = ask_gate.render_rules(rules, start)
        environment[gemini_hooks.GATE_VARIABLE] = f"{start.scratch}/{ask_gate.RULES_FILE}"
    if start.persona.model:
        argv.append(f"--model={start.persona.model}")
    if start.persona.system_prompt_file:
        environment["GEMINI_SYSTEM_MD"] = start.persona.system_prompt_file
    if start.interactive and start.prompt:
        prompt = untrusted_json.make_argument(start.prompt, "Gemini CLI")
        argv.append(f"--prompt-interactive={prompt}")
    return ProgramCommand(tuple(argv), environment, files)


def _find_gate_rules(start: LaunchSpec) -> list[ask_gate.AskRule]:
    """Return the rules for calls that the gate holds, with the CLI's own names of the tools."""
    permissions = start.persona.permissions
    if permissions is None or start.interactive:
        return []
    return [
        ask_gate.AskRule(tool, rule.text)
        for rule in ask_gate.parse_rules(permissions.ask, "Gemini CLI")
        for tool in find_tools(rule.tool)
    ]


def ask(question: OneShotQuestion) -> ProgramCommand:
    """Return the command that asks a question. Only read-only tools are allowed."""
    tools = one_shot_common.select_granted_tools(question, "Gemini CLI")
    model = (f"--model={question.persona.model}",) if question.persona.model else ()
    argv = (
        *(question.program or ("gemini",)),
        "--output-format=stream-json",
        "--skip-trust",
        # No extension or MCP server has this name, so the CLI starts none.
        "--extensions=none",
        "--allowed-mcp-server-names=none",
        f"--policy={question.scratch}/{POLICY_FILE}",
        *model,
    )
    environment = {"GEMINI_CLI_NO_RELAUNCH": "true", **one_shot_common.ONE_SHOT_ENVIRONMENT}
    files = {POLICY_FILE: render_policy(Permissions(allowed_tools=tools))}
    question_files = one_shot_common.make_files(question)
    if instructions := question_files.get(one_shot_common.INSTRUCTIONS_FILE):
        files[one_shot_common.INSTRUCTIONS_FILE] = instructions
        environment["GEMINI_SYSTEM_MD"] = f"{question.scratch}/{one_shot_common.INSTRUCTIONS_FILE}"
    return ProgramCommand(argv, environment, files)


def answer(output: Iterable[bytes]) -> OneShotAnswer | None:
    """Return the model's last message, which arrives in parts."""
    items = (item for line in output for item in read_stream(line))
    return one_shot_common.find_answer(items, joined=True)


def read_stream(line: bytes) -> tuple[OutputItem, ...]:  # noqa: PLR0911 - one return per kind of line
    """Return the items in a line of output, or nothing if the line cannot be read.

    The model's text arrives in parts, just as the model sent it.
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
            arguments = untrusted_json.to_mapping(record.get("parameters"))
            return (
                ToolCallStarted(tool, call, untrusted_json.describe_call(arguments), arguments),
            )
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
    """Return whether the CLI refused a tool, by a policy or by not offering it to the model.

    A tool that the model made up does not count as refused.
    """
    error = untrusted_json.to_mapping(record.get("error"))
    named = _NOT_OFFERED.match(untrusted_json.to_text(error.get("message")))
    is_tool = named is not None and (named[1] in TOOLS or named[1].startswith("mcp_"))
    kind = error.get("type")
    return kind == "policy_violation" or (kind == "tool_not_registered" and is_tool)


def usage(tail: bytes, windows: Mapping[str, int]) -> WindowUsage | None:
    """Return the window usage from the last turn at a transcript's end."""
    for line in reversed(tail.split(b"\n")):
        # Most lines are large and irrelevant, so search the bytes before decoding them.
        if b'"tokens"' not in line:
            continue
        record = untrusted_json.parse_object(line)
        tokens = untrusted_json.to_count(
            untrusted_json.to_mapping(record.get("tokens")).get("input")
        )
        if record.get("type") == "gemini" and tokens is not None:
            model = untrusted_json.to_word(record.get("model"))
            window = _find_window(model)
            window_usage = WindowUsage(tokens, window, "estimated" if window else "unknown", model)
            return window_usage.within(windows)
    return None


def _find_window(model: str) -> int | None:
    return next((size for name, size in _WINDOWS.items() if model.startswith(name)), None)


def turn(line: bytes) -> UsageReport | None:
    """Return a message's usage. The CLI rewrites a message when more information is available."""
    if b'"tokens"' not in line:
        return None
    return gemini_transcript.read_usage(untrusted_json.parse_object(line))


def brake(*, interactive: bool) -> Brake | None:
    """Return how to stop a session: with the hook that runs before a model turn, if installed.

    The hook also runs before a sub-agent's turn, with the same input. However, the calls in the
    turn that started the sub-agent are not in the transcript yet. In a terminal, this would end the
    session that the user is looking at.
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
        told_at="PostToolUse",
        told_as="AfterTool",
        void='{"$set":{"messages":',
        is_kept=True,
    )


def asides(transcript: str, session: str) -> SubagentTranscripts | None:
    return SubagentTranscripts(f"{transcript.rpartition('/')[0]}/{session}")
