"""Text that Rekindle writes into a manifest: it reads back, and all other text is unchanged."""

import msgspec
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from rekindle.documents import manifest, manifest_edit
from rekindle.documents.manifest import AgentEntry, Manifest, Permissions
from rekindle.errors import ManifestError
from sampling import examples

AGENT_NAMES = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,10}\Z", fullmatch=True)
PATHS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
MANIFEST = """\
# ours
version: 1
agents:
  trades:
    harness: claude-code
    prompt: PROMPT.md
    env:
      A: b
personas:
  summarizer:
    permissions:
      deny:
        - Write(*)
notify: []
"""


def test_a_new_manifest_has_five_lines_below_its_schema():
    """All other keys have defaults."""
    text = manifest_edit.compose("trades", "claude-code", "PROMPT.md")
    assert text == (
        "# yaml-language-server: $schema=.rekindle/rekindle.schema.json\n"
        "version: 1\nagents:\n  trades:\n    harness: claude-code\n    prompt: PROMPT.md\n"
    )


@given(AGENT_NAMES, AGENT_NAMES, PATHS)
@example("on", "null", "yes")
@example("1", "0x1f", "a: b #c")
@example("a", "1e5", "'\"\\\n\x85\u2028 ")
@settings(max_examples=examples(200))
def test_a_composed_manifest_reads_back(agent, harness, prompt):
    """Whatever YAML could make of the words."""
    found = manifest.parse(manifest_edit.compose(agent, harness, prompt))
    assert found == Manifest(version=1, agents={agent: AgentEntry(harness=harness, prompt=prompt)})


@pytest.mark.parametrize(
    "text",
    [
        MANIFEST,
        MANIFEST.replace("\n", "\r\n"),
        "\ufeff" + MANIFEST,
        MANIFEST.replace("agents:\n", "agents:   # all of them\n\n  # the first\n"),
        "version: 1\nagents:\n      far:\n          harness: x\n",
        "version: 1\nagents:\n a: {harness: x}\n",
        "version: 1\nagents:\n",
        "version: 1\nagents:",
        "version: 1\nagents:\n  # none yet\nruntime: {}\n",
        "version: 1\n",
        "version: 1",
        "version: 1\nfleet:\n  # \u2028\n  note: |\n    agents:\n      x\n",
        "# agents:\nversion: 1\nnotify: ['\n  agents:\n  ']\nagents:\n  a: {harness: x}\n",
    ],
)
def test_another_agent_leaves_every_other_byte(text):
    """Its three lines are put in, nothing else changes, and the result loads."""
    before = manifest.parse(text)
    added = manifest_edit.add_agent_entry(text, "new", "codex", "P.md")
    after = manifest.parse(added)
    assert after.agents == {"new": AgentEntry(harness="codex", prompt="P.md"), **before.agents}
    own = [
        line
        for line in added.splitlines(keepends=True)
        if line not in text.splitlines(keepends=True)
    ]
    entry = [line.strip() for line in own if line.strip() not in {"agents:", "version: 1"}]
    assert entry == ["new:", "harness: codex", "prompt: P.md"]
    start = added.index("new:")
    rest = added[added.index("prompt: P.md") + len("prompt: P.md\n") :]
    assert text.startswith(added[:start].rstrip().removesuffix("agents:").rstrip())
    assert text.endswith(rest)
    assert msgspec.structs.replace(after, agents={}) == msgspec.structs.replace(before, agents={})


@pytest.mark.parametrize(
    "text",
    [
        "version: 1\nagents: {}\n",
        "version: 1\nagents: {a: {harness: x}}\n",
        "version: 1\n'agents':\n  a: {harness: x}\n",
        "version: 1\nagents: &x\n  a: {harness: x}\n",
        "{version: 1}\n",
        "  version: 1\n",
        "version: 1\n...\n",
        "version: 1\nagents:\n  {a: {harness: x}}\n",
    ],
)
def test_a_file_that_cannot_take_another_agent_is_left_alone(text):
    """The error shows the lines to add by hand."""
    assert manifest.parse(text)
    with pytest.raises(ManifestError, match="not written as a block") as left:
        manifest_edit.add_agent_entry(text, "new", "codex", "P.md")
    assert "  new:\n    harness: codex\n    prompt: P.md\n" in left.value.hint


def test_an_agent_is_added_once():
    """A second of the same name is refused."""
    with pytest.raises(ManifestError, match="there is already an agent 'trades'"):
        manifest_edit.add_agent_entry(MANIFEST, "trades", "codex", "P.md")


@given(AGENT_NAMES, st.lists(AGENT_NAMES, unique=True, max_size=4), st.integers(1, 6))
def test_any_agent_can_be_added_to_any_agents(agent, others, indent):
    """At the indent that the others have."""
    assume(agent not in others)
    listed = "".join(f"{' ' * indent}{name}: {{harness: x}}\n" for name in others)
    added = manifest_edit.add_agent_entry(
        f"version: 1\nagents:\n{listed}notify: []\n", agent, "codex", "P.md"
    )
    assert list(manifest.parse(added).agents) == [agent, *others]


PERSONA = "  # what it may do\n  reader:\n    permissions:\n"


@pytest.mark.parametrize(
    ("permissions", "rules"),
    [
        (Permissions(allowed_tools=["Read", "Grep"]), "      allowed_tools: [Read, Grep]\n"),
        (Permissions(deny=["Edit"]), "      deny: [Edit]\n"),
        (
            Permissions(allowed_tools=[], deny=["Edit"]),
            "      allowed_tools: []\n      deny: [Edit]\n",
        ),
    ],
)
def test_a_persona_is_added_above_the_agents(permissions, rules):
    """All other text stays, and a persona that exists is not added again."""
    text = "version: 1\nagents:\n  a:\n    harness: codex\n"
    found = manifest_edit.add_persona_entry(text, "reader", permissions, "what it may do")
    assert found == f"version: 1\npersonas:\n{PERSONA}{rules}agents:\n  a:\n    harness: codex\n"
    again = manifest_edit.add_persona_entry(found, "reader", permissions, "other words")
    assert again == found


def test_a_persona_is_added_beside_others_with_their_indent():
    """At the start of the section, or at the end of a file without sections."""
    text = "version: 1\npersonas:\n    old: {}\n"
    found = manifest_edit.add_persona_entry(
        text, "reader", Permissions(deny=["Edit"]), "what it may do"
    )
    assert found == (
        "version: 1\npersonas:\n    # what it may do\n    reader:\n      permissions:\n"
        "        deny: [Edit]\n    old: {}\n"
    )
    alone = manifest_edit.add_persona_entry(
        "version: 1", "reader", Permissions(deny=["Edit"]), "what it may do"
    )
    assert alone == f"version: 1\npersonas:\n{PERSONA}      deny: [Edit]\n"
