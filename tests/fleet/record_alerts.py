"""Record the metrics of three real hosts through each fault: `just record-alerts [FAULT...]`.

A fault lasts seconds here, and minutes in the rules: each sample counts as 15 seconds, and the
times in the samples are stretched in the same way.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from fleet.apart import Apart, children
from fleet.crowd import make_project
from fleet.engine import Engine, free_port
from fleet.hosts import Relay
from fleet.pace import begun
from fleet.scraped import parse_page, read_page
from rekindle import config
from rekindle.documents.screens.metric_names import ENGINE_CLIENT_METRICS, HOST_METRICS
from rekindle.fleet.commands.define_agent import define_agent
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.fleet.engine.connect import connect

FOLDER = Path(__file__).parent / "faults"
SCRAPE_SECONDS = 0.5
INTERVAL = 15
STRETCH = INTERVAL / SCRAPE_SECONDS
CALM_SECONDS = 4
SETTLED_SECONDS = 15
AGENTS = 6
NAMES = {metric.name for metric in HOST_METRICS} | set(ENGINE_CLIENT_METRICS)
TIMES = "_timestamp_seconds"
WORKER = """\
import rekindle.fleet.hosts.host_metrics as module
module.FLEET_GAUGE_SECONDS, module.FLEET_COUNT_SECONDS = 0.25, 0.75
from rekindle.__main__ import main
main()
"""
"""A worker whose gauges are as much faster as its faults are shorter."""


class Host:
    """A worker that reaches the engine through its own relay."""

    def __init__(self, name: str, folder: Path, project: Path, engine: Engine) -> None:
        self.name, self._folder, self._port = name, folder, engine.port
        self._listen, self.metrics = free_port(), f"127.0.0.1:{free_port()}"
        self.project = folder / f"project-{name}"
        manifest = json.loads((project / "rekindle.yaml").read_text())
        manifest["fleet"] |= {
            "address": f"127.0.0.1:{self._listen}",
            "metrics": {"prometheus": self.metrics},
        }
        self.project.mkdir()
        (self.project / "rekindle.yaml").write_text(json.dumps(manifest))
        (self.project / "PROMPT.md").write_text("Do the list.\n")
        self._relay: Relay | None = None
        self._worker: Apart | None = None

    def start(self) -> None:
        if self._relay is None:
            self.restore()
        said = self._folder / f"{self.name}.said"
        argv = [sys.executable, "-c", WORKER, "fleet", "worker", "--trust", "--host", self.name]
        argv += [
            "--sandbox",
            "off",
            "--slots",
            str(AGENTS),
            "--root",
            str(self._folder / f"root-{self.name}"),
        ]
        with said.open("wb") as file:
            self._worker = Apart(argv, cwd=self.project, stdout=file, stderr=file)
        deadline = time.monotonic() + 120
        while b"takes up to" not in said.read_bytes():
            assert self._worker.poll() is None, said.read_text()
            assert time.monotonic() < deadline, f"{self.name} does not start"
            time.sleep(0.1)

    def kill(self) -> None:
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def send(self, number: signal.Signals) -> None:
        """Send a signal to every process of the host."""
        assert self._worker is not None
        pending = [self._worker.pid]
        while pending:
            pid = pending.pop()
            pending += children(pid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def cut(self) -> None:
        if self._relay is not None:
            self._relay.close()
            self._relay = None

    def restore(self) -> None:
        self._relay = Relay(socket.create_server(("127.0.0.1", self._listen)), self._port)


class Recorder:
    """Reads the metrics of all hosts at an interval, as Prometheus does."""

    def __init__(self, hosts: list[Host]) -> None:
        self._hosts = hosts
        self._began = time.time()
        self._samples: list[dict[str, float]] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> dict[str, list[float | None]]:
        self._ended.set()
        self._thread.join()
        names = sorted({name for sample in self._samples for name in sample})
        return {name: [sample.get(name) for sample in self._samples] for name in names}

    def _run(self) -> None:
        due = time.monotonic()
        while not self._ended.wait(max(0, due - time.monotonic())):
            due += SCRAPE_SECONDS
            sample: dict[str, float] = {}
            for host in self._hosts:
                sample |= self._scrape(host)
            self._samples.append(sample)

    def _scrape(self, host: Host) -> dict[str, float]:
        target = f'instance="{host.name}:9464",job="rekindle-hosts"'
        try:
            values = parse_page(read_page(host.metrics, SCRAPE_SECONDS / 4))
        except OSError:
            return {f"up{{{target}}}": 0}
        found: dict[str, float] = {f"up{{{target}}}": 1}
        for (name, labels), value in values.items():
            if name in NAMES and "_bucket" not in name:
                own = ",".join(f'{label}="{word}"' for label, word in sorted(labels))
                is_time = name.endswith(TIMES)
                scaled = round((value - self._began) * STRETCH, 1) if is_time else value
                found[f"{name}{{{own},{target}}}"] = scaled
        return found


class Fleet:
    def __init__(self, folder: Path, engine: Engine) -> None:
        self.engine, self._remote = engine, folder / "remote.git"
        finish = folder / "finish"
        usual = {"env": {"STEP_SECONDS": "1", "FINISH": str(finish)}}
        agents = {f"a{number}": usual for number in range(AGENTS)}
        broken = {"harness": "command", "command": ["false"]}
        self._project = make_project(folder, engine, agents | {"broken": broken}, finish)
        path = self._project / "rekindle.yaml"
        restart = {"runtime": {"restart": {"max_crashes": 2, "cooldown": "1s"}}}
        path.write_text(json.dumps(json.loads(path.read_text()) | restart))
        self.hosts = [Host(name, folder, self._project, engine) for name in ("x", "y", "z")]

    async def begin(self, *names: str) -> None:
        project = config.load_project(self._project)
        fleet = project.settings.fleet
        assert fleet is not None
        agents = AgentClient(await connect(fleet, self._project, {}))
        for name in names:
            await begun(agents, name, define_agent(project, fleet, name))

    async def end(self, name: str) -> None:
        fleet = config.load_project(self._project).settings.fleet
        assert fleet is not None
        await AgentClient(await connect(fleet, self._project, {})).remove(name)

    def lose_remote(self) -> None:
        self._remote.rename(self._remote.with_name("away.git"))

    def find_remote(self) -> None:
        self._remote.with_name("away.git").rename(self._remote)


def list_faults(
    fleet: Fleet,
) -> dict[str, tuple[float, Callable[[], object], Callable[[], object]]]:
    """Return how long each fault lasts in seconds, how it starts and how it ends."""
    x, y, z = fleet.hosts
    return {
        "kill": (10, x.kill, x.start),
        "freeze": (10, lambda: y.send(signal.SIGSTOP), lambda: y.send(signal.SIGCONT)),
        "cut": (12, z.cut, z.restore),
        "engine": (12, fleet.engine.kill, fleet.engine.start),
        "push": (20, fleet.lose_remote, fleet.find_remote),
        "safe": (
            20,
            lambda: asyncio.run(fleet.begin("broken")),
            lambda: asyncio.run(fleet.end("broken")),
        ),
        "calm": (10, lambda: None, lambda: None),
    }


def record(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "engine").mkdir()
        with Engine(place / "engine") as engine, contextlib.ExitStack() as stack:
            fleet = Fleet(place, engine)
            for host in fleet.hosts:
                stack.callback(host.cut)
                stack.callback(host.kill)
                host.start()
            asyncio.run(fleet.begin(*(f"a{number}" for number in range(AGENTS))))
            time.sleep(SETTLED_SECONDS)
            faults = list_faults(fleet)
            for name in names or faults:
                seconds, start, end = faults[name]
                recorder = Recorder(fleet.hosts)
                time.sleep(CALM_SECONDS)
                start()
                time.sleep(seconds)
                end()
                time.sleep(SETTLED_SECONDS)
                series = recorder.end()
                print(name, len(series), "series")
                rows = (f"{json.dumps(one)}: {json.dumps(row)}" for one, row in series.items())
                (FOLDER / f"{name}.json").write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    record(sys.argv[1:])
