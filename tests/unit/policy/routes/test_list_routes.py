"""The routes that a manifest gives an agent."""

import pytest

from rekindle.documents import manifest
from rekindle.policy.routes.list_routes import list_accounts, list_routes

ALIASES = {"claude": "claude-code"}
TEXT = """\
version: 1
agents:
  a:
    harness: {harness}
    accounts: [work, own, other]
accounts:
  work: {{harness: claude, config_dir: ~/w}}
  own: {{harness: claude-code, config_dir: ~/o}}
  other: {{harness: codex, config_dir: ~/x}}
"""


@pytest.mark.parametrize(
    ("harness", "switches", "routes"),
    [
        ("gemini", True, ["gemini"]),
        ("claude", True, ["claude-code/work", "claude-code/own"]),
        ("claude", False, ["claude-code/work"]),
        ("[codex, claude, gemini]", False, ["codex/other", "claude-code/work", "gemini"]),
        ("[codex, codex]", True, ["codex/other"]),
        (
            "[claude, codex]",
            True,
            ["claude-code/work", "claude-code/own", "codex/other"],
        ),
    ],
)
def test_order(harness, switches, routes):
    """CLIs come in order, and within each CLI its accounts."""
    found = list_routes(
        manifest.parse(TEXT.format(harness=harness)), "a", ALIASES, switches=switches
    )
    assert [str(plan.route) for plan in found] == routes


def test_an_unknown_account_adds_no_route():
    """The start checks refuse it; here it only does not count."""
    parsed = manifest.parse(TEXT.format(harness="codex").replace("other]", "gone]"))
    assert list_accounts(parsed, parsed.agents["a"], "codex", ALIASES) == []
