"""Agents that attack their host fail alone: the host and the other agents continue.

One host runs all attackers at once, beside an agent that works. Without a sandbox, each attack
succeeds. So the tests would notice a sandbox that prevents nothing.
"""

import asyncio
import contextlib
import io
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import prerequisites
from fleet import attacks
from fleet.engine import Engine
from fleet.hosts import Host
from fleet.pace import begun
from loopback.fixtures import require_namespaces
from loopback.namespace import Namespace
from rekindle import config
from rekindle.cli import main
from rekindle.errors import EngineError
from rekindle.fleet.commands.define_agent import define_agent
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.fleet.engine.connect import connect
from rekindle.policy.fleet.agent_registry import RegisteredAgent
from rekindle.system.sandbox import container_runtime, probe
from rekindle.wiring.access import trust_checks

pytestmark = pytest.mark.timeout(600)
PROGRAM = Path(attacks.__file__)
MEMORY = "512M"
PROCESSES = 64
SANDBOXES = ("on", "container")
GOOD = "good"
PASSWORDS = "/etc/shadow"
"""A file in a folder that the sandbox shows."""
ATTACKERS = ("memory", "forks", "nosy", "thief", "cloud")


class Attacked:
    """A host, with the results of all attacks on it."""

    def __init__(self, folder: Path, engine: Engine, network: Namespace, sandbox: str) -> None:
        self.sandbox, self._folder = sandbox, folder
        self.project, self.home = folder / "project", folder / "home"
        self.project.mkdir(parents=True)
        (self.home / ".ssh").mkdir(parents=True)
        self._write_secrets()
        self._write_manifest(engine)
        limits = [] if sandbox == "off" else ["--memory", MEMORY, "--processes", str(PROCESSES)]
        self.host = Host(
            f"host-{sandbox}",
            folder / "host",
            project=self.project,
            ports=(engine.port,),
            network=network,
            environment={
                "PATH": "/usr/bin:/bin",
                "HOME": str(self.home),
                "LC_ALL": "C.UTF-8",
                "REKINDLE_FLEET_KEY": attacks.CANARY.decode(),
            },
            slots=8,
            options=["--sandbox", sandbox, *limits],
        )
        self.host.patience = 150.0
        self.kept: dict[str, RegisteredAgent] = {}
        self.seen: dict[str, str] = {}
        """What the operator sees of each agent."""

    @property
    def root(self) -> Path:
        return self._folder / "host/root"

    @property
    def secrets(self) -> list[str]:
        """Return the files that only the host may read."""
        at_home = (self.home / ".ssh/id_ed25519", self.home / ".git-credentials")
        return [*map(str, at_home), *(str(self.project / one) for one in ("fleet.key", "tls.key"))]

    def find_work(self, agent: str) -> Path:
        return self.root / f"default~{self._name(agent)}/work"

    def read_result(self, agent: str) -> Any:
        path = self.find_work(agent) / "result.json"
        return json.loads(path.read_text()) if path.exists() else None

    def tell_operator(self, agent: str) -> str:
        """Return the log of an agent, as the operator sees it."""
        output = io.StringIO()
        with contextlib.chdir(self.project), contextlib.redirect_stdout(output):
            assert main.run(["logs", self._name(agent), "--last", "0"]) == 0
        return output.getvalue()

    def list_exits(self, agent: str) -> list[str | None]:
        launches = self.kept[agent].projection.attempts.values()
        return [launch.exit for launch in sorted(launches, key=lambda one: one.seq)]

    async def run(self) -> None:
        """Let all agents run until each attack is over, then let the neighbour finish."""
        loaded = config.load_project(self.project)
        fleet = loaded.settings.fleet
        agents = AgentClient(await connect(fleet, self.project, {}))
        for name in loaded.manifest.agents:
            await begun(agents, name, define_agent(loaded, fleet, name))
        for name in ATTACKERS:
            await self._follow(agents, name, lambda one: any(self._exits(one)))
        before = self.read_result(GOOD)
        while self.read_result(GOOD) == before:  # noqa: ASYNC110 - a file of another process
            await asyncio.sleep(0.05)
        (self.find_work(GOOD) / "enough").touch()
        await self._follow(agents, GOOD, lambda one: one.projection.run.is_over)

    async def _follow(self, agents: AgentClient, name: str, is_enough: Any) -> None:
        while True:
            with contextlib.suppress(EngineError):  # no worker has decided anything yet
                kept = await agents.kept(self._name(name))
                if is_enough(kept):
                    self.kept[name] = kept
                    return
            await asyncio.sleep(0.1)

    def _name(self, agent: str) -> str:
        """Return the name of an agent on the fleet, which all hosts share."""
        return f"{agent}-{self.sandbox}"

    @staticmethod
    def _exits(kept: RegisteredAgent) -> list[str | None]:
        return [launch.exit for launch in kept.projection.attempts.values()]

    def _write_secrets(self) -> None:
        for path in self.secrets:
            Path(path).write_text("secret of the host")

    def _write_manifest(self, engine: Engine) -> None:
        def make_entry(attack: str, **more: Any) -> dict[str, Any]:
            program = [sys.executable, "-I", str(PROGRAM), attack]
            return {"harness": "command", "command": program, "cycles": 1, **more}

        # With a list of hosts, the sandbox has a proxy, which the attacker asks too.
        network = (
            {} if self.sandbox == "off" else {"network": ["packages.example.org", attacks.METADATA]}
        )
        secret = str(self.find_work(GOOD) / "result.json")
        stolen = [*self.secrets, PASSWORDS]
        entries = {
            GOOD: make_entry("work"),
            "memory": make_entry("eat_memory"),
            "forks": make_entry("fork_without_end"),
            "nosy": make_entry("read_all", env={"PATHS": json.dumps([secret])}),
            "thief": make_entry("read_credentials", env={"PATHS": json.dumps(stolen)}),
            "cloud": make_entry("ask_metadata", **({"sandbox": network} if network else {})),
        }
        manifest = {
            "version": 1,
            "agents": {self._name(name): entry for name, entry in entries.items()},
            "runtime": {"brief": {"at": "never"}, "relay": {"summarizer": "mechanical"}},
            "fleet": {
                "address": engine.address,
                "pool": self.sandbox,
                "heartbeat_timeout": "10s",
            },
        }
        (self.project / "rekindle.yaml").write_text(json.dumps(manifest))
        (self.project / "PROMPT.md").write_text("Attack.\n")
        trust_checks.accept_folder(self.project)


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Attacked]]:
    """Run the attacks without a sandbox, and in each kind of sandbox."""
    require_namespaces()
    for obstacle in (probe.find_obstacle(), container_runtime.find_container_obstacle()):
        prerequisites.require(obstacle.words if obstacle else None)
    folder = tmp_path_factory.mktemp("attacked")
    (folder / "engine").mkdir()
    found = {}
    with contextlib.ExitStack() as stack:
        engine = stack.enter_context(Engine(folder / "engine"))
        for sandbox in ("off", *SANDBOXES):
            with Namespace() as network:
                serve_metadata(network)
                here = found[sandbox] = Attacked(folder / sandbox, engine, network, sandbox)
                with here.host:
                    here.host.start()
                    asyncio.run(asyncio.wait_for(here.run(), 180))
                    here.seen = {name: here.tell_operator(name) for name in here.kept}
                    assert here.host.is_up
        yield found


