"""Personas: their relative commands, their model, and keys that a CLI cannot honour."""

import sys
from datetime import date

import pytest

from rekindle import config
from rekindle.cli import main
from rekindle.documents.launches.launch_types import WindowUsage
from rekindle.flows.supervision.supervisor import RunResult
from rekindle.policy.summaries.summary_request import SummaryRequest
from rekindle.wiring.access.trust_checks import accept_folder
from rekindle.wiring.open_store import open_store
from rekindle.wiring.starting.start_checks import (
    find_obstacles,
    find_prices,
)
from rekindle.wiring.starting.start_notes import find_unhonoured
from rekindle.wiring.summarizer_setup import make_headless

MANIFEST = """\
version: 1
agents:
  trades: {{harness: {harness}, persona: worker, dir: work, command: ./agent, prompt: PROMPT.md}}
personas:
  worker: {worker}
  summarizer: {summarizer}
"""


@pytest.fixture
def make(tmp_path):
    """A project with these personas; its agent works in a folder below it."""

    def make(worker="{}", summarizer="{}", harness="claude-code"):
        text = MANIFEST.format(worker=worker, summarizer=summarizer, harness=harness)
        (tmp_path / "rekindle.yaml").write_text(text)
        (tmp_path / "PROMPT.md").write_text("Ship it.\n")
        (tmp_path / "work/tools").mkdir(parents=True, exist_ok=True)
        return config.load_project(tmp_path)

    return make


def write_program(path):
    path.write_text(f"#!{sys.executable}\nimport sys\nprint(sys.argv[0], *sys.argv[1:])\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("command", "where"),
    [
        ("./tools/sum", "work/tools/sum"),
        ("./sum status", "sum"),
        (f"{sys.executable} tools/sum", "work/tools/sum"),
        (f"{sys.executable} sum.py", "sum.py"),
    ],
)
def test_a_persona_s_relative_command_is_found_like_the_agent_s(make, tmp_path, command, where):
    """In the agent's folder, then in the project's; the question itself is asked elsewhere."""
    project = make(summarizer=f"{{adapter: command, command: {command}}}")
    write_program(tmp_path / where)
    (tmp_path / "work/status").touch()  # an argument that is not a path stays unchanged
    asked = make_headless(project, open_store(project), "trades", {})
    answer = asked.ask(SummaryRequest("relay", "What was done?", ()))
    expected = " status" if "status" in command else ""
    assert answer.text == f"{tmp_path / where}{expected}"


def test_a_model_of_a_summarizer_reaches_its_cli(make, tmp_path):
    project = make(worker="{model: opus}", summarizer="{model: haiku}")
    write_program(tmp_path / "work/agent")
    asked = make_headless(project, open_store(project), "trades", {})
    assert asked.persona.model == "haiku"


@pytest.mark.parametrize(
    ("harness", "worker", "summarizer", "lines"),
    [
        ("claude-code", "{temperature: 0.2}", "{model: haiku}", ["worker", "temperature"]),
        ("codex", "{model: gpt-5.5}", "{temperature: 0}", ["summarizer", "temperature"]),
        ("gemini", "{temperature: 1}", "{}", ["worker", "temperature"]),
        (
            "claude-code",
            "{}",
            "{adapter: command, command: cat, model: small}",
            ["summarizer", "model"],
        ),
    ],
)
def test_a_key_that_the_cli_cannot_honour_is_named(make, harness, worker, summarizer, lines):
    (found,) = find_unhonoured(make(worker, summarizer, harness), "trades")
    persona, key = lines
    assert found.startswith(f"persona {persona}: `{key}:` has no effect: ")


@pytest.mark.parametrize("harness", ["claude-code", "codex", "gemini"])
def test_a_key_of_the_reviewer_that_its_cli_cannot_honour_is_named(make, tmp_path, harness):
    make(harness=harness)
    path = tmp_path / "rekindle.yaml"
    text = path.read_text().replace("dir: work", "dir: work, review: critic")
    path.write_text(f"{text}  critic: {{temperature: 0}}\n")
    [line] = find_unhonoured(config.load_project(tmp_path), "trades")
    assert line == f"persona critic: `temperature:` has no effect: {harness} has no option for it"


