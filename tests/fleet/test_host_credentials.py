"""A real agent on a real host: its keys and the host's git credentials are outside its sandbox."""

import asyncio
import base64
import contextlib
import json
import shlex
import socket
import sys
from pathlib import Path

import pytest

import prerequisites
from e2e.sandbox import TASK, bash
from fleet.crowd import git
from fleet.engine import Engine
from fleet.hosts import Host, Relay
from fleet.pace import begun, over
from git_server import GitServer
from loopback.anthropic import Anthropic
from loopback.cli import ClaudeSandbox
from loopback.model import Model
from loopback.script import Text
from rekindle import config
from rekindle.fleet.commands.define_agent import define_agent
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.fleet.engine.connect import connect
from rekindle.policy.sandbox.gateway_access import PLACEHOLDER
from rekindle.system.sandbox import probe
from rekindle.wiring.access import trust_checks
from tls_host import make_tls

pytestmark = pytest.mark.timeout(300)

LOGIN = "ann:git-password"
SECRET = "sk-real-b2c1d0e9f8"  # noqa: S105 - not a key
ADDRESS = "192.0.2.1"
"""An address of the git server outside the loopback interface."""
FILES = (".git-credentials", ".netrc", ".ssh/id", ".gitconfig")
ATTEMPT = """\
import json, os, pathlib, subprocess
def push(*options):
    # A host's agents cannot reach its loopback interface.
    public = f"url.{os.environ['PUBLIC']}.insteadOf={os.environ['LOCAL']}"
    words = ["git", "-c", public, *options, "push", "origin", "HEAD:refs/heads/stolen"]
    # Only the gateway is local to the sandbox. The server is on the other side of the proxy.
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "NO_PROXY": "", "no_proxy": ""}
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    return [done.returncode, done.stderr]
home = pathlib.Path(os.environ["HOME"])
report = {
    "push": push(),
    "push with the store": push("-c", "credential.helper=store"),
    "files": [name for name in json.loads(os.environ["FILES"]) if (home / name).exists()],
    "environment": dict(os.environ),
    "config": pathlib.Path(".git/config").read_text(),
}
pathlib.Path("report.json").write_text(json.dumps(report))
"""


@pytest.fixture
def remote(tmp_path):
    """Return a repository on a server that demands a login."""
    bare, first = tmp_path / "served/remote.git", tmp_path / "first"
    git("init", "-q", "--bare", "-b", "main", str(bare))
    git("clone", "-q", str(bare), str(first))
    (first / "attempt.py").write_text(ATTEMPT)
    git("add", "-A", cwd=first)
    named = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    git(*named, "commit", "-qm", "begin", cwd=first)
    git("push", "-q", "origin", "HEAD:main", cwd=first)
    with GitServer(bare.parent, login=LOGIN) as server:
        git("remote", "set-url", "origin", f"{server.url}/remote.git", cwd=first)
        yield server, bare, first


def find_public(server: GitServer) -> str:
    return server.url.replace("127.0.0.1", ADDRESS)


def write_host(home: Path, server: GitServer) -> None:
    """Log the host in, in all ways that git knows."""
    places = (server.url, find_public(server))
    (home / ".ssh").mkdir()
    (home / ".ssh/id").write_text("a private key")
    (home / ".netrc").write_text("machine nowhere login ann password git-password\n")
    (home / ".git-credentials").write_text(
        "".join(f"{place.replace('//', f'//{LOGIN}@')}\n" for place in places)
    )
    (home / ".gitconfig").write_text("[credential]\n\thelper = store\n")


def write_helper(folder: Path, model: str, server: GitServer) -> Path:
    output = {
        "env": {
            "ANTHROPIC_BASE_URL": f"https://{model}",
            "FILES": json.dumps(FILES),
            "PUBLIC": find_public(server),
            "LOCAL": server.url,
        },
        "keys": {model: {"header": "x-api-key", "value": SECRET}},
        "expires": "2999-01-01T00:00:00Z",
    }
    program = folder / "helper"
    program.write_text(f"#!/bin/sh\ncat >{folder}/asked\necho {shlex.quote(json.dumps(output))}\n")
    program.chmod(0o755)
    return program


