"""One cell of the table: a contender, a CLI and a fault on a host of their own."""

import contextlib
import json
import os
import subprocess
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from loopback import install
from loopback.anthropic import Anthropic
from loopback.cli import ClaudeSandbox
from loopback.codex_cli import CodexSandbox
from loopback.model import Model
from loopback.namespace import Namespace
from loopback.openai import OpenAI
from survival import faults, task
from survival.contender import About, Contender
from survival.director import Director
from survival.fault import Fault
from survival.host import Host, small_disk
from survival.refusals import REFUSALS

REQUESTS: Final = 6 * (task.TOTAL + 2)
"""Answered main requests after which a cell ends: six times those of the ideal run."""
RAN_AWAY: Final = "it would not stop"
WALL_SECONDS: Final = 1800.0
QUIET_SECONDS: Final = 5.0
"""Seconds without a request and without a CLI, after which a finished cell is over."""
WATCHED_SECONDS: Final = 25.0
"""Seconds for which a stopped tool is watched, longer than the interval of any daemon."""
MOST_INTERVENTIONS: Final = 3
_POLL_SECONDS: Final = 0.05
_MESSAGE_CHARACTERS: Final = 40_000
"""The end of what a tool printed, which is kept."""
SUBSCRIPTION: Final = "sk-ant-oat01-of-the-benchmark"


@dataclass
class Result:
    """The measures of one cell."""

    contender: str
    cli: str
    fault: str
    version: str
    cli_version: str = ""
    evidence: str = ""
    done: int = 0
    lost: int = 0
    twice: int = 0
    requests: int = 0
    side_requests: int = 0
    calls: int = 0
    tokens: int = 0
    fresh_tokens: int = 0
    seconds: float = 0.0
    resumed_after: float | None = None
    """Seconds from the moment when the work could continue to the next finished item."""
    after_stop: int = 0
    """Requests after the operator has stopped the tool."""
    interventions: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    """Command lines of processes that were left over."""
    ended: str = ""
    messages: str = ""
    timeline: list[tuple[float, int]] = field(default_factory=list)
    """Seconds, and items in the ledger."""
    strikes: list[tuple[float, str]] = field(default_factory=list)
    """Seconds, and the fault that happened then."""


