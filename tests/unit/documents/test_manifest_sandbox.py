"""`sandbox:` of an agent and of a persona, and the line of each mistake in it."""

import pytest

from rekindle.documents import manifest
from rekindle.documents.manifest_sandbox import SandboxEntry
from rekindle.errors import ManifestError

TEXT = """\
version: 1
agents:
  trades:
    harness: codex
    sandbox: {agent}
personas:
  default:
    sandbox: {persona}
"""


@pytest.mark.parametrize(
    ("value", "parsed"),
    [
        ("on", True),
        ("off", False),
        ("", None),
        ("{}", SandboxEntry()),
        (
            "{write: [cache], read: [~/.gitconfig], memory: 8G, processes: 512}",
            SandboxEntry(["cache"], ["~/.gitconfig"], None, "8G", 512),
        ),
        ("{cpu: 1.5}", SandboxEntry(cpu=1.5)),
        ("{cpu: 2}", SandboxEntry(cpu=2)),
        (
            "{network: [packages.example.org, 'db.local:5432']}",
            SandboxEntry(network=["packages.example.org", "db.local:5432"]),
        ),
    ],
)
def test_a_sandbox_is_on_off_or_on_with_additions(value, parsed):
    read = manifest.parse(TEXT.format(agent=value, persona=value))
    assert read.agents["trades"].sandbox == parsed
    assert read.personas["default"].sandbox == parsed


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("maybe", "agents.trades.sandbox: expected one of on, off, container, got 'maybe'"),
        ("{wrote: [x]}", "unknown key 'agents.trades.sandbox.wrote'"),
        ("{write: x}", "agents.trades.sandbox.write: expected a list"),
        ("{memory: lots}", "agents.trades.sandbox.memory"),
        ('{memory: "8G\\n"}', "agents.trades.sandbox.memory"),
        ("{memory: 999999999999T}", "agents.trades.sandbox.memory"),
        (
            "{processes: 0}",
            "agents.trades.sandbox.processes: expected a whole number of at least 1",
        ),
        ("{cpu: 0}", "agents.trades.sandbox.cpu"),
        ("{cpu: many}", "agents.trades.sandbox.cpu"),
        ("{cpu: .inf}", "agents.trades.sandbox.cpu"),
        ("{cpu: .nan}", "agents.trades.sandbox.cpu"),
        ("{network: ['https://x']}", "agents.trades.sandbox.network.0"),
    ],
)
def test_a_mistake_is_reported_with_its_line(value, words):
    with pytest.raises(ManifestError) as raised:
        manifest.parse(TEXT.format(agent=value, persona="off"))
    assert words in str(raised.value)
    assert raised.value.line == 5
