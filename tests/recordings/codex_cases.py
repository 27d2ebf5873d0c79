"""The launches of Codex that are kept."""

import signal
from dataclasses import replace
from typing import Any, Final

from loopback import install
from loopback.codex_cli import CodexSandbox
from loopback.model import Model
from loopback.openai import (
    BROKEN,
    HELPER,
    IN_STREAM,
    OUT_OF_QUOTA,
    OVERLOADED,
    RATE_LIMITED,
    TOO_LARGE,
    UNAUTHORIZED,
    UNPAID,
    OpenAI,
    too_long,
    usage_limit,
)
from loopback.sandbox import Sandbox
from loopback.script import Forever, Text, ToolCall, Usage
from recordings.clis import DONE, Cli, begun, cases_of
from recordings.tape import Tape
from rekindle.harnesses.codex import codex_harness

RESETS_AT: Final = 4_102_444_800
"""When the limit of the cases ends: with the year 2099."""
_CONVERSATION: Final = frozenset({"session_meta", "event_msg", "response_item", "compacted"})
_OURS: Final = frozenset({"user", "assistant"})


class CodexTape(Tape):
    @staticmethod
    def bare(record: Any) -> Any:
        if not isinstance(record, dict) or "payload" not in record:
            return record
        payload = record["payload"]
        if record["type"] in {"token_usage_record", "turn_context"}:
            return record
        if record["type"] not in _CONVERSATION or payload.get("role", "user") not in _OURS:
            return {**record, "payload": {"type": payload.get("type")}}
        dropped = {"base_instructions", "replacement_history"}
        return {**record, "payload": {key: payload[key] for key in payload if key not in dropped}}


CODEX: Final = Cli(
    name="codex",
    harness=codex_harness,
    package=install.CODEX,
    dialect=OpenAI,
    sandbox=CodexSandbox,
    tape=CodexTape,
    events=(
        *("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"),
        *("PreCompact", "PostCompact", "Interrupt"),
    ),
    call=lambda command, usage: ToolCall(
        "exec_command", {"cmd": command, "yield_time_ms": 30_000}, usage
    ),
    refusals={
        "refused-401": UNAUTHORIZED,
        "refused-402": UNPAID,
        "refused-413": TOO_LARGE,
        "refused-429": RATE_LIMITED,
        "refused-500": BROKEN,
        "refused-503": OVERLOADED,
        "no-money": OUT_OF_QUOTA,
        "no-money-in-stream": replace(OUT_OF_QUOTA, status=IN_STREAM),
        "limit": usage_limit(RESETS_AT, 10_800),
    },
    too_long=too_long(),
    keyless={"OPENAI_API_KEY": ""},
    shown='"item.started"',
    written='"function_call"',
)
CASES: Final = cases_of(CODEX)


@CASES.add
def sigterm_without_network(sandbox: Sandbox[Any], model: Model) -> Tape:
    assert isinstance(sandbox, CodexSandbox)
    config = (sandbox.settings / "config.toml").read_text()
    sandbox.configure(config.replace(model.url, "http://127.0.0.1:9"))
    launch = CODEX.launch(sandbox, "hello")
    # It waits for the network, however long that takes: only a signal ends it.
    sandbox.place.wait_for(lambda: "waiting for network" in launch.launched.out)
    launch.launched.signal(signal.SIGTERM)
    return launch.recorded()


@CASES.add
def compaction(sandbox: Sandbox[Any], model: Model) -> Tape:
    model.play(CODEX.bash("true", Usage(90_000)), DONE)
    limit = ("-c", "model_auto_compact_token_limit=50000")
    return CODEX.launch(sandbox, "hello", *limit).recorded()


@CASES.add
def subagent(sandbox: Sandbox[Any], model: Model) -> Tape:
    """Record the second form of its sub-agents, whose end can be awaited without a name."""
    asked = {"message": "look closely", "task_name": "look"}
    model.play(
        ToolCall("collaboration__spawn_agent", asked),
        ToolCall("collaboration__wait_agent", {"timeout_ms": 30_000}),
        Forever(DONE),
    )
    model.play(CODEX.bash("echo below", Usage(77_000)), Text("nothing to see"), to=HELPER)
    return CODEX.launch(sandbox, "hello", "--enable=multi_agent_v2").recorded()


@CASES.add
def resume_name(sandbox: Sandbox[Any], model: Model) -> Tape:
    """Record how Codex takes an invalid id for a name, and opens a session for that name."""
    model.play(Forever(DONE))
    return CODEX.launch(sandbox, "go on", resumes="no-such-name").recorded()


@CASES.add
def fork(sandbox: Sandbox[Any], model: Model) -> Tape:
    session = begun(CODEX, sandbox, model)
    return CODEX.launch(sandbox, "go on", "fork", session, "-").recorded()
