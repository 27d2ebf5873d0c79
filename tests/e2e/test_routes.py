"""Work continues on another CLI or account when one refuses, with the real CLIs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.handing import MARK
from e2e.routing import Clis, Routing, call, refuse
from loopback.anthropic import Anthropic
from loopback.gemini import Gemini
from loopback.model import Model
from loopback.openai import OpenAI
from loopback.script import Forever, Text

pytestmark = pytest.mark.timeout(400)

MANIFEST = """\
version: 1
agents:
  trades:
    harness: [claude-code, codex, {use: gemini, persona: of-gemini}]
    prompt: PROMPT.md
    cycles: 1
    until: ["true"]
runtime: {relay: {summarizer: mechanical}}
personas:
  default: {permissions: {allowed_tools: [Bash, Read]}}
  of-gemini: {permissions: {allowed_tools: [run_shell_command, read_file]}}
"""


ACCOUNTS = """\
version: 1
agents:
  trades:
    harness: [claude-code, codex]
    accounts: [work, own, spare]
    prompt: PROMPT.md
    cycles: {cycles}
    until: ["{until}"]
accounts:
  work: {{harness: claude-code, config_dir: {home}/work}}
  own: {{harness: claude-code, config_dir: {home}/own}}
  spare: {{harness: codex, config_dir: {home}/spare}}
runtime:
  relay: {{summarizer: mechanical}}
  accounts: {{switch: {switch}}}
personas:
  default: {{permissions: {{allowed_tools: [Bash, Read]}}}}
"""


@pytest.fixture
def programs(claude_program: Path, codex_program: Path, gemini_program: Path) -> dict[str, Path]:
    return {"claude": claude_program, "codex": codex_program, "gemini": gemini_program}


@pytest.fixture
def routing(programs, network, place, tmp_path: Path) -> Iterator[Routing]:
    """Return a project with all three CLIs, each with its own model."""
    with (
        Model(Anthropic(), network.listener) as one,
        Model(OpenAI(), network.listen(0)) as two,
        Model(Gemini(), network.listen(0)) as three,
    ):
        models = {"claude": one, "codex": two, "gemini": three}
        yield Routing(Clis(tmp_path / "clis", programs, models), place)


def test_one_cycle_moves_from_claude_code_to_codex_to_gemini(routing):
    """Each CLI gets the checkpoint of the one before, with the persona's limits, in one log."""
    routing.begin(MANIFEST)
    routing.claude.play(call("claude", "a"), Forever(refuse("claude")))
    routing.codex.play(call("codex", "b"), Forever(refuse("codex")))
    routing.gemini.play(call("gemini", "c"), Text("all done"))
    started = routing.rekindle.start("run", "trades")
    assert started.wait() == 0, started.out + started.err
    assert routing.routes() == ["claude-code", "codex", "gemini"], started.out + started.err
    assert routing.exits() == ["limit", "limit", "clean"]
    assert routing.worked == "abc"
    for model in (routing.codex, routing.gemini):
        (opening, *_) = [one for one in model.log.main if not one.results]
        assert MARK in opening.text
    assert {one["cycle"] for one in routing.rekindle.events("launch.started")} == {1}


@pytest.fixture
def own_model(network) -> Iterator[Model]:
    """Start the model of a second account of Claude Code."""
    with Model(Anthropic(), network.listen(0)) as served:
        yield served


@pytest.fixture
def accounts(routing, own_model) -> Routing:
    """Return a project with two accounts of Claude Code and one of Codex."""
    clis, home = routing.clis, routing.clis.home
    clis.make_claude(home / "work", routing.claude)
    clis.make_claude(home / "own", own_model)
    clis.make_codex(home / "spare", key="sk-test-spare")
    routing.own = own_model
    return routing


def begin(routing, *, cycles=1, until="true", switch="true"):
    home = routing.clis.home
    routing.begin(ACCOUNTS.format(home=home, cycles=cycles, until=until, switch=switch))


def test_a_session_continues_on_the_next_account(accounts):
    """The session keeps its id and its turns; another CLI gets a checkpoint after that."""
    begin(accounts)
    accounts.claude.play(call("claude", "a"), Forever(refuse("claude")))
    accounts.own.play(call("claude", "b"), Forever(refuse("claude")))
    accounts.codex.play(call("codex", "c"), Text("all done"))
    started = accounts.rekindle.start("run", "trades")
    assert started.wait() == 0, started.out + started.err
    routes = ["claude-code/work", "claude-code/own", "codex/spare"]
    assert accounts.routes() == routes, started.out + started.err
    assert accounts.worked == "abc"
    first, second, third = accounts.rekindle.events("launch.started")
    assert first["session"] == second["session"] != third["session"]
    assert [one.text for one in accounts.own.log.main[0].results] != []
