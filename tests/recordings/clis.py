"""The CLIs whose launches are recorded beside Claude Code's, and the cases that all of them play.

A case is played by the real program against the scripted model, with a hook at every event that the
program has. Cases of only one CLI have a file of their own.
"""

import json
import signal
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from loopback.install import Package
from loopback.model import Dialect, Model
from loopback.sandbox import Folders, Launched, Run, Sandbox, hooked, keeping
from loopback.script import Cut, Fail, Forever, Hang, Parallel, Step, Text, ToolCall, Usage
from recordings.tape import Tape, folder, lines
from rekindle.documents.launches.one_shot import OneShotQuestion
from rekindle.ports import Harness

DONE: Final = Text("all done", Usage(2000, cache_read=1230, output=5))
WORK: Final = "touch working; exec python3 -c '__import__(\"time\").sleep(600)'"
"""A tool call that would take ten minutes."""

GIST: Final = {"gist": "it works"}
SCHEMA: Final = {
    "type": "object",
    "properties": {"gist": {"type": "string"}},
    "required": ["gist"],
    "additionalProperties": False,
}

Case = Callable[[Sandbox[Any], Model], Tape]


class Cases(dict[str, Case]):
    def add(self, function: Case) -> Case:
        """Keep a function as the case of its name."""
        self[function.__name__.replace("_", "-")] = function
        return function


@dataclass(frozen=True)
class Cli:
    """The facts about a CLI that the cases need."""

    name: str
    harness: Harness
    package: Package
    dialect: type[Dialect]
    sandbox: type[Sandbox[Any]]
    tape: type[Tape]
    events: tuple[str, ...]
    call: Callable[[str, Usage], ToolCall]
    """The call by which its model runs a command."""
    refusals: Mapping[str, Fail]
    """The errors of its API, by the name that their case has."""
    too_long: Fail
    keyless: Mapping[str, str]
    shown: str
    """The text in the stream once a tool has started."""
    written: str
    """The text in a transcript by then."""

    @property
    def kept(self) -> Path:
        return folder(self.name, self.package)

    def bash(self, command: str, usage: Usage = Usage()) -> ToolCall:  # noqa: B008 - it is frozen
        return self.call(command, usage)

    def launch(
        self,
        sandbox: Sandbox[Any],
        prompt: str,
        *arguments: str,
        session: str = "",
        resumes: str = "",
        **environment: str,
    ) -> "Launch":
        session = resumes or session or str(uuid.uuid4())
        how = sandbox.resuming(session) if resumes else sandbox.beginning(session)
        # All events are hooked once; what a launch adds to the file is its own.
        kept = sandbox.home / "hooked"
        if not kept.exists():
            keeping(sandbox, self.events)
        kept.write_text("")
        launched = sandbox.start(prompt, *arguments, *how, **environment)
        return Launch(self, sandbox, launched, resumes)


@dataclass(frozen=True)
class Launch:
    cli: Cli
    sandbox: Sandbox[Any]
    launched: Launched[Any]
    resumes: str

    def recorded(self) -> Tape:
        run = self.launched.wait(180)
        session = self.resumes or run.session
        return self.cli.tape(
            session=session,
            resumes=bool(self.resumes),
            code=run.returncode,
            stderr=run.stderr,
            stream=list(lines(run.stdout)),
            hooks=list(hooked(self.sandbox.home / "hooked")),
            transcript=list(lines(_transcript(self.sandbox, session))),
            aside=[
                each for path in self.sandbox.beside(session) for each in lines(path.read_text())
            ],
        )


def _transcript(sandbox: Sandbox[Any], session: str) -> str:
    try:
        return sandbox.transcript(session).read_text(errors="replace")
    except ValueError:  # there is none, as where a session was never opened
        return ""


def cases_of(cli: Cli) -> Cases:
    """The cases that every CLI plays."""
    cases = Cases()
    _add_plain(cli, cases)
    _add_signals(cli, cases)
    _add_resumes(cli, cases)

    @cases.add
    def asked(sandbox: Sandbox[Any], model: Model) -> Tape:
        model.play(Text(json.dumps(GIST), DONE.usage))
        question = asking(cli.harness, sandbox)
        made = cli.harness.ask(question)
        write(made.files, question)
        run = sandbox.launch(made.argv, "What is the gist?", **made.environment).wait(180)
        return of_question(cli.tape, run)

    return cases


def _add_plain(cli: Cli, cases: Cases) -> None:
    def plain(name: str, *steps: Step | Forever, **environment: str) -> None:
        def play(sandbox: Sandbox[Any], model: Model) -> Tape:
            model.play(*steps)
            return cli.launch(sandbox, "hello", **environment).recorded()

        cases[name] = play

    plain("text", DONE)
    used = Usage(1000, cache_read=200, cache_write=30)
    plain("tool", cli.bash("echo from the tool", used), DONE)
    plain("failing-tool", cli.bash("echo on the way; exit 3"), DONE)
    plain("parallel", Parallel((cli.bash("echo one"), cli.bash("exit 3"))), DONE)
    plain("cut-stream", Forever(Cut(DONE)))
    for name, fail in cli.refusals.items():
        plain(name, Forever(fail))
    plain("too-long", Forever(cli.too_long))
    plain("too-long-later", cli.bash("true"), Forever(cli.too_long))
    plain("no-key", **cli.keyless)


