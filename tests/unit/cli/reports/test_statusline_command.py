"""`rekindle statusline` in a folder with one agent, several agents, and none."""

import io
import json
import sys

import pytest

from rekindle.cli import main

ONE = "  trades: {harness: claude-code}\n"


@pytest.fixture
def print_line(tmp_path, monkeypatch, capsys):
    """Run the command with what a CLI writes to it."""
    monkeypatch.chdir(tmp_path)

    def run(**facts):
        data = io.BytesIO(json.dumps(facts).encode())
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(data))
        assert main.run(["statusline"]) == 0
        return capsys.readouterr().out

    return run


def write_manifest(folder, agents):
    (folder / "rekindle.yaml").write_text(f"version: 1\nagents:\n{agents}")


def test_the_agent_of_the_folder_is_shown(tmp_path, print_line):
    write_manifest(tmp_path, ONE)
    assert print_line() == "trades: stopped\n"
    assert print_line(cost={"total_cost_usd": 0.5}) == "trades: stopped · $0.50\n"


def test_the_cli_names_the_folder_and_the_environment_the_agent(tmp_path, print_line, monkeypatch):
    shop = tmp_path / "shop"
    shop.mkdir()
    write_manifest(shop, f"{ONE}  docs: {{harness: codex}}\n")
    where = {"workspace": {"project_dir": str(shop)}}
    assert print_line(**where) == "2 agents\n"
    monkeypatch.setenv("REKINDLE_AGENT", "docs")
    assert print_line(**where) == "docs: stopped\n"


def test_a_folder_without_agents_shows_the_session(print_line):
    assert print_line() == "rekindle: no agent here\n"
    assert print_line(context_window={"used_percentage": 7}) == "window 7%\n"


def test_a_broken_manifest_is_named_on_one_line(tmp_path, print_line):
    (tmp_path / "rekindle.yaml").write_text("version: [\n")
    out = print_line()
    assert out.startswith("rekindle: ")
    assert out.count("\n") == 1
