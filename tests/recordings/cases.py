"""The launches that are kept: each is played by the real Claude Code against the scripted model."""

import json
import os
import signal
import sys
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from loopback.anthropic import (
    BROKEN,
    COMPACTION,
    OVERLOADED,
    RATE_LIMITED,
    SUBAGENT,
    UNAUTHORIZED,
    too_long,
)
from loopback.cli import ClaudeSandbox, Running
from loopback.model import Model
from loopback.script import Cut, Fail, Forever, Hang, Parallel, Step, Text, ToolCall, Usage
from recordings.clis import GIST, asking, of_question, write
from recordings.recording import Recording, lines
from rekindle.documents.launches.launch_types import LaunchSpec
from rekindle.documents.manifest import Permissions, Persona
from rekindle.harnesses.claude_code import claude_harness

RESETS_AT: Final = 4_102_444_800
"""When the limit of the cases ends: with the year 2099."""
DONE: Final = Text("all done", Usage(2000, cache_read=1230, output=5))
TOOLS: Final = Persona(permissions=Permissions(allowed_tools=["Bash", "Agent"]))


class Launch:
    """One launch by our own command, with our own hooks; it is recorded at its end."""

    def __init__(
        self,
        claude: ClaudeSandbox,
        prompt: str,
        *arguments: str,
        resumes: str = "",
        **environment: str,
    ) -> None:
        self.claude = claude
        self._hooked = claude.home / f"hooks-{uuid.uuid4()}"
        program = Path(__file__).with_name("keep.py")
        keep = (sys.executable, "-I", "-S", str(program), str(self._hooked))
        self.start = LaunchSpec(
            session=resumes or str(uuid.uuid4()),
            resumes=bool(resumes),
            hook=keep,
            scratch=str(claude.home),
            persona=TOOLS,
            program=(str(claude.program),),
        )
        command = claude_harness.command(self.start)
        for name, text in command.files.items():
            (claude.home / name).write_text(text)
        self.running: Running = claude.launch(
            [*command.argv, *arguments],
            prompt,
            # Most cases are of a window that stays full; the one of a compaction says otherwise.
            **{"DISABLE_AUTO_COMPACT": "1", **command.environment, **environment},
        )

    def recorded(self) -> Recording:
        run = self.running.wait(180)
        kept = self._hooked.read_text().splitlines() if self._hooked.exists() else []
        hooks = [line.split(" ", 1) for line in kept]
        found = (self.claude.home / ".claude" / "projects").glob(f"*/{self.start.session}.jsonl")
        transcript = next((path.read_text(errors="replace") for path in found), "")
        return Recording(
            session=self.start.session,
            resumes=self.start.resumes,
            code=run.returncode,
            stderr=run.stderr,
            stream=list(lines(run.stdout)),
            hooks=[(event, json.loads(payload)) for event, payload in hooks],
            transcript=list(lines(transcript)),
            aside=[
                each
                for path in self.claude.beside(self.start.session)
                for each in lines(path.read_text())
            ],
        )


def bash(command: str, usage: Usage = Usage()) -> ToolCall:  # noqa: B008 - it is frozen
    return ToolCall("Bash", {"command": command, "description": "as the case says"}, usage)


Case = Callable[[ClaudeSandbox, Model], Recording]
CASES: Final[dict[str, Case]] = {}


def case(function: Case) -> Case:
    CASES[function.__name__.replace("_", "-")] = function
    return function


def plain(
    name: str,
    *steps: Step | Forever,
    arguments: tuple[str, ...] = (),
    environment: Mapping[str, str] | None = None,
) -> None:
    """A case that runs from its prompt to its end."""

    def play(claude: ClaudeSandbox, model: Model) -> Recording:
        model.play(*steps)
        return Launch(claude, "hello", *arguments, **(environment or {})).recorded()

    CASES[name] = play


LIMIT: Final = Fail(
    429,
    "rate_limit_error",
    "over the limit",
    {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": str(RESETS_AT),
        "anthropic-ratelimit-unified-representative-claim": "five_hour",
        "anthropic-ratelimit-unified-overage-status": "rejected",
        "anthropic-ratelimit-unified-overage-disabled-reason": "org_level_disabled",
        "retry-after": "10800",
    },
)
BROKE: Final = Fail(400, "invalid_request_error", "Your credit balance is too low to go on")
# The token is a fake. With a token instead of a key, the CLI reports limits as to a subscriber.
SUBSCRIBED: Final = {"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_OAUTH_TOKEN": "of-the-tests"}

plain("text", DONE)
plain("tool", bash("echo from the tool", Usage(1000, cache_read=200, cache_write=30)), DONE)
plain("failing-tool", bash("echo on the way; exit 3"), DONE)
plain("parallel", Parallel((bash("echo one"), bash("exit 3"))), DONE)
plain("cut-stream", Cut(DONE), DONE)
plain("refused-401", Forever(UNAUTHORIZED))
plain("refused-429", Forever(RATE_LIMITED))
plain("refused-500", Forever(BROKEN))
plain("refused-529", Forever(OVERLOADED))
plain("limit", Forever(LIMIT), environment=SUBSCRIBED)
plain("no-money", Forever(BROKE))
plain("no-key", environment={"ANTHROPIC_API_KEY": ""})
plain("no-network", environment={"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"})
plain("too-long", Forever(too_long()))
plain("too-long-later", bash("true"), Forever(too_long()))
plain("blocked", bash("true", Usage(185_000)), DONE, arguments=("--model=claude-sonnet-4-5",))
plain("wide-window", DONE, arguments=("--model=claude-sonnet-4-5[1m]",))
plain("max-turns", Forever(bash("true")), arguments=("--max-turns=2",))
plain("budget", Forever(bash("true")), arguments=("--max-budget-usd=0.0001",))