def _add_signals(cli: Cli, cases: Cases) -> None:
    @cases.add
    def sigint(sandbox: Sandbox[Any], model: Model) -> Tape:
        return signalled(cli, sandbox, model, signal.SIGINT)

    @cases.add
    def sigterm(sandbox: Sandbox[Any], model: Model) -> Tape:
        return signalled(cli, sandbox, model, signal.SIGTERM)

    @cases.add
    def sigkill(sandbox: Sandbox[Any], model: Model) -> Tape:
        return signalled(cli, sandbox, model, signal.SIGKILL)

    @cases.add
    def sigint_while_speaking(sandbox: Sandbox[Any], model: Model) -> Tape:
        hang = Hang()
        model.play(hang)
        launch = cli.launch(sandbox, "hello")
        model.log.wait_for(lambda request: request.step is hang, timeout=120)
        launch.launched.signal(signal.SIGINT)
        return launch.recorded()


def _add_resumes(cli: Cli, cases: Cases) -> None:
    @cases.add
    def resume_after_sigkill(sandbox: Sandbox[Any], model: Model) -> Tape:
        before = signalled(cli, sandbox, model, signal.SIGKILL)
        return cli.launch(sandbox, "go on", resumes=before.session).recorded()

    @cases.add
    def resume(sandbox: Sandbox[Any], model: Model) -> Tape:
        return cli.launch(sandbox, "go on", resumes=begun(cli, sandbox, model)).recorded()

    @cases.add
    def resume_after_refusal(sandbox: Sandbox[Any], model: Model) -> Tape:
        """The first prompt of the session was never answered."""
        model.play(Forever(next(iter(cli.refusals.values()))))
        session = cli.launch(sandbox, "hello").recorded().session
        model.play(Forever(DONE))
        return cli.launch(sandbox, "go on", resumes=session).recorded()

    @cases.add
    def resume_in_use(sandbox: Sandbox[Any], model: Model) -> Tape:
        """The process that began the session is still at work in it."""
        first = at_work(cli, sandbox, model)
        session = sandbox.kind(0, first.launched.out, "").session
        return cli.launch(sandbox, "go on", resumes=session).recorded()

    @cases.add
    def resume_missing(sandbox: Sandbox[Any], model: Model) -> Tape:
        return cli.launch(sandbox, "go on", resumes=str(uuid.uuid4())).recorded()

    @cases.add
    def resume_corrupt(sandbox: Sandbox[Any], model: Model) -> Tape:
        session = begun(cli, sandbox, model)
        sandbox.transcript(session).write_bytes(bytes(range(256)) * 8)
        return cli.launch(sandbox, "go on", resumes=session).recorded()

    @cases.add
    def resume_truncated(sandbox: Sandbox[Any], model: Model) -> Tape:
        session = begun(cli, sandbox, model)
        path = sandbox.transcript(session)
        path.write_bytes(path.read_bytes()[:-700])
        return cli.launch(sandbox, "go on", resumes=session).recorded()

    @cases.add
    def resume_foreign(sandbox: Sandbox[Any], model: Model) -> Tape:
        """The transcript of another session under the name of the one that is asked for."""
        session, asked = begun(cli, sandbox, model), str(uuid.uuid4())
        path = sandbox.transcript(session)
        name = path.name.replace(session, asked).replace(session[:8], asked[:8])
        path.rename(path.with_name(name))
        return cli.launch(sandbox, "go on", resumes=asked).recorded()


def asking(harness: Harness, sandbox: Folders) -> OneShotQuestion:
    """The question of the recordings."""
    assert harness.HOOK_FILES is not None
    return OneShotQuestion(
        program=(str(sandbox.bin / harness.HOOK_FILES.program),),
        scratch=str(sandbox.home),
        instructions="Be brief.",
        schema=json.dumps(SCHEMA),
    )


def write(files: Mapping[str, str], question: OneShotQuestion) -> None:
    for name, text in files.items():
        (Path(question.scratch) / name).write_text(text)


T = TypeVar("T", bound=Tape)


def of_question(tape: type[T], run: Run) -> T:
    """Return the output, which is everything: a question has no session."""
    return tape(
        session="",
        resumes=False,
        code=run.returncode,
        stderr=run.stderr,
        stream=list(lines(run.stdout)),
        hooks=[],
        transcript=[],
        asked=True,
    )


def begun(cli: Cli, sandbox: Sandbox[Any], model: Model) -> str:
    """Start a session that can be resumed."""
    model.play(cli.bash("echo from the tool"), DONE, Forever(DONE))
    return cli.launch(sandbox, "hello").recorded().session


def at_work(cli: Cli, sandbox: Sandbox[Any], model: Model) -> Launch:
    """A launch in the middle of a tool, when the stream and the transcript tell of the call."""
    model.play(cli.bash(WORK), Forever(DONE))
    launch = cli.launch(sandbox, "hello")

    def is_told() -> bool:
        out = launch.launched.out
        session = sandbox.kind(0, out, "").session
        written = cli.written in _transcript(sandbox, session)
        return (sandbox.project / "working").exists() and cli.shown in out and written

    sandbox.place.wait_for(is_told)
    return launch


def signalled(cli: Cli, sandbox: Sandbox[Any], model: Model, number: signal.Signals) -> Tape:
    """Ended in the middle of a tool."""
    launch = at_work(cli, sandbox, model)
    launch.launched.signal(number)
    return launch.recorded()
