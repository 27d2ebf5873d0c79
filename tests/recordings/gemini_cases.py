"""The launches of Gemini CLI that are kept."""

from typing import Any, Final

from loopback import install
from loopback.gemini import (
    BROKEN,
    DEPLETED,
    NO_BILLING,
    OVERLOADED,
    RATE_LIMITED,
    SUBAGENT,
    TOO_LARGE,
    UNAUTHORIZED,
    UNPAID,
    WRONG_KEY,
    Gemini,
    out_of_quota,
    too_long,
)
from loopback.gemini_cli import GeminiSandbox
from loopback.model import Model
from loopback.sandbox import Sandbox
from loopback.script import Forever, ToolCall, Usage
from recordings.clis import DONE, Cli, begun, cases_of
from recordings.tape import Tape
from rekindle.harnesses.gemini import gemini_harness

GEMINI: Final = Cli(
    name="gemini-cli",
    harness=gemini_harness,
    package=install.GEMINI,
    dialect=Gemini,
    sandbox=GeminiSandbox,
    tape=Tape,
    events=(
        *("SessionStart", "BeforeAgent", "PreCompress", "BeforeModel", "AfterModel"),
        *("BeforeTool", "AfterTool", "AfterAgent", "SessionEnd"),
    ),
    call=lambda command, usage: ToolCall("run_shell_command", {"command": command}, usage),
    refusals={
        "refused-400": WRONG_KEY,
        "refused-401": UNAUTHORIZED,
        "refused-402": UNPAID,
        "refused-413": TOO_LARGE,
        "refused-429": RATE_LIMITED,
        "refused-500": BROKEN,
        "refused-503": OVERLOADED,
        "no-billing": NO_BILLING,
        "no-credits": DEPLETED,
        "limit": out_of_quota(10_800),
        "limit-of-a-minute": out_of_quota(30, "GenerateRequestsPerMinutePerProject"),
    },
    too_long=too_long(),
    keyless={"GEMINI_API_KEY": ""},
    shown='"tool_use"',
    written='"type":"gemini"',
)
CASES: Final = cases_of(GEMINI)


@CASES.add
def no_network(sandbox: Sandbox[Any], model: Model) -> Tape:
    address = {"GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:9"}
    return GEMINI.launch(sandbox, "hello", **address).recorded()


@CASES.add
def max_turns(sandbox: Sandbox[Any], model: Model) -> Tape:
    assert isinstance(sandbox, GeminiSandbox)
    sandbox.configure(model={"maxSessionTurns": 2})
    model.play(Forever(GEMINI.bash("true")))
    return GEMINI.launch(sandbox, "hello").recorded()


@CASES.add
def compaction(sandbox: Sandbox[Any], model: Model) -> Tape:
    assert isinstance(sandbox, GeminiSandbox)
    model.play(Forever(DONE))
    session = GEMINI.launch(sandbox, "word " * 3000).recorded().session
    sandbox.configure(model={"compressionThreshold": 0.0001})
    return GEMINI.launch(sandbox, "go on", resumes=session).recorded()


@CASES.add
def subagent(sandbox: Sandbox[Any], model: Model) -> Tape:
    asked = {"agent_name": "generalist", "prompt": "look closely"}
    model.play(ToolCall("invoke_agent", asked), DONE)
    told = {"result": {"response": "nothing to see"}}
    below = (GEMINI.bash("echo below", Usage(77_000)), ToolCall("complete_task", told))
    model.play(*below, to=SUBAGENT)
    return GEMINI.launch(sandbox, "hello").recorded()


@CASES.add
def session_id_taken(sandbox: Sandbox[Any], model: Model) -> Tape:
    session = begun(GEMINI, sandbox, model)
    return GEMINI.launch(sandbox, "again", session=session).recorded()


@CASES.add
def loop(sandbox: Sandbox[Any], model: Model) -> Tape:
    """It ends itself when it does the same again and again, and calls that a success."""
    model.play(Forever(GEMINI.bash("echo again")))
    return GEMINI.launch(sandbox, "hello").recorded()