def test_the_host_pushes_and_the_agent_cannot(remote, claude_program, network, tmp_path):
    obstacle = probe.find_obstacle()
    prerequisites.require(obstacle.words if obstacle else None)
    server, bare, project = remote
    (tmp_path / "tls").mkdir()
    (tmp_path / "engine").mkdir()
    tls, ca = make_tls(tmp_path / "tls")
    with contextlib.ExitStack() as stack:
        engine = stack.enter_context(Engine(tmp_path / "engine"))
        listener = tls.wrap_socket(socket.create_server(("127.0.0.1", 0)), server_side=True)
        model = stack.enter_context(Model(Anthropic(), listener))
        model.play(bash(f"{sys.executable} attempt.py"), Text("all done"))
        asked = model.url.removeprefix("http://")
        cli = ClaudeSandbox(claude_program, model=model, network=network, root=tmp_path / "claude")
        write_host(cli.home, server)
        ports = [int(one.rpartition(":")[2]) for one in (engine.address, asked, server.url)]
        network.add_address(ADDRESS)
        stack.callback(Relay(network.listen(ports[2], ADDRESS), ports[2]).close)
        manifest = {
            "version": 1,
            "agents": {
                "trades": {
                    "harness": "claude-code",
                    "prompt": "PROMPT.md",
                    "cycles": 1,
                    "until": ["true"],
                    "sandbox": {"network": [f"{ADDRESS}:{ports[2]}"]},
                }
            },
            "personas": {"default": {"permissions": {"allowed_tools": ["Bash"]}}},
            "runtime": {"brief": {"at": "never"}, "relay": {"summarizer": "mechanical"}},
            "fleet": {"address": engine.address, "team": "red"},
        }
        (project / "rekindle.yaml").write_text(json.dumps(manifest))
        (project / "PROMPT.md").write_text(TASK)
        trust_checks.accept_folder(project)
        host = Host(
            "x",
            tmp_path / "host",
            project=project,
            ports=tuple(ports),
            network=network,
            environment=cli.environment(
                LC_ALL="C.UTF-8",
                SSL_CERT_FILE=str(ca),
                SSH_AUTH_SOCK=str(tmp_path / "agent"),
                GIT_ASKPASS="/bin/true",
                ANTHROPIC_API_KEY="sk-of-the-host",
            ),
            slots=1,
            options=("--credentials", str(write_helper(tmp_path, asked, server))),
        )
        stack.enter_context(host).start()
        asyncio.run(run(project))
    show = ("--git-dir", str(bare), "show", "refs/heads/rekindle/trades/work:report.json")
    report = json.loads(git(*show))
    assert "stolen" not in git("--git-dir", str(bare), "branch", "--list")
    for how in ("push", "push with the store"):
        code, told = report[how]
        assert code, told
        assert "could not read Username" in told, "it reaches the server, but has no login"
    assert report["files"] == []
    assert "git-password" not in json.dumps(report)
    assert not {"SSH_AUTH_SOCK", "GIT_ASKPASS"} & report["environment"].keys()
    assert report["environment"]["ANTHROPIC_API_KEY"] == PLACEHOLDER
    assert "sk-" not in json.dumps(report)
    assert model.secrets == {("x-api-key", SECRET)}
    told = json.loads((tmp_path / "asked").read_text())
    assert (told["agent"], told["team"], told["harness"]) == ("trades", "red", "claude-code")
    assert told["repository"] == f"{server.url}/remote.git"


async def run(project: Path) -> None:
    """Run the agent until its work is over."""
    loaded = config.load_project(project)
    fleet = loaded.settings.fleet
    agents = AgentClient(await connect(fleet, project, {}))
    await begun(agents, "trades", define_agent(loaded, fleet, "trades"))
    await over(agents, "trades", 200)


def test_the_server_accepts_the_login(remote):
    """Otherwise the agent's push would prove nothing."""
    _, bare, project = remote
    basic = base64.b64encode(LOGIN.encode()).decode()
    header = f"http.extraHeader=Authorization: Basic {basic}"
    git("-c", header, "push", "origin", "HEAD:refs/heads/stolen", cwd=project)
    assert "stolen" in git("--git-dir", str(bare), "branch", "--list")
