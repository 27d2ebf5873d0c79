"""The keys that say where an agent's work can run."""

import pytest

from rekindle.documents import manifest
from rekindle.documents.manifest_routes import AccountEntry, HarnessEntry
from rekindle.errors import ManifestError

LISTED = """\
version: 1
agents:
  a:
    harness:
      - claude-code
      - {use: codex, persona: careful, command: "codex --fast"}
      - gemini
    persona: own
    command: ["claude", "--quick"]
"""


def test_a_list_of_harnesses_fills_in_the_agents_keys():
    """The first CLI is the agent's own; the others have its persona, but not its program."""
    entry = manifest.parse(LISTED).agents["a"]
    own = ["claude", "--quick"]
    assert (entry.harness, entry.persona, entry.command) == ("claude-code", "own", own)
    assert entry.harnesses == [
        HarnessEntry("claude-code", "own", own),
        HarnessEntry("codex", "careful", ["codex", "--fast"]),
        HarnessEntry("gemini", "own", None),
    ]


def test_the_first_item_can_have_its_own_persona():
    """It is the persona of the agent wherever only the first CLI counts."""
    listed = "harness: [{use: codex, persona: one}, gemini], persona: two"
    entry = manifest.parse(f"version: 1\nagents: {{a: {{{listed}}}}}\n").agents["a"]
    assert entry.harnesses
    assert (entry.harness, entry.persona) == ("codex", "one")
    assert entry.harnesses[1].persona == "two"


@pytest.mark.parametrize(
    ("listed", "words"),
    [
        ("harness: []", "does not name a CLI"),
        ("harness: [{persona: p}, codex]", "does not name a CLI"),
        ("harness: [codex, {persona: p}]", "use"),
        ("harness: [codex, {use: x, cycles: 1}]", "cycles"),
        ("harness: codex, harnesses: [{use: x}]", "unknown key 'agents.a.harnesses'"),
        ("harness: [codex, {name: x}]", "unknown key 'agents.a.harness.1.name'"),
        ("harness: codex, harneses: x", "did you mean `harness`"),
        ("harness: codex, zzz: x", "accounts, priority"),
        ("harness: codex, priority: 1", "agents.a.priority: expected one of high, normal, low"),
    ],
)
def test_a_wrong_list_is_refused_with_its_line(listed, words):
    """The message names what is wrong, and the line of the list."""
    with pytest.raises(ManifestError) as caught:
        manifest.parse(f"version: 1\nagents:\n  a: {{{listed}}}\n")
    assert words in f"{caught.value} {caught.value.hint}"
    assert caught.value.line == 3


def test_accounts_name_folders():
    """An account belongs to one CLI, and its folder contains the login."""
    text = "version: 1\naccounts: {work: {harness: codex, config_dir: ~/w}}\n"
    assert manifest.parse(text).accounts == {"work": AccountEntry("codex", "~/w")}
