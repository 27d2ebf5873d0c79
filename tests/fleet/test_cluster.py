"""The parts of a cluster that need no server: its configuration, and the address for clients."""

import contextlib
import json
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from fleet.cluster import __main__ as commands
from fleet.cluster import front_door
from fleet.cluster.cluster import read_start
from fleet.cluster.server_config import (
    PORTS,
    SERVICES,
    DatabaseAddress,
    Member,
    metrics_port,
    place_apart,
    place_together,
    render_config,
    render_dynamic_config,
)

FIRST = 20_000
SETTINGS_FRAME = b"\0\0\0\4\0\0\0\0\0"


def rendered(member: Member) -> dict:
    database = DatabaseAddress("127.0.0.10:5432", "someone", "secret")
    given = {"ip": "127.0.0.11", "first_port": FIRST, "shards": 8, "dynamic": "/d.yaml"}
    return json.loads(render_config(member, database=database, **given))


def ports(member: Member) -> list[int]:
    """Return the ports that a process opens."""
    config = rendered(member)
    rpcs = [config["services"][name]["rpc"] for name in member.services]
    return [
        *(one[key] for one in rpcs for key in ("grpcPort", "membershipPort")),
        metrics_port(FIRST, member),
    ]


def test_processes_of_a_machine_open_different_ports():
    """Each machine has one address, and all of its processes share it."""
    for members in (place_apart(), place_together()):
        for machine in {one.machine for one in members}:
            opened = [port for one in members if one.machine == machine for port in ports(one)]
            assert len(set(opened)) == len(opened)
            assert all(FIRST <= port < FIRST + PORTS for port in opened)


def test_each_service_runs_on_each_machine():
    for members in (place_apart(2), place_together(3)):
        machines = {one.machine for one in members}
        run = [(one.machine, service) for one in members for service in one.services]
        assert sorted(run) == sorted((one, service) for one in machines for service in SERVICES)
        assert len({one.name for one in members}) == len(members)


def test_config_names_the_database_and_the_shards():
    config = rendered(place_together()[0])
    assert config["persistence"]["numHistoryShards"] == 8
    stores = config["persistence"]["datastores"]
    assert {name: one["sql"]["databaseName"] for name, one in stores.items()} == {
        "default": "temporal",
        "visibility": "temporal_visibility",
    }
    assert {one["sql"]["connectAddr"] for one in stores.values()} == {"127.0.0.10:5432"}
    assert config["dynamicConfigClient"]["filepath"] == "/d.yaml"


def test_dynamic_config_keeps_what_a_fleet_needs():
    """Teams are served in turn, also while the namespace is throttled."""
    only = {"frontend.namespaceRPS": 5}
    rendered = render_dynamic_config({"limit.maxIDLength": 255}, namespace="n", only=only)
    assert json.loads(rendered) == {
        "matching.enableFairness": [{"value": True}],
        "limit.maxIDLength": [{"value": 255}],
        "frontend.namespaceRPS": [{"value": 5, "constraints": {"namespace": "n"}}],
    }


def test_another_process_with_the_number_of_a_crashed_cluster_is_not_stopped(
    tmp_path, monkeypatch, capsys
):
    """The file of a cluster that was killed stays, and its number can be used again."""
    state = tmp_path / "cluster.json"
    monkeypatch.setattr(commands, "_STATE", state)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        began = read_start(other.pid)
        assert began
        state.write_text(json.dumps({"pid": other.pid, "began": f"{began}0"}))
        assert commands._stop() == 0
        assert capsys.readouterr().out == "no cluster is running\n"
        assert other.poll() is None
        state.write_text(json.dumps({"pid": other.pid, "began": began}))
        assert commands._stop() == 0
        assert capsys.readouterr().out == "the cluster has ended\n"
    assert other.returncode == -signal.SIGTERM


class Frontend:
    """A server that speaks the first bytes of HTTP/2, then its name, and then waits."""

    def __init__(self, name: bytes) -> None:
        self._name, self._is_frozen = name, False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "{}:{}".format(*self._listener.getsockname())
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def freeze(self) -> None:
        """Answer no more; the kernel still accepts connections."""
        self._is_frozen = True

    def close(self) -> None:
        self._is_frozen = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        for one in (self._listener, *self._open):
            one.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._open.append(connection)
                if not self._is_frozen:
                    connection.sendall(SETTINGS_FRAME + self._name)


def connect(port: int) -> tuple[bytes, socket.socket]:
    """Connect to the door until a frontend answers, as a client does."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        connection = socket.create_connection(("127.0.0.1", port), 60)
        with contextlib.suppress(ConnectionError):
            if answer := connection.recv(len(SETTINGS_FRAME) + 1):
                return answer[-1:], connection
        connection.close()
    raise AssertionError("no frontend answers")


@pytest.mark.parametrize("way", ["freeze", "close"])
def test_a_frontend_that_does_not_answer_is_taken_out(way):
    """Its connections end, and new ones reach the other frontend."""
    with contextlib.ExitStack() as stack:
        first, second = Frontend(b"a"), Frontend(b"b")
        stack.callback(first.close)
        stack.callback(second.close)
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        argv = [sys.executable, "-I", front_door.__file__, "--listener", str(listener.fileno())]
        argv += ["--check-seconds", "0.3", first.address, second.address]
        number = listener.fileno()
        door = stack.enter_context(
            subprocess.Popen(argv, stdout=subprocess.DEVNULL, pass_fds=[number])
        )
        stack.callback(door.kill)
        port = listener.getsockname()[1]
        found: dict[bytes, socket.socket] = {}
        while len(found) < 2:
            name, connection = connect(port)
            stack.callback(connection.close)
            found[name] = connection
        getattr(first, way)()
        # The connection through the lost frontend ends, and the other one stays.
        with contextlib.suppress(ConnectionError):
            assert found[b"a"].recv(1) == b""
        found[b"b"].setblocking(False)  # noqa: FBT003 - the name is in the method
        with pytest.raises(BlockingIOError):
            found[b"b"].recv(1)
        for _ in range(3):
            name, connection = connect(port)
            connection.close()
            assert name == b"b"