def test_a_program_is_refused_a_key_that_it_cannot_honour_and_told_once(make):
    project = make("{temperature: 0}", "{adapter: command, command: cat}", "command")
    refused = [one for one in find_obstacles(project, "trades") if "`temperature:`" in str(one)]
    assert len(refused) == 1
    assert find_unhonoured(project, "trades") == []


def test_a_handoff_that_a_program_cannot_do_is_named(make, tmp_path):
    make(harness="command")
    path = tmp_path / "rekindle.yaml"
    changed = 'dir: work, handover: {compaction: {trigger: "token_limit_80%"}}'
    path.write_text(path.read_text().replace("dir: work", changed))
    [line] = find_unhonoured(config.load_project(tmp_path), "trades")
    assert line.startswith("agent trades: `handover:` has no effect: command cannot be stopped")


def test_what_the_cli_honours_is_not_named(make):
    assert find_unhonoured(make("{model: opus}", "{model: haiku}"), "trades") == []


@pytest.mark.parametrize("words", [["run", "--once"], ["doctor"], ["config", "explain", "cycles"]])
def test_the_commands_report_it_once(make, tmp_path, monkeypatch, capfd, words):
    make("{temperature: 0.2}")
    (tmp_path / "work/agent").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "work/agent").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    ended = RunResult(0, None)
    monkeypatch.setattr("rekindle.cli.running.run_command.run_supervisor", lambda *_, **__: ended)
    accept_folder(tmp_path)
    main.run(words)
    said = capfd.readouterr()
    assert (said.out + said.err).count("persona worker: `temperature:` has no effect") == 1


@pytest.mark.parametrize(
    ("harness", "model", "dollars"),
    [("codex", "gpt-5.5", 35.0), ("gemini", "gemini-2.5-pro", 11.25)],
)
def test_a_cap_on_money_needs_no_prices_for_a_known_cli(make, tmp_path, harness, model, dollars):
    make(harness=harness)
    path = tmp_path / "rekindle.yaml"
    path.write_text(path.read_text().replace("dir: work", "dir: work, budget: {usd: 5}"))
    project = config.load_project(tmp_path)
    assert "costs" not in " ".join(map(str, find_obstacles(project, "trades")))
    turns = [
        WindowUsage(100_000, None, "reported", model),
        WindowUsage(0, None, "reported", model, written=100_000),
    ]
    prices, day = find_prices(project, "trades"), date(2026, 11, 18)
    assert sum(prices.compute_cost(turn, day) for turn in turns) * 10 == pytest.approx(dollars)


def test_a_program_of_which_nothing_is_known_has_no_list_price(make):
    assert not find_prices(make(harness="command"), "trades")


@pytest.mark.parametrize(
    ("harness", "is_refused"),
    [("kimi", True), ("acp", True), ("copilot", False), ("opencode", False), ("codex", False)],
)
def test_a_cap_on_money_needs_prices_if_neither_money_nor_tokens_are_reported(
    make, tmp_path, harness, is_refused
):
    make(harness=harness)
    path = tmp_path / "rekindle.yaml"
    path.write_text(f"{path.read_text()}quota: {{per_day: {{usd: 1}}}}\n")

    def is_found():
        refused = map(str, find_obstacles(config.load_project(tmp_path), "trades"))
        return any("does not report its costs" in each for each in refused)

    assert is_found() == is_refused
    path.write_text(f"{path.read_text()}prices: {{own: {{input: 1, output: 1}}}}\n")
    assert not is_found()


@pytest.mark.parametrize(
    ("cap", "is_refused"),
    [
        ("quota: {per_day: {usd: 1}}", True),
        ("quota: {per_month: {usd: 1}}", True),
        ("quota: {per_day: {tokens: 1}}", False),
        ("prices: {own: {input: 1, output: 1}}\nquota: {per_day: {usd: 1}}", False),
    ],
)
def test_a_cap_on_money_of_all_agents_needs_prices_for_an_unknown_program(
    make, tmp_path, cap, is_refused
):
    make(harness="command")
    path = tmp_path / "rekindle.yaml"
    path.write_text(f"{path.read_text()}{cap}\n")
    refused = map(str, find_obstacles(config.load_project(tmp_path), "trades"))
    assert any("does not report its costs" in each for each in refused) == is_refused
