"""The launches of agents that speak the Agent Client Protocol, through the bridge."""

import contextlib
import json
import re
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from loopback.acp_agents import AGENTS, AcpAgent
from loopback.acp_sandbox import AcpRun, AcpSandbox, sandbox_of
from loopback.chat import TITLE
from loopback.model import Model
from loopback.sandbox import Launched
from loopback.script import Fail, Forever, Step, Text, Usage
from recordings.tape import Tape, lines

DONE: Final = Text("all done", Usage(2000, cache_read=1230, output=5))
WORK: Final = "touch working; exec python3 -c '__import__(\"time\").sleep(600)'"
"""A tool call that would take ten minutes."""
PATIENCE_S: Final = 400
"""How long an agent may repeat a refused call before it reports the refusal."""
STORED_BYTES: Final = 10_000_000
"""Larger files are programs that an agent has unpacked."""
_OPAQUE: Final = re.compile(r"\b(ses|msg|prt)_[0-9A-Za-z]{20,}")
_MEASURED: Final = re.compile(
    r"^(?:\[perf\]|\[session/\w+\]|Package extraction took).*\n?", re.MULTILINE
)

Case = Callable[[AcpSandbox, Model], Tape]


class AcpTape(Tape):
    """The output of the bridge; Rekindle saves it as the transcript."""

    def without_traces(self, *places: Any) -> "AcpTape":
        ids: dict[str, str] = {}

        def numbered(found: re.Match[str]) -> str:
            return ids.setdefault(found[0], f"{found[1]}_{len(ids) + 1:026}")

        def renamed(value: Any) -> Any:
            return json.loads(_OPAQUE.sub(numbered, json.dumps(value)))

        clean = super().without_traces(*places)
        # How often an agent tells that it is alive depends on the machine.
        stream = [line for line in clean.stream if line != {"type": "alive"}]
        return AcpTape(
            session=renamed(clean.session),
            resumes=clean.resumes,
            code=clean.code,
            stderr=_MEASURED.sub("", renamed(clean.stderr)),
            stream=renamed(stream),
            hooks=[],
            transcript=[],
        )


@dataclass(frozen=True)
class AcpLaunch:
    sandbox: AcpSandbox
    launched: Launched[AcpRun]
    resumes: str

    def recorded(self) -> AcpTape:
        run = self.launched.wait(PATIENCE_S)
        return AcpTape(
            session=self.resumes or run.session,
            resumes=bool(self.resumes),
            code=run.returncode,
            stderr=run.stderr,
            stream=list(lines(run.stdout)),
            hooks=[],
            transcript=[],
        )


def launch(sandbox: AcpSandbox, prompt: str, resumes: str = "") -> AcpLaunch:
    """Start the bridge as the harness does, with a persona that may run commands."""
    rules = sandbox.home / "rules.json"
    rules.write_text(json.dumps({"allowed": [["Bash", ""]], "folder": str(sandbox.project)}))
    argv = [sys.executable, "-P", "-m", "rekindle.harnesses.acp.acp_bridge", f"--rules={rules}"]
    argv += sandbox.resuming(resumes) if resumes else ()
    launched = sandbox.launch([*argv, "--", *sandbox.argv], prompt)
    return AcpLaunch(sandbox, launched, resumes)


def at_work(sandbox: AcpSandbox, model: Model) -> AcpLaunch:
    """A launch in the middle of a tool, when its output and the agent's own files have the call.

    Kimi stores a turn only some time after its tool has started: killed at once, it loses the turn.
    """
    model.play(sandbox.agent.call(WORK), Forever(DONE))
    launched = launch(sandbox, "hello")

    def is_told() -> bool:
        is_working = (sandbox.project / "working").exists()
        return is_working and '"called"' in launched.launched.out and _is_stored(sandbox)

    sandbox.place.wait_for(is_told)
    return launched


def _is_stored(sandbox: AcpSandbox) -> bool:
    found = (path for path in sandbox.home.rglob("*") if "log" not in path.parts)
    with contextlib.suppress(FileNotFoundError):  # some of them are temporary
        return any(
            b"touch working" in path.read_bytes()
            for path in found
            if path.is_file() and path.stat().st_size < STORED_BYTES
        )
    return False


