"""The entry of a worker's agent: the step's keys, and a worker's defaults."""

import pytest

from rekindle.documents import manifest
from rekindle.documents.manifest_keys import Budget, Handover
from rekindle.documents.manifest_sandbox import SandboxEntry
from rekindle.policy.pipelines.worker_entry import make_entry, make_merging_entry

TEXT = """\
version: 1
agents:
  trades: {harness: claude-code, env: {KEY: $KEY}, accounts: [work, spare]}
  prices: {harness: claude-code, env: {KEY: $KEY}}
  other: {harness: codex, command: [wrapped, codex]}
  third: {harness: codex, accounts: [spare]}
accounts:
  work: {harness: claude-code, config_dir: ~/work}
  spare: {harness: codex, config_dir: ~/spare}
personas:
  free: {adapter: codex, sandbox: off}
  limited: {adapter: codex, sandbox: {network: [example.org]}}
  program: {adapter: command, command: ./build}
pipelines:
  ship:
    copy: [.env]
    prepare: npm ci
    steps:
      - {id: plain, prompt: Do it.}
      - id: full
        persona: limited
        prompt: Do it.
        cycles: 3
        until: just test
        convergence: on
        handover: {compaction: {trigger: "token_limit_80%"}}
        merge: {conflicts: agent, persona: free}
      - {id: free, persona: free, prompt: Do it.}
      - {id: program, persona: program, prompt: Do it.}
      - {id: lint, run: just lint, persona: limited}
"""
CAP = Budget(usd=3, hours=2)


@pytest.fixture
def make():
    parsed = manifest.parse(TEXT)
    steps = {step.id: step for step in parsed.pipelines["ship"].steps}

    def make(step, harness="codex", how=make_entry):
        pipeline = parsed.pipelines["ship"]
        return how(
            parsed, pipeline, steps[step], harness=harness, prompt="/run/plain.md", budget=CAP
        )

    return make


def test_a_worker_has_its_own_clone_a_sandbox_and_one_cycle(make):
    entry = make("plain", "claude-code")
    assert (entry.workspace, entry.sandbox, entry.cycles) == ("clone", True, 1)
    assert (entry.harness, entry.persona, entry.prompt) == ("claude-code", None, "/run/plain.md")
    assert (entry.copy, entry.prepare, entry.budget) == ([".env"], ["npm", "ci"], CAP)
    assert (entry.until, entry.convergence, entry.handover) == (None, None, None)


def test_the_step_decides_how_its_agent_works(make):
    entry = make("full")
    assert (entry.cycles, entry.until, entry.convergence) == (3, ["just", "test"], True)
    assert isinstance(entry.handover, Handover)
    assert entry.handover.compaction.trigger == "token_limit_80%"
    assert entry.persona == "limited"


def test_only_the_persona_can_turn_the_sandbox_off(make):
    assert make("free").sandbox is False
    assert make("full").sandbox == SandboxEntry(network=["example.org"])


def test_a_worker_uses_what_all_agents_with_its_cli_use(make):
    assert make("plain", "claude-code").env == {"KEY": "$KEY"}
    assert make("free").command is None, "only one of the two agents has a wrapper"
    assert make("program", "command").command == ["./build"]


def test_a_worker_uses_the_accounts_of_the_agents(make):
    """Otherwise it would use an unlisted login or key."""
    assert make("plain", "claude-code").accounts == ["work", "spare"]
    assert make("lint", "").accounts is None


def test_a_command_is_the_check_of_an_agent_that_does_nothing(make):
    entry = make("lint", "")
    assert (entry.harness, entry.command, entry.until) == ("command", ["true"], ["just", "lint"])
    assert (entry.cycles, entry.persona, entry.env) == (1, None, None)
    assert entry.sandbox == SandboxEntry(network=["example.org"])
    assert entry.budget == Budget(hours=2), "a command spends neither dollars nor tokens"


def test_a_worker_that_merges_has_its_own_persona(make):
    entry = make("full", how=make_merging_entry)
    assert (entry.persona, entry.sandbox, entry.until, entry.cycles) == ("free", False, None, 1)
