"""Measure the time from a launch to the first answer of the model, in a sandbox and without one.

Claude Code is launched in turn without a sandbox, in one that shares the network, and in one with
its own network and the proxy. The ratios of the shortest times are asserted,
because a busy host only adds to a time.
"""

import json
import sys

import pytest

import prerequisites
from loopback.script import Forever, Text
from rekindle.system.sandbox import probe

pytestmark = [pytest.mark.bench, pytest.mark.timeout(300)]

ROUNDS, TRIES = 7, 3
WITHOUT_PROXY, WITH_PROXY = 1.5, 1.8
"""Maximum ratios to a launch without a sandbox. The targets are 1.1 and 1.35, which an idle machine
reaches with 1.07 and 1.08."""
MANIFEST = """\
version: 1
agents:
  trades: {harness: claude-code, sandbox: on}
"""
PROGRAM = """\
import json, sys, time, uuid
from contextlib import closing
from pathlib import Path
import msgspec
from rekindle import config
from rekindle.documents.launches.launch_types import LaunchSpec
from rekindle.flows.launches import sandboxed_start
from rekindle.system.processes.child_processes import HostProcesses
from rekindle.wiring.make_agent import make_agent
from rekindle.wiring.open_store import open_store

project = config.load_project(Path.cwd())
agent = make_agent(project, open_store(project), "trades", ())
with_proxy = sandboxed_start.allowed_hosts.list_hosts
closed = sandboxed_start.SandboxCommand
share_network = lambda **more: closed(**more | {"has_network": True})
variants = {
    "plain": (msgspec.structs.replace(agent, sandbox=None), with_proxy, closed),
    "sandbox": (agent, lambda *_: (), share_network),
    "proxy": (agent, with_proxy, closed),
}

def launch(name):
    agent, sandboxed_start.allowed_hosts.list_hosts, sandboxed_start.SandboxCommand = variants[name]
    argv = agent.harness.command(LaunchSpec(session=str(uuid.uuid4()))).argv
    began = time.monotonic()
    child = sandboxed_start.start_program(
        HostProcesses(), agent, argv, prompt="work", environment=agent.environment
    )
    answered = None
    with closing(child.follow(0.01)) as lines:
        for line in lines:
            if line and answered is None and b'"type":"assistant"' in line:
                answered = time.monotonic() - began
    assert child.code == 0, child.errors
    return answered

for name in variants:
    launch(name)
print(json.dumps([{name: launch(name) for name in variants} for _ in range(int(sys.argv[1]))]))
"""


def test_a_sandbox_hardly_delays_the_first_answer(claude, place, model):
    obstacle = probe.find_obstacle()
    prerequisites.require(obstacle.words if obstacle else None)
    (claude.project / "rekindle.yaml").write_text(MANIFEST)
    (claude.project / "PROMPT.md").write_text("Ship it.\n")
    model.play(Forever(Text("done")))
    rounds = []
    for _ in range(TRIES):
        started = place.start(
            [sys.executable, "-I", "-c", PROGRAM, str(ROUNDS)],
            env=claude.environment(LC_ALL="C.UTF-8"),
            cwd=claude.project,
        )
        assert started.wait(120) == 0, started.out + started.err
        rounds += json.loads(started.out)
        shortest = {name: min(times[name] for times in rounds) for name in rounds[0]}
        ratios = [shortest[name] / shortest["plain"] for name in ("sandbox", "proxy")]
        if ratios[0] <= WITHOUT_PROXY and ratios[1] <= WITH_PROXY:
            break
    told = ", ".join(f"{name} {1000 * seconds:.0f} ms" for name, seconds in shortest.items())
    print(f"\n{told}: {ratios[0]:.2f} without the proxy, {ratios[1]:.2f} with it")
    assert ratios[0] <= WITHOUT_PROXY
    assert ratios[1] <= WITH_PROXY