def killed(sandbox: AcpSandbox, model: Model) -> AcpTape:
    """Kill the bridge, the agent and its tool at once, as a crash of the host does."""
    begun = at_work(sandbox, model)
    begun.launched.signal(signal.SIGKILL)
    for pid in sandbox.place.living():
        sandbox.place.signal(pid, signal.SIGKILL)
    return begun.recorded()


def cases_of(agent: AcpAgent) -> dict[str, Case]:
    """Return the cases that every agent plays."""

    def plays(*steps: Step | Forever) -> Case:
        def play(sandbox: AcpSandbox, model: Model) -> AcpTape:
            model.play(*steps)
            return launch(sandbox, "hello").recorded()

        return play

    def refused(fail: Fail) -> Case:
        def play(sandbox: AcpSandbox, model: Model) -> AcpTape:
            model.play(Forever(fail), to=TITLE)
            return plays(Forever(fail))(sandbox, model)

        return play

    used = Usage(1000, cache_read=200, cache_write=30)
    return {
        "text": plays(DONE),
        "tool": plays(agent.call("echo from the tool", used), DONE),
        "failing-tool": plays(agent.call("echo on the way; exit 3"), DONE),
        "sigterm": sigterm,
        "sigkill": killed,
        "agent-killed": agent_killed,
        "resume": resume,
        "resume-after-sigkill": resume_after_sigkill,
        "resume-missing": resume_missing,
        "limit": refused(agent.api.limit),
        "limit-later": plays(agent.call("echo from the tool"), Forever(agent.api.limit)),
        "overload": refused(agent.api.outage),
        "no-login": refused(agent.api.login),
    }


def sigterm(sandbox: AcpSandbox, model: Model) -> AcpTape:
    begun = at_work(sandbox, model)
    begun.launched.signal(signal.SIGTERM)
    return begun.recorded()


def agent_killed(sandbox: AcpSandbox, model: Model) -> AcpTape:
    """Kill only the agent, with all its processes, in the middle of a tool."""
    begun = at_work(sandbox, model)
    for pid in sandbox.place.living():
        if pid != begun.launched.pid:
            sandbox.place.signal(pid, signal.SIGKILL)
    return begun.recorded()


def resume(sandbox: AcpSandbox, model: Model) -> AcpTape:
    model.play(sandbox.agent.call("echo from the tool"), Forever(DONE))
    session = launch(sandbox, "hello").recorded().session
    return _resumed(sandbox, model, session)


def resume_after_sigkill(sandbox: AcpSandbox, model: Model) -> AcpTape:
    before = killed(sandbox, model)
    return _resumed(sandbox, model, before.session)


def resume_missing(sandbox: AcpSandbox, model: Model) -> AcpTape:
    model.play(Forever(DONE))
    session = launch(sandbox, "hello").recorded().session
    missing = re.sub(r"[1-9a-zA-Z](?=[0-9a-zA-Z]{0,3}$)", "0", session)
    assert missing != session
    return launch(sandbox, "go on", resumes=missing).recorded()


def _resumed(sandbox: AcpSandbox, model: Model, session: str) -> AcpTape:
    asked = len(model.log.main)
    tape = launch(sandbox, "go on", resumes=session).recorded()
    # The model is given the old conversation, and the new prompt once.
    request = model.log.main[asked]
    assert any("hello" in prompt for prompt in request.prompts), request.prompts
    assert [prompt.count("go on") for prompt in request.prompts if "go on" in prompt] == [1]
    assert len(request.results) == 1, "the call of the old conversation has its result"
    return tape


SANDBOXES: Final = {name: sandbox_of(agent) for name, agent in AGENTS.items()}
CASES: Final = {name: cases_of(agent) for name, agent in AGENTS.items()}
KEPT: Final = {
    name: Path(__file__).parent / "acp" / f"{name}-{agent.package.version}"
    for name, agent in AGENTS.items()
}