@case
def compaction(claude: ClaudeSandbox, model: Model) -> Recording:
    model.play(bash("true"), too_long(), DONE)
    model.play(Text("<summary>the gist</summary>"), to=COMPACTION)
    return Launch(claude, "hello", DISABLE_AUTO_COMPACT="").recorded()


@case
def subagent(claude: ClaudeSandbox, model: Model) -> Recording:
    asked = {"description": "d", "prompt": "look closely", "subagent_type": "general-purpose"}
    model.play(ToolCall("Agent", {**asked, "run_in_background": False}), DONE)
    model.play(bash("echo below", Usage(77_000)), Text("nothing to see"), to=SUBAGENT)
    return Launch(claude, "hello").recorded()


@case
def asked(claude: ClaudeSandbox, model: Model) -> Recording:
    model.play(ToolCall("StructuredOutput", GIST, DONE.usage), DONE)
    question = asking(claude_harness, claude)
    made = claude_harness.ask(question)
    write(made.files, question)
    run = claude.launch(made.argv, "What is the gist?", **made.environment).wait(180)
    return of_question(Recording, run)


@case
def clear(claude: ClaudeSandbox, model: Model) -> Recording:
    return Launch(claude, "/clear").recorded()


def signalled(claude: ClaudeSandbox, model: Model, number: signal.Signals) -> Recording:
    """Ended in the middle of a tool, which ends by itself soon: SIGKILL would leave it behind.

    The transcript is written a moment after the tool is started: the tool waits for its own call.
    """
    fifo = claude.project / "begun"
    os.mkfifo(fifo)
    written = "until grep -qs toolu_ ~/.claude/projects/*/*.jsonl; do :; done"
    model.play(bash(f"{written}; echo > begun; python3 -c '__import__(\"time\").sleep(4)'"), DONE)
    launch = Launch(claude, "hello")
    fifo.read_text()  # waits for the tool
    launch.running.process.send_signal(number)
    return launch.recorded()


@case
def sigint(claude: ClaudeSandbox, model: Model) -> Recording:
    return signalled(claude, model, signal.SIGINT)


@case
def sigint_while_speaking(claude: ClaudeSandbox, model: Model) -> Recording:
    hang = Hang()
    model.play(hang)
    launch = Launch(claude, "hello")
    model.log.wait_for(lambda request: request.step is hang, timeout=120)
    launch.running.process.send_signal(signal.SIGINT)
    return launch.recorded()


@case
def sigterm(claude: ClaudeSandbox, model: Model) -> Recording:
    return signalled(claude, model, signal.SIGTERM)


@case
def sigkill(claude: ClaudeSandbox, model: Model) -> Recording:
    return signalled(claude, model, signal.SIGKILL)


@case
def resume_after_sigkill(claude: ClaudeSandbox, model: Model) -> Recording:
    before = signalled(claude, model, signal.SIGKILL)
    return Launch(claude, "go on", resumes=before.session).recorded()


def begun(claude: ClaudeSandbox, model: Model) -> str:
    """Start a session that can be resumed."""
    model.play(bash("echo from the tool"), DONE, Forever(DONE))
    return Launch(claude, "hello").recorded().session


@case
def resume(claude: ClaudeSandbox, model: Model) -> Recording:
    return Launch(claude, "go on", resumes=begun(claude, model)).recorded()


@case
def resume_missing(claude: ClaudeSandbox, model: Model) -> Recording:
    return Launch(claude, "go on", resumes=str(uuid.uuid4())).recorded()


@case
def resume_corrupt(claude: ClaudeSandbox, model: Model) -> Recording:
    session = begun(claude, model)
    claude.transcript(session).write_bytes(bytes(range(256)) * 8)
    return Launch(claude, "go on", resumes=session).recorded()


@case
def resume_truncated(claude: ClaudeSandbox, model: Model) -> Recording:
    session = begun(claude, model)
    path = claude.transcript(session)
    path.write_bytes(path.read_bytes()[:-700])
    return Launch(claude, "go on", resumes=session).recorded()


@case
def resume_foreign(claude: ClaudeSandbox, model: Model) -> Recording:
    """The transcript of another session under the name of the one that is asked for."""
    path, asked = claude.transcript(begun(claude, model)), str(uuid.uuid4())
    path.rename(path.with_name(f"{asked}.jsonl"))
    return Launch(claude, "go on", resumes=asked).recorded()


@case
def resume_poisoned(claude: ClaudeSandbox, model: Model) -> Recording:
    session = begun(claude, model)
    message = "messages.1.content.0: blocks in the latest assistant message cannot be modified"
    model.play(Forever(Fail(400, "invalid_request_error", message)))
    return Launch(claude, "go on", resumes=session).recorded()


@case
def fork(claude: ClaudeSandbox, model: Model) -> Recording:
    return Launch(claude, "go on", "--fork-session", resumes=begun(claude, model)).recorded()


@case
def braked(claude: ClaudeSandbox, model: Model) -> Recording:
    stop = json.dumps({"continue": False, "stopReason": "to hand over"})
    settings = claude.settings({"PostToolBatch": ["echo", stop]})
    claude_settings = claude.home / ".claude" / "settings.json"
    claude_settings.parent.mkdir(exist_ok=True)
    settings.rename(claude_settings)  # as a person's own, beside ours
    model.play(bash("echo from the tool"), Text("never said"))
    return Launch(claude, "hello").recorded()


@case
def session_id_taken(claude: ClaudeSandbox, model: Model) -> Recording:
    session = begun(claude, model)
    launch = Launch(claude, "again", f"--session-id={session}")
    return launch.recorded()