class Cell:
    def __init__(self, contender: Contender, fault: str, folder: Path) -> None:
        about = contender.about
        self.contender, self.folder = contender, folder
        self.result = Result(about.name, about.cli, fault, *versions(about))
        self._fault_name = fault
        self._fault: Fault
        self._director: Director
        self._host: Host
        self._stopped_at: int | None = None

    def run(self) -> Result:
        """Play the cell to its end, and return its measures."""
        self.folder.mkdir(parents=True)
        about = self.contender.about
        disk = self.folder / "disk"
        # In the project, because a sandbox may forbid the model's calls to write elsewhere.
        signals = disk / "project/.benchmark"
        self._fault = faults.make(self._fault_name, signals, REFUSALS[about.cli])
        self._fault.word = about.word
        with contextlib.ExitStack() as stack:
            stack.enter_context(small_disk(disk))
            network = stack.enter_context(Namespace())
            dialect = Anthropic() if about.cli == "claude-code" else OpenAI()
            log = self.folder / "requests.jsonl"
            self._director = Director(dialect, self._fault, self.contender, log=log)
            model = stack.enter_context(Model(self._director, network.listener))
            self._host = _make_host(about.cli, model, network, disk, self.folder)
            stack.callback(self._close)
            stack.callback(self._keep, disk)
            self._play()
            self._measure()
        (self.folder / "result.json").write_text(json.dumps(asdict(self.result), indent=1) + "\n")
        return self.result

    # The course of a cell

    def _play(self) -> None:
        host = self._host
        task.prepare(host.project, self._fault.total)
        self._fault.prepare()
        # Otherwise the CLIs would find the repository above, and read its instructions.
        host.run(["git", "init", "-q"])
        (host.project / ".gitignore").write_text(".benchmark/\n")
        self.contender.prepare(host)
        service = self.contender.service(host)
        began = self._began = time.monotonic()
        if service:
            host.install(service)
        self.contender.start(host)
        while not self.result.ended:
            time.sleep(_POLL_SECONDS)
            host.tend()
            self._look(time.monotonic() - began)
            if self._fault.is_due():
                self._fault.apply(self)
            self.result.ended = self._end() or ""
        self.result.seconds = round(time.monotonic() - began, 1)

    def _look(self, now: float) -> None:
        """Note the progress."""
        items = task.begun(self._host.project)
        timeline = self.result.timeline
        if not timeline or timeline[-1][1] != items:
            timeline.append((round(now, 2), items))

    def _end(self) -> str | None:
        """Return why the cell is over, or None; a person may have to act first."""
        quiet = time.monotonic() - self._director.last
        if self._stopped_at is not None:
            return "watched after the stop" if quiet > WATCHED_SECONDS else None
        if self._director.answered >= REQUESTS:
            return RAN_AWAY
        if time.monotonic() - self._began > WALL_SECONDS:
            return f"{WALL_SECONDS:g} s"
        is_idle = quiet > QUIET_SECONDS and not self._busy()
        if is_idle and task.count(self._host.project).done >= self._fault.total:
            return "the work is done"
        if self.contender.service(self._host):  # it may start something
            is_idle = is_idle and quiet > WATCHED_SECONDS
        if is_idle or quiet > self._fault.patience:
            return self._intervene("it is not running" if is_idle else "nothing happens")
        return None

    def _busy(self) -> bool:
        """Return whether anything runs that could continue the work."""
        return bool(self._host.clis()) or self.contender.is_running(self._host)

    def _intervene(self, why: str) -> str | None:
        if not self._fault.has_person:
            return why
        if self._fault.is_idle(self._host):
            self._director.last = time.monotonic()
            return None
        if not self._fault.can_continue():
            return None
        if len(self.result.interventions) >= MOST_INTERVENTIONS:
            return "a person gives up"
        self.result.interventions.append(why)
        self._fault.help(self._host)
        self.contender.revive(self._host)
        self._director.last = time.monotonic()
        return None

    def _measure(self) -> None:
        result, director = self.result, self._director
        if self._stopped_at is not None:
            result.after_stop = director.requests - self._stopped_at
        result.messages = self.contender.messages(self._host)[-_MESSAGE_CHARACTERS:]
        self.contender.shut_down(self._host)
        self._host.stop_service()
        if result.ended != RAN_AWAY:
            result.left = [" ".join(argv)[:200] for argv in self._host.living().values()]
        counted = task.count(self._host.project)
        result.done, result.lost, result.twice = counted.done, counted.lost, counted.twice
        result.requests, result.side_requests = director.requests, director.side
        result.calls = director.calls
        result.tokens, result.fresh_tokens = director.meter.total, director.meter.input
        result.evidence = self._fault.evidence
        if self._fault.at and self._fault_name != "operator-stop":
            at, wanted = self._fault.ended_at - self._began, self._fault.next_item
            times = [seconds for seconds, items in result.timeline if items >= wanted]
            result.resumed_after = round(max(times[0] - at, 0.0), 1) if times else None
        result.strikes = [(round(at - self._began, 2), what) for at, what in self._fault.strikes]

    def _keep(self, disk: Path) -> None:
        """Keep the project and the home for inspection; the disk is in memory."""
        kept = self.folder / "kept"
        subprocess.run(["cp", "-a", str(disk), str(kept)], check=False, capture_output=True)
        (kept / "ballast").unlink(missing_ok=True)

    def _close(self) -> None:
        self._host.close()

    # What a fault can do on the host

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)

    def stop_as_operator(self) -> None:
        self.contender.stop_as_operator(self._host)
        self._stopped_at = self._director.requests
        self._director.last = time.monotonic()

    def truncate_state(self) -> list[str]:
        found = [path for path in self.contender.state_files(self._host) if path.exists()]
        for path in found:
            os.truncate(path, path.stat().st_size // 2)
        return [path.name for path in found]


def _make_host(cli: str, model: Model, network: Namespace, disk: Path, folder: Path) -> Host:
    if cli == "claude-code":
        claude = ClaudeSandbox(
            install.program(install.CLAUDE), model=model, network=network, root=disk
        )
        environment = claude.environment()
        # As a subscriber, who is told about limits; the token is a fake.
        del environment["ANTHROPIC_API_KEY"], environment["CLAUDE_CODE_MAX_RETRIES"]
        environment["CLAUDE_CODE_OAUTH_TOKEN"] = SUBSCRIPTION
        project = claude.project
    else:
        program = install.program(install.CODEX)
        codex = CodexSandbox(program, model=model, place=None, root=disk)  # type: ignore[arg-type]
        text = (codex.settings / "config.toml").read_text()
        kept = [line for line in text.splitlines() if "max_retries" not in line]
        codex.configure("\n".join(kept) + "\n")
        environment, project = codex.environment(), codex.project
    environment |= {"LC_ALL": "C.UTF-8", "REKINDLE_TRUST": ""}
    return Host(folder, network, project, environment)


def versions(about: About) -> tuple[str, str]:
    """Return the versions of the tool and of its CLI."""
    package = install.CLAUDE if about.cli == "claude-code" else install.CODEX
    return about.version, package.version


def has_result(folder: Path, about: About) -> bool:
    """Return whether a folder has a result of the same versions."""
    path = folder / "result.json"
    if not path.exists():
        return False
    stored = json.loads(path.read_text())
    return (stored["version"], stored.get("cli_version")) == versions(about)
