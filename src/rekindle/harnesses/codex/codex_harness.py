"""Harness for Codex: its commands, hooks, output and rollouts.

Checked against version 0.166.0, using the recordings in tests/recordings.

npm installs a wrapper on the PATH, which forwards TERM, INT and HUP. If the wrapper is killed, the
real program keeps running in the wrapper's process group. Rekindle stops that group before it
starts anything else, so it can safely use the first `codex` on the PATH. Limits of the CLI:

- Codex chooses the id of a new session. Rekindle reads the id from the program's output.
- The sandbox permits or denies whole tools, so Rekindle refuses a rule for only part of a tool.
- There is no setting that disables all of a user's MCP servers, so a hook refuses their tools.
- Codex runs only hooks that the user has trusted. Rekindle therefore passes each hook together with
  its hash.
- No hook can stop Codex between two turns. Instead, a hook holds the next tool call until Rekindle
  stops the program. If Codex is interrupted, it exits with code 1 and no message.
- Without a network, Codex waits forever and reports the problem only once. Rekindle detects the
  silence.
- Codex silently continues with a truncated rollout, so Rekindle first checks that the rollout
  contains the last prompt.
- No hook runs for text that the agent types into a running command. A gate for `ask` rules holds
  only the commands that the agent starts. Codex runs a held call if the shell of its hook is
  killed, so Rekindle accepts these rules only for an agent in a sandbox.
- In a one-shot question, Codex offers the model two tools. One asks the user, who is absent. The
  other patches files, but the sandbox refuses that. Codex also starts the user's MCP servers, and
  the model can search for their tools. It refuses a call unless the user has approved the tool or
  the tool claims to be read-only. It also sends the AGENTS.md file next to the settings.
"""

from collections.abc import Iterable, Mapping

from rekindle.documents.launches.brake import Brake
from rekindle.documents.launches.launch_types import (
    Capabilities,
    LaunchSpec,
    ProgramCommand,
    UsageReport,
    WindowUsage,
)
from rekindle.documents.launches.sandbox_needs import GatewayNeeds, SandboxNeeds, StateFolder
from rekindle.documents.transcripts.turns import SubagentTranscripts
from rekindle.errors import UsageError
from rekindle.harnesses.codex import (
    codex_exits,
    codex_hooks,
    codex_one_shot,
    codex_quota,
    codex_refusals,
    codex_rollout,
    codex_stream,
)
from rekindle.harnesses.codex.codex_permissions import list_permission_settings
from rekindle.harnesses.codex.codex_rollout import (
    find_own_start,
    read_usage,
)
from rekindle.harnesses.codex.codex_settings import (
    render_instructions,
    render_setting,
)
from rekindle.harnesses.untrusted_json import (
    make_argument,
    parse_object,
    to_count,
    to_mapping,
    to_uuid,
    to_word,
)
from rekindle.thresholds.texts import QUOTED_CHARACTERS

NAME = codex_hooks.NAME
HOOK_FILES = codex_hooks.HOOK_FILES
hooks = codex_hooks.hooks
find_hook_obstacle = codex_hooks.find_hook_obstacle
render_hook_output = codex_hooks.render_hook_output
read_hook = codex_hooks.read_hook
ask = codex_one_shot.ask
quota = codex_quota.quota
answer = codex_one_shot.answer
read_stream = codex_stream.read_stream
read_transcript = codex_rollout.read_transcript
refused_calls = codex_refusals.refused_calls
classify = codex_exits.classify

CAN = Capabilities(
    carries_sessions=True,
    names_sessions=False,
    permits_tools=True,
    splits_path=True,
    writes_temporary=True,
    model=True,
    gate="open",
)
INSTALL = "install it: npm install -g @openai/codex"
PASSED_PREFIXES = ("OPENAI_", "AZURE_OPENAI_", "CODEX_")
BLOCKED_VARIABLES = (
    *("CODEX_THREAD_ID", "CODEX_SESSION_ID", "CODEX_TOOL_CALL_ID", "CODEX_CI", "CODEX_VERSION"),
    *("CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_PERMISSION_PROFILE"),
)
"""Variables that Codex sets in its sessions."""
ACCOUNT_VARIABLE = "CODEX_HOME"
LOGIN_SWITCHES = ("OPENAI_FEDERATION_RULE_ID",)
SANDBOX = SandboxNeeds(
    hosts=("api.openai.com", "chatgpt.com", "auth.openai.com"),
    host_variables=("OPENAI_BASE_URL",),
    gateway=GatewayNeeds(
        url="https://api.openai.com/v1",
        url_variable="OPENAI_BASE_URL",
        key_variables=("OPENAI_API_KEY",),
        # Codex ignores the variable. For its own provider, it would first try WebSockets for ten
        # seconds.
        arguments=(
            render_setting("model_provider", "rekindle"),
            render_setting("model_providers.rekindle.name", "rekindle"),
            render_setting("model_providers.rekindle.base_url", "{url}"),
            render_setting("model_providers.rekindle.env_key", "OPENAI_API_KEY"),
            render_setting("model_providers.rekindle.wire_api", "responses"),
        ),
    ),
    state=StateFolder(
        state=(
            *("auth.json", "history.jsonl", "installation_id", "version.json", ".*_migration"),
            *("models_cache.json", "*.sqlite", "*.sqlite-*", "*.lock", "archived_sessions"),
            *("log", "memories"),
        ),
        folders=("sessions", "shell_snapshots", "thread-writer-locks", "tmp", ".tmp"),
        settings={"config.toml": "", "hooks.json": "{}\n", ".env": ""},
        settings_folders=("rules", "plugins", "agents", "prompts", "skills"),
    ),
)

