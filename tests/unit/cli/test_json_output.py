"""One vocabulary for programs: every command prints an object with its version."""

import ast
import re
from pathlib import Path

import output_page
import pytest

from conftest import put_clis_on_path
from rekindle import cli
from rekindle.cli import main
from rekindle.cli.output import print_json

SOURCE = Path(cli.__file__).parent
SEPARATE = {"relay_replay.py", "redact_command.py", "config_command.py"}
"""Modules that print JSON without a version: two fixed shapes, and a JSON Schema."""
PLAIN = [
    ["status"],
    ["status", "--all"],
    ["doctor"],
    ["questions"],
    ["loops"],
    ["loops", "add", "l1", "Ask them"],
    ["relay", "history"],
    ["hooks", "status"],
    ["hooks", "install", "--all"],
    ["hooks", "uninstall", "--all"],
    ["decisions"],
    ["decisions", "--all"],
    ["config", "explain"],
    ["brief", "--all"],
    ["brief", "--due"],
    ["brief", "--mechanical"],
    ["watch", "--once"],
    ["watch", "--once", "--all"],
    ["events"],
    ["stop"],
    ["restart", "trades"],
    ["down"],
]
"""Commands that need an agent and nothing else."""


@pytest.fixture
def rekindle(tmp_path, tmp_path_factory, monkeypatch, capfd):
    """Run a command in a project with one agent; return its output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REKINDLE_AGENT", raising=False)
    put_clis_on_path(tmp_path_factory.mktemp("clis"), monkeypatch)

    def run(*arguments):
        assert main.run(list(arguments)) in {0, 8}
        return capfd.readouterr().out

    run("init", "--yes", "--agent", "trades", "--harness", "claude-code")
    (tmp_path / "PROMPT.md").write_text("Ship it.\n")
    return run


def test_every_command_prints_objects_with_a_version(rekindle, printed):
    for words in PLAIN:
        assert rekindle(*words, "--json").startswith('{"v":1,'), words
    assert {command for command, _ in printed} >= {"status", "hooks install", "decisions"}


def test_every_command_is_on_the_page():
    named = {*output_page.OUTPUTS, *output_page.FIXED, *output_page.EVENTS}
    assert {*output_page.list_commands()} == named


def test_a_key_that_the_page_does_not_name_is_found():
    entry = {"agent": "trades", "window": {"tokens": {"value": 1, "unit": "t"}}, "mood": "good"}
    found = output_page.find_unnamed("status", {"v": 1, "agents": [entry], "extra": 0})
    assert found == ["agents[].mood", "agents[].window.tokens.unit", "extra"]


def test_every_key_on_the_page_is_in_the_source():
    """A removed or renamed key would otherwise stay on the page."""
    source = "\n".join(path.read_text("utf-8") for path in SOURCE.parent.rglob("*.py"))
    words = set(re.findall(r"\w+", source))
    keys = {re.split(r"[.\]]", key)[-1] for one in output_page.OUTPUTS.values() for key in one.keys}
    assert keys - words == set()


def test_only_one_function_prints_json_without_a_version():
    callers = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "print_bare_json":
                callers.add(path.name)
    assert callers == {*SEPARATE, "output.py"}


def test_the_version_comes_first(capfd):
    print_json({"agent": "trades"})
    assert capfd.readouterr().out == '{"v":1,"agent":"trades"}\n'
