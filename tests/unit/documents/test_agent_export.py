"""An exported agent is read only if the file is complete, unchanged and safe."""

import random

import msgspec
import pytest

from rekindle.documents import agent_export
from rekindle.documents.agent_export import ExportHeader
from rekindle.errors import DocumentError

HEADER = ExportHeader(agent="trades", harness="codex", exported="2026-11-18", folder="/a/b")
PARTS = {
    "agent/ops.jsonl": b'{"v":1}\n' * 50,
    "agent/memories/consensus.md": b"## Next Action\nGo on.\n",
    "agent/transcripts/a~b+1.jsonl.gz": bytes(range(256)),
    "session/rollout-2026-11-18T10-36-05-x.jsonl": b"{}\n",
}
FILE = agent_export.render(HEADER, PARTS)


def test_an_export_is_read_as_it_was_written():
    read = agent_export.parse(FILE, "x")
    assert read.parts == PARTS
    assert msgspec.structs.replace(read.header, parts=()) == HEADER


def test_a_torn_file_is_refused_at_every_length():
    for length in range(len(FILE)):
        with pytest.raises(DocumentError):
            agent_export.parse(FILE[:length], "x")
    with pytest.raises(DocumentError):
        agent_export.parse(FILE + b"\n", "x")


def test_a_changed_byte_is_refused_everywhere():
    rng = random.Random(7)
    for position in range(len(FILE)):
        changed = bytearray(FILE)
        changed[position] ^= 1 << rng.randrange(8)
        with pytest.raises(DocumentError):
            agent_export.parse(bytes(changed), "x")


@pytest.mark.parametrize(
    "name",
    [
        *("agent/../x", "agent//x", "/etc/passwd", "agent/run/lock", "agent/owner.json"),
        *("agent/memories/../../x", "agent/.git/config", "agent/memories/.x", "session/a/b"),
        *("session/..", "session/", "elsewhere/x", "agent/memories/a\nb", "agent/memories"),
    ],
)
def test_a_part_outside_the_agent_s_files_is_refused(name):
    """Even if all checksums are right, because the file may come from someone else."""
    forged = agent_export.render(HEADER, {**PARTS, name: b"x"})
    with pytest.raises(DocumentError, match="wrong place"):
        agent_export.parse(forged, "x")


def test_a_forged_header_is_refused():
    name = msgspec.structs.replace(HEADER, agent="../x")
    with pytest.raises(DocumentError, match="agent name"):
        agent_export.parse(agent_export.render(name, PARTS), "x")
    with pytest.raises(DocumentError, match="does not contain"):
        agent_export.parse(agent_export.render(HEADER, {}), "x")


@pytest.mark.parametrize(
    "changes",
    [
        {"entry": {"until: x\n  other": 1}},
        {"entry": {"prompt": "a\nagents: {}"}},
        {"entry": {"persona": "a\nb"}},
        {"harness": "codex\n  x: 1"},
        {"persona": {"allowed_tools": ["Bash]\nagents: {}"]}},
        {"persona": {"allowed_tools": "Bash"}},
    ],
)
def test_settings_cannot_change_the_rest_of_a_manifest(changes):
    forged = agent_export.render(msgspec.structs.replace(HEADER, **changes), PARTS)
    with pytest.raises(DocumentError, match="invalid settings"):
        agent_export.parse(forged, "x")


def test_usual_settings_are_accepted():
    header = msgspec.structs.replace(
        HEADER,
        entry={"prompt": "PROMPT.md", "until": ["true"], "persona": "edit-and-run"},
        persona={"allowed_tools": ["Bash(npm run test:*)", "Read(//a/**)"], "deny": None},
    )
    assert agent_export.parse(agent_export.render(header, PARTS), "x").header.entry == header.entry