def serve_metadata(network: Namespace) -> None:
    """Answer at the address of a cloud's metadata service, in the host's network."""
    network.add_address(attacks.METADATA)
    listener = network.listen(80, attacks.METADATA)

    def answer() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(4096)
                    connection.sendall(b"HTTP/1.0 200 OK\r\n\r\nkeys of the cloud")

    threading.Thread(target=answer, daemon=True).start()


def test_without_a_sandbox_every_attack_succeeds(attacked):
    """So the attackers work, and each test below can fail."""
    off = attacked["off"]
    assert off.read_result("memory") == attacks.MEMORY_MEBIBYTES
    assert off.read_result("forks") == attacks.FORKS
    assert all(off.read_result("nosy").values())
    stolen = off.read_result("thief")
    assert stolen.pop("environment") is True
    assert "root:" in stolen.pop(PASSWORDS)
    assert set(stolen.values()) == {"secret of the host"}
    assert "keys of the cloud" in off.read_result("cloud")["direct"]
    assert "keys of the cloud" in off.read_result("cloud")["as usual"]
    assert {off.list_exits(name)[0] for name in off.kept} == {"clean"}


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_the_neighbour_and_the_host_continue(attacked, sandbox):
    here = attacked[sandbox]
    assert here.list_exits(GOOD) == ["clean"]
    assert here.read_result(GOOD) > 1
    assert f"(sandbox {sandbox}: 0.5G of memory, {PROCESSES} processes)" in here.host.said
    assert "shutting down" not in here.host.said


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_an_agent_that_eats_memory_fails(attacked, sandbox):
    here = attacked[sandbox]
    assert 0 < here.read_result("memory") < 512
    assert here.list_exits("memory")[0] == "crash"
    words = {"on": "MemoryError", "container": "the agent reached the memory limit of its sandbox"}
    assert words[sandbox] in here.seen["memory"]


def test_an_agent_that_forks_without_end_fails_in_a_container(attacked):
    """With bubblewrap, root is not limited: `test_ordinary_user` forks as an ordinary user."""
    here = attacked["container"]
    assert 0 < here.read_result("forks") < PROCESSES
    assert here.list_exits("forks")[0] == "crash"
    assert "the agent reached the limit on processes of its sandbox" in here.seen["forks"]


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_an_agent_cannot_read_its_neighbour_s_folder(attacked, sandbox):
    here = attacked[sandbox]
    assert set(here.read_result("nosy").values()) == {None}
    assert here.list_exits("nosy")[0] == "crash"
    assert "PermissionError: cannot read" in here.seen["nosy"]


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_an_agent_cannot_read_the_host_s_credentials(attacked, sandbox):
    here = attacked[sandbox]
    found = here.read_result("thief")
    assert found.pop("environment") is False
    assert set(found.values()) == {None}
    assert "PermissionError: the host's credentials cannot be read" in here.seen["thief"]


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_an_agent_cannot_reach_the_metadata_service(attacked, sandbox):
    here = attacked[sandbox]
    assert here.read_result("cloud") == {"direct": None, "as usual": None}
    assert here.list_exits("cloud")[0] == "network"
    assert f"the sandbox refused a connection to {attacks.METADATA}:80" in here.seen["cloud"]
