"""The command that `init` proposes for `until:`, from a project's files."""

import json

import pytest

from rekindle.documents import manifest, manifest_edit
from rekindle.policy.setup.propose_until import (
    propose_until,
    render_until_lines,
)

NPM = json.dumps({"scripts": {"test": "vitest run"}})
NONE = json.dumps({"scripts": {"test": 'echo "Error: no test specified" && exit 1'}})


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"justfile": "build:\n\tx\n\ntest *args:\n\ty\n", "Cargo.toml": ""}, ["just", "test"]),
        ({"justfile": "check: lint\n\ty\n"}, ["just", "check"]),
        ({"justfile": 'test := "x"\n', "go.mod": ""}, ["go", "test", "./..."]),
        ({"package.json": NPM}, ["npm", "test"]),
        ({"package.json": NPM, "pnpm-lock.yaml": ""}, ["pnpm", "test"]),
        ({"package.json": NONE}, []),
        ({"package.json": "{"}, []),
        ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, ["python3", "-m", "pytest"]),
        ({"pyproject.toml": 'dev = ["pytest"]\n', "uv.lock": ""}, ["uv", "run", "pytest"]),
        ({"pyproject.toml": "[project]\n"}, []),
        ({"Cargo.toml": "[package]\n"}, ["cargo", "test"]),
        ({"go.mod": "module x\n"}, ["go", "test", "./..."]),
        ({"Makefile": ".PHONY: test\ntest: build\n\tx\n"}, ["make", "test"]),
        ({"Makefile": "build:\n\tx\n"}, []),
        ({}, []),
    ],
)
def test_a_project_s_own_tests_are_proposed(files, command):
    assert propose_until(files) == command


@pytest.mark.parametrize("command", [[], ["just", "test"]])
def test_the_lines_are_part_of_a_manifest(command):
    """Without a command they are comments."""
    text = manifest_edit.compose("trades", "codex", "PROMPT.md", render_until_lines(command))
    agent = manifest.parse(text).agents["trades"]
    assert (agent.until, agent.until_claimed) == ((command, True) if command else (None, None))
    assert "# until:" in text or command
