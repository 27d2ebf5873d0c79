"""A real Temporal cluster on this machine: several server processes over one PostgreSQL.

    with Cluster(folder) as cluster:
        client = await Client.connect(cluster.address)
        cluster.kill("server-1")

It uses the programs that `just cluster build` has built, and ends with the process that made it.
"""

import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from fleet.cluster.database import Postgres
from fleet.cluster.networks import Loopback, Network, Switch
from fleet.cluster.prepare import find_programs
from fleet.cluster.server_config import (
    MAX_SHARDS,
    MIN_SHARDS,
    PORTS,
    Member,
    metrics_port,
    place_together,
    render_config,
    render_dynamic_config,
    service_port,
)
from fleet.engine import program as find_cli
from rekindle.fleet.engine.dev_server import SEARCH_ATTRIBUTES

NAMESPACE = "default"
_DOOR = Path(__file__).with_name("front_door.py")
_READ = """\
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1], timeout=5).read().decode())
"""
_REFUSED = re.compile(r'service_errors_resource_exhausted\{.*namespace="default".*"RpsLimit"')
_START_SECONDS = 180
_STOP_SECONDS = 20


class Cluster:
    """Servers that answer at `address` from `start` until `close`."""

    def __init__(
        self,
        folder: Path,
        *,
        members: Sequence[Member] | None = None,
        shards: int = MIN_SHARDS,
        has_switch: bool = False,
        megabytes: int | None = None,
        port: int = 0,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """Prepare a cluster; `has_switch` gives each machine a network that can be cut.

        `megabytes` limits the disk of the database. `settings` are dynamic configuration.
        """
        if not MIN_SHARDS <= shards <= MAX_SHARDS:
            raise ValueError(f"shards: {MIN_SHARDS} to {MAX_SHARDS}, not {shards}")
        self.folder, self.shards = folder, shards
        self.members = {one.name: one for one in members or place_together()}
        self.settings = dict(settings or {})
        self._programs = find_programs()
        machines = list(dict.fromkeys(one.machine for one in self.members.values()))
        self.switch = Switch(machines) if has_switch else None
        self._network: Network = self.switch or Loopback(machines)
        ips = [self._network.database_ip, *map(self._network.ip, machines)]
        self._first_port = 7230 if self.switch else _free_ports(ips)
        self.database = Postgres(
            self._programs.postgres, self._network, self._first_port + PORTS, megabytes=megabytes
        )
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listener.getsockname()[1]
        self._door: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Return the address of the load balancer, which survives the loss of a frontend."""
        return f"127.0.0.1:{self.port}"

    @property
    def frontends(self) -> list[str]:
        """Return the addresses of the frontends; clients reach them if there is no switch."""
        found = (one for one in self.members.values() if "frontend" in one.services)
        return [self.service_address(one.name) for one in found]

    def metrics(self, name: str) -> str:
        """Return the address of a process's metrics, for Prometheus."""
        member = self.members[name]
        return f"{self._network.ip(member.machine)}:{metrics_port(self._first_port, member)}"

    def read_metrics(self, name: str) -> str:
        """Return the metrics of a process, read from its own machine."""
        argv = [sys.executable, "-I", "-c", _READ, f"http://{self.metrics(name)}/metrics"]
        inside = self._network.argv(self.members[name].machine, argv)
        return subprocess.run(inside, capture_output=True, text=True, check=False).stdout

    def count_refused(self) -> float:
        """Return how many requests the frontends have refused because of a limit."""
        names = [one.name for one in self.members.values() if "frontend" in one.services]
        lines = [line for name in names for line in self.read_metrics(name).splitlines()]
        return sum(float(line.split()[-1]) for line in lines if _REFUSED.match(line))

    def service_address(self, name: str) -> str:
        """Return the address of a process's first service."""
        member = self.members[name]
        port = service_port(self._first_port, member.services[0])
        return f"{self._network.ip(member.machine)}:{port}"

    def start(self) -> None:
        """Start everything from nothing, and return when all frontends answer."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.database.create()
        self.database.start()
        self.database.set_up(self._programs.sql_tool)
        self.configure()
        first, *others = self.members
        self.start_process(first)
        # It writes the description of the cluster; two that do so at once would end one of them.
        self._until_described()
        for name in others:
            self.start_process(name)
        self._open_door()
        for address in self.frontends:
            self._until(address, "operator", "cluster", "health")
        self._register()

    def configure(self, **only: Any) -> None:
        """Write the dynamic configuration; the servers read it within a few seconds."""
        written = self._dynamic.with_suffix(".new")
        written.write_text(render_dynamic_config(self.settings, namespace=NAMESPACE, only=only))
        written.replace(self._dynamic)

    def throttle(self, requests: int) -> None:
        """Let each frontend accept this number of requests per second for the namespace."""
        self.configure(**{"frontend.namespaceRPS": requests})

    def start_process(self, name: str) -> None:
        """Start a process that is down."""
        assert name not in self.processes, f"{name} runs already"
        member = self.members[name]
        config = self.folder / f"{name}.yaml"
        config.touch(mode=0o600)
        config.write_text(
            render_config(
                member,
                ip=self._network.ip(member.machine),
                first_port=self._first_port,
                shards=self.shards,
                database=self.database.address,
                dynamic=str(self._dynamic),
            )
        )
        argv = [str(self._programs.server), "--config-file", str(config), "--allow-no-auth"]
        argv += ["start", *(f"--service={one}" for one in member.services)]
        self.processes[name] = self._popen(member.machine, argv, self._log(name))

    def kill(self, name: str) -> None:
        """Kill a process with -9."""
        self._end(name, signal.SIGKILL)

    def stop(self, name: str) -> None:
        self._end(name, signal.SIGTERM)

    def freeze(self, name: str) -> None:
        self.processes[name].send_signal(signal.SIGSTOP)

    def wake(self, name: str) -> None:
        self.processes[name].send_signal(signal.SIGCONT)

    def state(self, name: str) -> str:
        """Return the state of a process, as the kernel calls it, such as `T` for stopped."""
        stat = Path(f"/proc/{self.processes[name].pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0]

    def cut(self, machine: str) -> None:
        """Unplug a machine from the others, from the database and from clients."""
        assert self.switch, "only a cluster with a switch can be cut"
        self.switch.cut(machine)

    def part(self, machine: str) -> None:
        """Drop packets between a machine and the others; all reach database and clients."""
        assert self.switch, "only a cluster with a switch can be cut"
        self.switch.part(machine)

    def restore(self, machine: str) -> None:
        """Undo `cut`."""
        assert self.switch
        self.switch.restore(machine)

    def join(self, machine: str) -> None:
        """Undo `part`."""
        assert self.switch
        self.switch.join(machine)

    def can_reach(self, machine: str, address: str) -> bool:
        """Return whether a program on this machine gets a connection; '' is the switch."""
        connect = "import socket,sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 2)"
        argv = [sys.executable, "-I", "-c", connect, *address.split(":")]
        done = subprocess.run(self._network.argv(machine, argv), capture_output=True, check=False)
        return done.returncode == 0

    def ask(self, *words: str, address: str = "") -> subprocess.CompletedProcess[str]:
        """Run the CLI of the engine against one frontend, or the load balancer."""
        to = address or self.address
        argv = [find_cli(), *words, "--address", to, "--command-timeout", "10s"]
        inside = self._network.argv("", argv) if address else argv
        return subprocess.run(inside, capture_output=True, text=True, check=False)

    def said(self, name: str) -> str:
        """Return the last lines of a process's log."""
        log = self._log(name)
        return log.read_text(errors="replace")[-3000:] if log.exists() else ""

    def close(self) -> None:
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)
            process.terminate()
        deadline = time.monotonic() + _STOP_SECONDS
        for process in (*self.processes.values(), *([self._door] if self._door else [])):
            try:
                process.wait(max(0.0, deadline - time.monotonic()) if process != self._door else 0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes.clear()
        self._listener.close()
        self.database.close()
        self._network.close()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def _dynamic(self) -> Path:
        return self.folder / "dynamic.yaml"

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def _popen(
        self, machine: str, argv: list[str], log: Path, **how: Any
    ) -> subprocess.Popen[bytes]:
        ending_with_us = [shutil.which("setpriv") or "setpriv", "--pdeathsig", "KILL", "--"]
        with log.open("ab") as output:
            return subprocess.Popen(
                self._network.argv(machine, [*ending_with_us, *argv]),
                stdout=output,
                stderr=output,
                start_new_session=True,
                **how,
            )

    def _open_door(self) -> None:
        number = self._listener.fileno()
        argv = [sys.executable, "-I", str(_DOOR), "--listener", str(number), *self.frontends]
        self._door = self._popen("", argv, self._log("front-door"), pass_fds=[number])

    def _until_described(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while self.database.query("SELECT count(*) FROM cluster_metadata_info") == [["0"]]:
            self._require_alive()
            assert time.monotonic() < deadline, "no process has described the cluster"
            time.sleep(0.2)

    def _require_alive(self) -> None:
        ended = [name for name, one in self.processes.items() if one.poll() is not None]
        assert not ended, f"{ended[0]} has ended: {self.said(ended[0])}"

    def _register(self) -> None:
        """Create the namespace and the search attributes that Rekindle needs."""
        first = self.frontends[0]
        create = ["operator", "namespace", "create", "--retention", "24h"]
        self._until(first, *create, "--namespace", NAMESPACE)
        words = ["operator", "search-attribute", "create", "--namespace", NAMESPACE]
        for name, kind in SEARCH_ATTRIBUTES.items():
            words += ["--name", name, "--type", kind]
        self._until(first, *words)
        # Each frontend reads the namespaces by itself, a moment later.
        query = "RekindleState = 'waiting' AND RekindleCycle > 0"
        for address in [*self.frontends, ""]:
            listed = ["workflow", "list", "--namespace", NAMESPACE, "--query", query]
            self._until(address, *listed)

    def _until(self, address: str, *words: str) -> None:
        """Repeat a command of the CLI until it succeeds."""
        deadline = time.monotonic() + _START_SECONDS
        while (done := self.ask(*words, address=address)).returncode != 0:
            said = done.stdout + done.stderr
            if "already exists" in said:
                return
            self._require_alive()
            assert time.monotonic() < deadline, f"{' '.join(words)}: {said}"
            time.sleep(0.5)

    def _end(self, name: str, number: signal.Signals) -> None:
        process = self.processes.pop(name)
        process.send_signal(number)
        try:
            process.wait(_STOP_SECONDS)
        finally:
            process.kill()
            process.wait()


def _free_ports(ips: Sequence[str]) -> int:
    """Return the first of enough ports that are free at all these addresses."""
    for _ in range(50):
        first = random.randrange(12_000, 30_000, PORTS + 10)
        if all(_is_free(ip, first + number) for ip in ips for number in range(PORTS + 1)):
            return first
    raise OSError(f"no {PORTS + 1} ports in a row are free")


def _is_free(ip: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ip, port))
        except OSError:
            return False
    return True


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def read_start(pid: int) -> str | None:
    """Return when a process started, in the kernel's own unit, or None if it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()
    return None if state == "Z" else fields[18]
