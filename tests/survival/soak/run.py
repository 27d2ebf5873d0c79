"""One run of the soak: Rekindle with one CLI, for as many cycles as are asked for."""

import contextlib
import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

import rekindle
from loopback.model import Model
from loopback.namespace import Namespace
from rekindle.system.files import user_folder
from survival import task
from survival.contenders.rekindle import AGENT, Rekindle
from survival.director import Director
from survival.fault import Asked
from survival.host import Host, small_disk
from survival.player import Finish, Look, Move, Relay, Write
from survival.soak import measure, schedule, work
from survival.soak.cycles import Cycle, Cycles, adjust_processor
from survival.soak.hosts import PACKAGES, make_dialect, make_host, make_refusals
from survival.soak.strikes import Strikes

PATIENCE_SECONDS: Final = 300.0
"""Seconds without a request after which a person would have to act, longer than any limit."""
QUIET_SECONDS: Final = 3.0
WALL_SECONDS_A_CYCLE: Final = 120.0
SAMPLE_SECONDS: Final = 0.25
_POLL_SECONDS: Final = 0.05
_DISK_MEGABYTES: Final = 2048
_COMPRESSED: Final = """\
# A cycle of half an hour takes a few seconds here, so pauses are shorter too.
runtime:
  restart: {cooldown: 0.1s, max_cooldown: 2s, window: 5s, healthy_after: 3s}
  watch: {every: 5s}
  brief: {at: never}
"""


@dataclass
class Result:
    """The measures of one run."""

    cli: str
    cli_version: str
    seed: int
    version: str
    ended: str = ""
    total: int = 0
    done: int = 0
    lost: int = 0
    twice: int = 0
    left: list[str] = field(default_factory=list)
    interventions: int = 0
    seconds: int = 0
    requests: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    """Faults that happened, by kind."""
    missing: list[str] = field(default_factory=list)
    """Faults that did not happen."""
    evidence: list[str] = field(default_factory=list)
    cycles: list[Cycle] = field(default_factory=list)


class Worker(Director):
    """The scripted model, with the work of the soak."""

    def __init__(self, cli: str, strikes: Strikes, contender: Rekindle, *, log: Path) -> None:
        super().__init__(make_dialect(cli), strikes, contender, log=log)
        self._total = strikes.total

    def decide(self, asked: Asked) -> Move:
        return work.decide(asked.view, asked.parts, self._total)

    def command(self, move: Look | Write | Relay | Finish) -> str:
        return work.command(move)


class Contender(Rekindle):
    """Rekindle without a limit of cycles, and with pauses as short as the cycles are."""

    def __init__(self, cli: str, total: int) -> None:
        super().__init__(cli)
        self._total = total

    def prepare(self, host: Host) -> None:
        super().prepare(host)
        (host.project / "PROMPT.md").write_text(work.prompt(self._total))
        manifest = host.project / "rekindle.yaml"
        text = manifest.read_text()
        assert "    prompt: PROMPT.md\n" in text, text
        endless = text.replace("    prompt: PROMPT.md\n", "    prompt: PROMPT.md\n    cycles: 0\n")
        manifest.write_text(endless + _COMPRESSED)


class Soak:
    def __init__(self, cli: str, seed: int, cycles: int, folder: Path) -> None:
        self._folder, self._wanted = folder, cycles
        self._total = cycles * work.EACH
        version = PACKAGES[cli].version
        self.result = Result(cli, version, seed, rekindle.__version__, total=self._total)
        self._contender = Contender(cli, self._total)
        self._host: Host
        self._worker: Worker
        self._strikes: Strikes
        self._sampled = 0.0

    def run(self) -> Result:
        """Do all of the work, and return its measures."""
        self._folder.mkdir(parents=True)
        result, disk = self.result, self._folder / "disk"
        refusals = make_refusals(result.cli)
        faults = schedule.plan(result.seed, self._wanted)
        signals = disk / "project/.benchmark"
        self._strikes = Strikes(faults, self._total, signals, refusals)
        with contextlib.ExitStack() as stack:
            stack.enter_context(small_disk(disk, _DISK_MEGABYTES))
            network = stack.enter_context(Namespace())
            log = self._folder / "requests.jsonl"
            self._worker = Worker(result.cli, self._strikes, self._contender, log=log)
            model = stack.enter_context(Model(self._worker, network.listener))
            self._host = make_host(result.cli, model, network, disk, self._folder)
            stack.callback(self._host.close)
            self._play()
            self._count()
        (self._folder / "result.json").write_text(json.dumps(asdict(result)) + "\n")
        return result

    def _play(self) -> None:
        host, result = self._host, self.result
        work.prepare(host.project, self._total)
        self._strikes.prepare()
        (host.project / ".gitignore").write_text(".benchmark/\n")
        self._contender.prepare(host)
        self._cycles = Cycles(self._measure_disk)
        began = time.monotonic()
        self._cycles.begin(began)
        host.install(self._contender.service(host))
        self._contender.start(host)
        while not result.ended:
            time.sleep(_POLL_SECONDS)
            host.tend()
            self._sample(time.monotonic())
            if self._strikes.is_due():
                self._strikes.apply(host)
            result.ended = self._end(time.monotonic() - began)
        result.seconds = round(time.monotonic() - began)

    def _measure_disk(self) -> tuple[int, int]:
        project = self._host.project
        elsewhere = (project / ".git", user_folder.find_user_folder())
        return measure.measure_disk(project / ".rekindle"), sum(
            map(measure.measure_disk, elsewhere)
        )

    def _sample(self, now: float) -> None:
        if now - self._sampled < SAMPLE_SECONDS:
            return
        self._sampled = now
        found = measure.find(self._host.place._init.pid)
        self._cycles.note(found, measure.time_reference())
        done = work.begun(self._host.project, self._total) // work.EACH
        if done > len(self._cycles.finished):
            self._cycles.finish(now)

    def _end(self, seconds: float) -> str:
        """Return why the run is over, or an empty text; no person acts in any case."""
        quiet = time.monotonic() - self._worker.last
        is_finished = len(self._cycles.finished) == self._wanted and quiet > QUIET_SECONDS
        if is_finished and not self._host.clis() and not self._contender.is_running(self._host):
            return "the work is done"
        if quiet > PATIENCE_SECONDS:
            self.result.interventions += 1
            return "nothing happens"
        return "too slow" if seconds > WALL_SECONDS_A_CYCLE * self._wanted else ""

    def _count(self) -> None:
        result, host = self.result, self._host
        (self._folder / "messages.txt").write_text(self._contender.messages(host))
        self._contender.shut_down(host)
        host.stop_service()
        result.left = [" ".join(argv)[:200] for argv in host.living().values()]
        counted = work.count(host.project, self._total)
        result.done, result.lost, result.twice = counted.done, counted.lost, counted.twice
        result.requests = self._worker.requests
        result.faults, result.missing = self._strikes.happened_by_kind, self._strikes.missing
        result.evidence = self._strikes.lines
        result.cycles = self._cycles.finished
        adjust_processor(result.cycles)
        kept = [f".rekindle/agents/{AGENT}/ops.jsonl", task.LEDGER]
        for path in (host.project / name for name in kept):
            if path.exists():
                (self._folder / path.name).write_bytes(path.read_bytes())
