"""An exported agent is read only if the file is complete, unchanged and safe."""

import random
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from export_files import read_export
from rekindle.documents import agent_export, events, manifest
from rekindle.documents.agent_export import ExportHeader
from rekindle.errors import DocumentError

HEADER = ExportHeader(
    agent="trades",
    harness="codex",
    exported="2026-11-18",
    folder="/a/b",
    entry={"harness": "codex"},
    session="30bc600c-59d1-47d3-8b01-c0bbd4e423f5",
)
EVENT = events.render(events.LoopAdded(ts=datetime(2026, 11, 18, tzinfo=UTC), id="a", text="b"))
PARTS = {
    "agent/ops.jsonl": EVENT + b"\n{torn\n" * 40,
    "agent/memories/consensus.md": b"## Next Action\nGo on.\n",
    "agent/transcripts/a~b+1.jsonl.gz": bytes(range(256)),
    "draft/relay.md": b"## Next Action\nGo on.\n",
    "session/rollout-2026-11-18T10-36-05-x.jsonl": b"{}\n",
}
FILE = agent_export.render(HEADER, PARTS)


def test_an_export_is_read_as_it_was_written():
    read = read_export(FILE)
    assert read.parts == PARTS
    assert msgspec.structs.replace(read.header, parts=()) == HEADER


def test_a_torn_file_is_refused_at_every_length():
    for length in range(len(FILE)):
        with pytest.raises(DocumentError):
            read_export(FILE[:length])
    with pytest.raises(DocumentError):
        read_export(FILE + b"\n")


def test_a_changed_byte_is_refused_everywhere():
    rng = random.Random(7)
    for position in range(len(FILE)):
        changed = bytearray(FILE)
        changed[position] ^= 1 << rng.randrange(8)
        with pytest.raises(DocumentError):
            read_export(bytes(changed))


@pytest.mark.parametrize(
    "name",
    [
        *("agent/../x", "agent//x", "/etc/passwd", "agent/run/lock", "agent/owner.json"),
        *("agent/memories/../../x", "agent/.git/config", "agent/memories/.x", "session/a/b"),
        *(
            "draft/x.md",
            "draft/../relay.md",
            "session/..",
            "session/",
            "elsewhere/x",
            "agent/memories/a\nb",
            "agent/memories",
        ),
    ],
)
def test_a_part_outside_the_agent_s_files_is_refused(name):
    """Even if all checksums are right, because the file may come from someone else."""
    forged = agent_export.render(HEADER, {**PARTS, name: b"x"})
    with pytest.raises(DocumentError, match="wrong place"):
        read_export(forged)


def test_a_forged_header_is_refused():
    name = msgspec.structs.replace(HEADER, agent="../x")
    with pytest.raises(DocumentError, match="agent name"):
        read_export(agent_export.render(name, PARTS))
    with pytest.raises(DocumentError, match="does not contain"):
        read_export(agent_export.render(HEADER, {}))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"entry": {}}, "settings"),
        ({"entry": {"harness": "codex", "until: x\n  other": 1}}, "settings"),
        ({"entry": {"harness": "codex", "env": "x"}}, "settings"),
        ({"personas": {"a": {"permissions": {"allowed_tools": "Bash"}}}}, "settings"),
        ({"personas": {"a": {"permissions": {"deny": [1]}}}}, "settings"),
        ({"personas": {"a": {"nosuch": 1}}}, "settings"),
        ({"session": "--dangerously-skip-permissions"}, "session id"),
        ({"session": ""}, "one transcript"),
    ],
)
def test_an_invalid_header_is_refused(changes, reason):
    forged = agent_export.render(msgspec.structs.replace(HEADER, **changes), PARTS)
    with pytest.raises(DocumentError, match=reason):
        read_export(forged)


def test_a_log_without_events_is_refused():
    forged = agent_export.render(HEADER, {**PARTS, "agent/ops.jsonl": b"not json\n"})
    with pytest.raises(DocumentError, match="without events"):
        read_export(forged)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(TEXTS, TEXTS, st.lists(TEXTS))
@example("a\nagents: {}", 'Bash(echo "x":*)', ["a, [b] {c} #d"])
@example("", "", ["\n", "]", "", "\x85", "\u2028", "a\n\nb", "null", "1e5", "é", "%"])
def test_any_text_arrives_in_a_manifest_and_changes_nothing_else(prompt, persona, rules):
    header = msgspec.structs.replace(
        HEADER,
        entry={"harness": ["codex", {"use": "gemini", "persona": persona}], "prompt": prompt},
        personas={persona: {"permissions": {"ask": rules}}},
    )
    before = manifest.parse(KNOWN)
    after = manifest.parse(agent_export.add_settings(KNOWN, header))
    assert after.agents.pop("trades").prompt == prompt
    assert after.personas.pop(persona).permissions.ask == rules
    assert after == before


KNOWN = "version: 1\nagents:\n  other: {harness: x}\nnotify: []\n"
