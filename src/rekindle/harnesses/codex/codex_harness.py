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

from collections.abc import Iterable, Mapping

from rekindle.documents.launches.launch_types import (
    Brake,
    Capabilities,
    LaunchSpec,
    ProgramCommand,
    UsageReport,
    WindowUsage,
)
from rekindle.documents.transcripts.turns import SubagentTranscripts
from rekindle.errors import UsageError
from rekindle.harnesses.codex import (
    codex_exits,
    codex_hooks,
    codex_one_shot,
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
answer = codex_one_shot.answer
read_stream = codex_stream.read_stream
read_transcript = codex_rollout.read_transcript
refused_calls = codex_refusals.refused_calls
classify = codex_exits.classify

CAN = Capabilities(
    names_sessions=False, permits_tools=True, splits_path=True, writes_temporary=True, model=True
)
INSTALL = "install it: npm install -g @openai/codex"
PASSED_PREFIXES = ("OPENAI_", "AZURE_OPENAI_", "CODEX_")
BLOCKED_VARIABLES = (
    *("CODEX_THREAD_ID", "CODEX_SESSION_ID", "CODEX_TOOL_CALL_ID", "CODEX_CI", "CODEX_VERSION"),
    *("CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_PERMISSION_PROFILE"),
)
"""Variables that are set if Rekindle itself was started in a session of the CLI."""

_TELLING = (b"token", b"context_window", b'"compacted"', b'"turn_context"')
"""Texts that occur in the rollout lines that show how full the window is."""


def command(start: LaunchSpec) -> ProgramCommand:
    """Return the command for a launch; each option and its value are one argument.

    Codex names its sessions itself. It would take anything but an id as a name, and silently open a
    new session if no session has that name, so only ids are passed on. Without a terminal, no
    person can approve a call. A persona's temperature has no effect. Its system prompt applies to
    fresh sessions only, which keep it when they are resumed.
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
        # In a terminal, the user may approve commands, which then run outside the sandbox.
        argv.append(render_setting("shell_environment_policy.set.PATH", start.path))
    if start.persona.model:
        argv.append(render_setting("model", start.persona.model))
    if start.persona.permissions:
        argv += list_permission_settings(start.persona.permissions, start.draft)
    if start.instructions and not start.resumes:
        argv.append(render_instructions(start.instructions))
    if start.resumes:
        argv += ["resume", start.session]
    if not start.interactive:
        argv.append("-")
    elif start.prompt:
        argv += ["--", make_argument(start.prompt, "Codex")]
    return ProgramCommand(tuple(argv))


def usage(tail: bytes, windows: Mapping[str, int]) -> WindowUsage | None:
    """Return how full the window was at the end of a rollout, whose lines may be torn.

    Codex writes the API's token count before a tool starts, and the count with the window's size
    after the tool has ended.
    """
    tokens, window, model = None, None, ""
    for line in reversed(tail.split(b"\n")):
        # Most lines are large and irrelevant, and searching the bytes is cheaper than decoding
        # them.
        if not any(sign in line for sign in _TELLING):
            continue
        record = parse_object(line)
        payload = to_mapping(record.get("payload"))
        info = to_mapping(payload.get("info"))
        if record.get("type") == "compacted" and tokens is None:
            return None  # a compaction has emptied the window since the earlier counts
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

    The stream has only the total, at the end.
    """
    if b'"token_usage_record"' not in line:
        return None
    record = parse_object(line)
    if record.get("type") != "token_usage_record":
        return None
    return next(read_usage(to_mapping(record.get("payload"))), None)


def brake(*, interactive: bool) -> Brake | None:
    """Return how to stop a session: a hook holds it before a tool call, so no call is cut off.

    The usage is written after the tool calls of a turn, so the calls of the turn that fills the
    window still run. In a terminal, this would end the session that the user is looking at.
    """
    if interactive:
        return None
    return Brake(
        event=codex_hooks.BOUNDARY,
        signs=('"type":"token_count"', '"last_token_usage"'),
        after='"last_token_usage":{',
        counts=("total_tokens",),
        window="model_context_window",
        beside=('"type":"task_started"', '"type":"task_complete"', '"type":"turn_aborted"'),
    )


def asides(transcript: str, session: str) -> SubagentTranscripts | None:
    """Return where sub-agents' rollouts are: among all rollouts, with the parent in line 1."""
    return SubagentTranscripts(
        transcript.rpartition("/")[0],
        "rollout-*.jsonl",
        sign=f'"parent_thread_id":"{session}"',
        begins=find_own_start,
    )


def has_prompt(transcript: Iterable[bytes], prompt: str) -> bool:
    """Return whether a rollout still contains a prompt, by the id of the prompt's turn.

    Codex silently continues with whatever a power loss left of a rollout. If only the first line is
    left, it continues as a session without any prompt.
    """
    sign = prompt.encode()
    for line in transcript:
        if sign in line and b'"UserMessage"' in line:
            payload = to_mapping(parse_object(line).get("payload"))
            is_prompt = to_mapping(payload.get("item")).get("type") == "UserMessage"
            if is_prompt and payload.get("turn_id") == prompt:
                return True
    return False