_TELLING = (b"token", b"context_window", b'"compacted"', b'"turn_context"')
"""Texts in the rollout lines that report the window usage."""


def command(start: LaunchSpec) -> ProgramCommand:
    """Return the command for a launch. Each option and its value are one argument.

    Only valid session ids are passed on. Codex would treat any other text as a name, and silently
    open a new session if no session has that name. Without a terminal, no person can approve a
    call. A persona's temperature has no effect. Only fresh sessions get its system prompt, and keep
    it when they are resumed.
    """
    if start.resumes and not to_uuid(start.session):
        raise UsageError(
            f"{start.session[:QUOTED_CHARACTERS]!r} is not a valid session id for Codex",
            hint="session ids are UUIDs in lower case",
        )
    argv = list(start.program or ("codex",))
    if not start.interactive:
        argv += [
            "exec",
            "--json",
            "--skip-git-repo-check",
            render_setting("approval_policy", "never"),
        ]
    argv += codex_hooks.list_hook_settings(start)
    if start.path and not start.interactive:
        # In a terminal, the user may approve commands, which then run outside of the sandbox.
        argv.append(render_setting("shell_environment_policy.set.PATH", start.path))
    if start.persona.model:
        argv.append(render_setting("model", start.persona.model))
    if start.persona.permissions:
        argv += list_permission_settings(
            start.persona.permissions, start.draft, is_sandboxed=start.is_sandboxed
        )
    if start.instructions and not start.resumes:
        argv.append(render_instructions(start.instructions))
    if start.resumes:
        argv += ["resume", start.session]
    if not start.interactive:
        argv.append("-")
    elif start.prompt:
        argv += ["--", make_argument(start.prompt, "Codex")]
    return ProgramCommand(tuple(argv), files=codex_hooks.make_gate_files(start))


def usage(tail: bytes, windows: Mapping[str, int]) -> WindowUsage | None:
    """Return the window usage at the end of a rollout, whose lines may be incomplete.

    Codex writes the API's token count before a tool starts, and the count with the window's size
    after the tool has finished.
    """
    tokens, window, model = None, None, ""
    for line in reversed(tail.split(b"\n")):
        # Most lines are large and irrelevant, so search the bytes before decoding them.
        if not any(sign in line for sign in _TELLING):
            continue
        record = parse_object(line)
        payload = to_mapping(record.get("payload"))
        info = to_mapping(payload.get("info"))
        if record.get("type") == "compacted" and tokens is None:
            return None  # Earlier counts are outdated, because a compaction has emptied the window.
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
    """Return the API's token count for one answer, without the running totals next to it.

    The stream reports only the total, at the end.
    """
    if b'"token_usage_record"' not in line:
        return None
    record = parse_object(line)
    if record.get("type") != "token_usage_record":
        return None
    return next(read_usage(to_mapping(record.get("payload"))), None)


def brake(*, interactive: bool) -> Brake | None:
    """Return how to stop a session: a hook holds it before a tool call, so no call is cut off.

    The usage is written after a turn's tool calls, so the calls in the turn that fills the window
    still run. In a terminal, this would end the session that the user is looking at.
    """
    if interactive:
        return None
    return Brake(
        event=codex_hooks.BOUNDARY,
        signs=('"type":"token_count"', '"last_token_usage"'),
        after='"last_token_usage":{',
        counts=("total_tokens",),
        window="model_context_window",
        told_at="PostToolUse",
        told_as="PostToolUse",
        beside=('"type":"task_started"', '"type":"task_complete"', '"type":"turn_aborted"'),
    )


def asides(transcript: str, session: str) -> SubagentTranscripts | None:
    """Return the location of sub-agents' rollouts, whose first line names their parent."""
    return SubagentTranscripts(
        transcript.rpartition("/")[0],
        "rollout-*.jsonl",
        sign=f'"parent_thread_id":"{session}"',
        begins=find_own_start,
    )


def has_prompt(transcript: Iterable[bytes], prompt: str) -> bool:
    """Return whether a rollout contains a prompt, by the id of the prompt's turn.

    After a power loss, Codex silently continues with the rest of the rollout. If only the first
    line is left, it continues with a session without prompts.
    """
    sign = prompt.encode()
    for line in transcript:
        if sign in line and b'"UserMessage"' in line:
            payload = to_mapping(parse_object(line).get("payload"))
            is_prompt = to_mapping(payload.get("item")).get("type") == "UserMessage"
            if is_prompt and payload.get("turn_id") == prompt:
                return True
    return False
