"""Fixtures of several sweeps."""

import pytest

from loopback.place import Place
from rekindle.system.sandbox import probe
from torture.clis import Cli
from torture.test_kill import prepared

__all__ = ["prepared"]

_FIXTURES = {
    "claude-code": ("claude", "model"),
    "codex": ("codex", "openai_model"),
    "gemini": ("gemini", "gemini_model"),
}


@pytest.fixture
def cli(request: pytest.FixtureRequest, place: Place) -> Cli:
    """The CLI that the test's parameter names, in a sandbox and a place of its own."""
    sandbox, scripted = map(request.getfixturevalue, _FIXTURES[request.param])
    return Cli(request.param, sandbox, scripted, place)


@pytest.fixture(autouse=True)
def _no_sandbox_probe(monkeypatch):
    """Let `doctor` start no process for its check of bubblewrap: a traced command must be one."""
    monkeypatch.setattr(probe, "find_obstacle", lambda: None)
