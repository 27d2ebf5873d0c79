"""Which settings need the operator's consent."""

import pytest

from rekindle.documents import manifest
from rekindle.policy.settings.consent import (
    UNCONTROLLED_KEYS,
    compare_settings,
    render_changes,
    select_controlled,
)

BASE = """\
version: 1
agents:
  trades:
    harness: command
    prompt: PROMPT.md
    rules: RULES.md
    convergence: true
    handover: {compaction: off}
  docs:
    harness: codex
"""


def controlled(more="", shared=""):
    text = BASE.replace("    rules: RULES.md\n", f"    rules: RULES.md\n{more}") + shared
    return select_controlled(manifest.parse(text), "trades")


CHANGES = {
    "harness": ("    harness: codex\n", ""),
    "command": ("    command: [sh, -c, evil]\n", ""),
    "until": ("    until: [sh, -c, evil]\n", ""),
    "env": ("    env: {PYTHONPATH: /evil}\n", ""),
    "budget": ("    budget: {usd: 1000}\n", ""),
    "persona": ("    persona: root\n", ""),
    "dir": ("    dir: elsewhere\n", ""),
    "cycles": ("    cycles: 0\n", ""),
    "mode": ("    mode: stay\n", ""),
    "personas": ("", "personas: {root: {permissions: {allowed_tools: [Bash]}}}\n"),
    "notify": ("", "notify: ['json://evil.example']\n"),
    "prices": ("", "prices: {m: {input: 0, output: 0}}\n"),
    "runtime": ("", "runtime: {restart: {max_crashes: 1000}}\n"),
    "redact": ("", "redact: {allow: ['.*']}\n"),
    "fleet": ("", "fleet: {address: 'evil.example:7233'}\n"),
}


@pytest.mark.parametrize("key", CHANGES)
def test_what_starts_permits_or_pays_is_controlled(key):
    """A change of any of these is seen, and named."""
    more, shared = CHANGES[key]
    if key == "harness":
        text = BASE.replace("harness: command", "harness: codex")
        after = select_controlled(manifest.parse(text), "trades")
    else:
        after = controlled(more, shared)
    [change] = compare_settings(controlled(), after)
    assert key in change.key
    assert change.render() == render_changes([change])


def test_every_key_of_an_agent_is_controlled_or_free():
    """A key that is added to the manifest is controlled unless it is listed as free."""
    keys = set(manifest.AgentEntry.__struct_fields__)
    assert keys >= UNCONTROLLED_KEYS
    assert {"command", "until", "env", "budget", "harness", "persona"}.isdisjoint(UNCONTROLLED_KEYS)


@pytest.mark.parametrize("old", ["RULES.md", "PROMPT.md", "harness: codex"])
def test_the_task_and_other_agents_are_free(old):
    """Another prompt, other rules and another agent's settings change nothing here."""
    text = BASE.replace(old, old.replace("RULES", "MORE").replace("PROMPT", "T").replace("x", "x2"))
    assert text != BASE
    assert compare_settings(controlled(), select_controlled(manifest.parse(text), "trades")) == []


def test_a_path_that_leads_outside_is_controlled():
    """A free key is controlled once it leads outside the project."""
    text = manifest.parse(BASE)
    after = select_controlled(text, "trades", {"agents.trades.prompt": "/etc/passwd"})
    [change] = compare_settings(controlled(), after)
    assert change.render() == 'agents.trades.prompt: added "/etc/passwd"'


def test_changes_are_short_and_harmless():
    """However long or hostile a value is, the line stays one line; further changes are counted."""
    evil = {"a": "x" * 5000 + "\n\x1b]0;title\x07"}
    [change] = compare_settings({}, evil)
    assert len(change.render()) < 200
    assert "5024 characters; read all of them in rekindle.yaml" in change.render()
    assert change.render().isprintable()
    many = compare_settings({}, {f"k{number}": number + 1 for number in range(9)})
    assert render_changes(many).endswith("; and 6 more")
    assert compare_settings({"a": 1}, {})[0].render() == "a: 1 → removed"


def test_what_differs_is_shown_however_long_the_value_is():
    """Two values that begin alike do not look alike."""
    begin = "make all; " * 40
    [change] = compare_settings({"a": [begin + "end"]}, {"a": [begin + "touch x; end"]})
    before, after = change.render().split(" → ")
    assert before.endswith('make all; make all; make all; []end"]')
    assert after.endswith('make all; make all; make all; [touch x; ]end"]')
    assert len(after) < 100


def test_an_added_value_is_shown_to_its_end():
    [change] = compare_settings({}, {"a": "x" * 900 + "\ntouch y"})
    assert change.render().endswith('x\\ntouch y"')


def test_characters_that_are_not_seen_are_escaped():
    [change] = compare_settings({"a": "ab"}, {"a": "a\u200bb\u202e\U000e0041"})
    assert change.render() == r'a: "ab" → "a\u200bb\u202e\U000e0041"'


def test_an_address_is_shown_without_its_secrets():
    """Any part of it but the scheme may be a token; a variable is not one."""
    [change] = compare_settings(
        {"notify": ["$ALERTS"]}, {"notify": ["slack://t0ken/b", "ntfys://$TOPIC"]}
    )
    assert change.render() == 'notify: ["$ALERTS"] → ["slack://…", "ntfys://$TOPIC"]'
