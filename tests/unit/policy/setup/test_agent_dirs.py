"""Which agent a folder belongs to; the hook program decides the same."""

import itertools

import pytest

from rekindle.hook import session_agent
from rekindle.policy.setup.agent_dirs import (
    AgentDir,
    choose_agents,
)

DIRS = [
    AgentDir("root", "claude-code", "/p"),
    AgentDir("trades", "claude-code", "/p/trades"),
    AgentDir("desk", "claude-code", "/p/trades/desk"),
    AgentDir("one", "claude-code", "/p/shared"),
    AgentDir("two", "codex", "/p/shared"),
    AgentDir("twin", "codex", "/p/shared"),
    AgentDir("away", "codex", "/elsewhere"),
]


@pytest.mark.parametrize(
    ("place", "harness", "chosen"),
    [
        ("/p", "", ["root"]),
        ("/p/src/deep", "", ["root"]),
        ("/p/trades", "", ["trades"]),
        ("/p/trades/", "codex", ["trades"]),
        ("/p/trades/desk/x", "", ["desk"]),
        ("/p/trades-eu", "", ["root"]),
        ("/p/shared", "", ["one", "two", "twin"]),
        ("/p/shared", "claude-code", ["one"]),
        ("/p/shared/x", "codex", ["two", "twin"]),
        ("/p/shared", "gemini", ["one", "two", "twin"]),
        ("/elsewhere/x", "", ["away"]),
        ("/", "", []),
        ("/q", "claude-code", []),
    ],
)
def test_the_innermost_folder_counts(place, harness, chosen):
    assert choose_agents(DIRS, place, harness) == chosen


def test_the_hook_program_chooses_the_same():
    """It imports nothing of ours, and so has a function of its own."""
    parts = ["", "p", "trades", "desk", "shared", "elsewhere", "x"]
    places = {f"/{'/'.join(names)}" for names in itertools.product(parts, repeat=4)}
    dirs = [*DIRS, AgentDir("top", "gemini", "/")]
    rows = [[one.agent, one.harness, one.path] for one in dirs]
    for place in places:
        for harness in ("", "claude-code", "codex", "gemini"):
            chosen = choose_agents(dirs, place, harness)
            assert session_agent.choose_agents(rows, place, harness) == chosen, (place, harness)
