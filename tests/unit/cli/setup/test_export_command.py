"""`rekindle export` and `rekindle import` on one machine, without an agent CLI."""

import json
import os
import random
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path

import msgspec
import pytest

import worktrees
from conftest import RELAY
from export_files import read_export
from rekindle.config import load_project
from rekindle.documents import agent_export
from rekindle.documents.manifest import parse
from rekindle.errors import OwnershipError
from rekindle.system.files import durable_files
from rekindle.wiring.open_store import open_store


@pytest.fixture
def exported(rekindle_in, tmp_path):
    assert rekindle_in("here", "init", "trades", "--yes", "--harness", "codex")[0] == 0
    (tmp_path / "here/relay.md").write_text(RELAY)
    assert rekindle_in("here", "relay", "set", "relay.md")[0] == 0
    assert rekindle_in("here", "loops", "add", "rate-limit", "How many?")[0] == 0
    code, said = rekindle_in("here", "export", "trades", "../trades.rekindle")
    assert code == 0, said
    return tmp_path / "trades.rekindle"


def read_tree(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_an_imported_agent_has_its_relay_loops_and_log(rekindle_in, exported):
    code, said = rekindle_in("there", "import", str(exported), "--yes")
    assert code == 0, said
    assert "rate-limit" in rekindle_in("there", "loops", "trades", "--json")[1]
    assert rekindle_in("there", "relay", "show", "trades") == rekindle_in("here", "relay", "show")
    before = rekindle_in("here", "events", "trades", "--json", "--last", "0")[1].splitlines()
    after = rekindle_in("there", "events", "trades", "--json", "--last", "0")[1].splitlines()
    assert after[: len(before)] == before
    assert "harness: codex" in Path("rekindle.yaml").read_text()
    assert not re.search(r"✗ trades: .*\b(log|relay|loops)\b", rekindle_in("there", "doctor")[1])


def test_an_agent_is_never_overwritten(rekindle_in, exported):
    before = read_tree(Path("../here"))
    code, said = rekindle_in("here", "import", str(exported), "--yes")
    assert code == 6
    assert "already an agent trades" in said
    assert read_tree(Path("../here")) == before


def test_a_torn_or_changed_file_is_refused_and_nothing_is_written(rekindle_in, exported):
    data = exported.read_bytes()
    rng = random.Random(3)
    for number in range(40):
        bad = bytearray(data)
        if number % 2:
            bad = bad[: rng.randrange(len(data))]
        else:
            bad[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        exported.write_bytes(bytes(bad))
        code, said = rekindle_in("there", "import", str(exported), "--yes")
        assert code == 4, said
        assert "→" in said
    assert read_tree(Path("../there")) == {}


def export(rekindle_in, text, code=0):
    """Export the agent trades of a manifest; return what the command printed."""
    assert rekindle_in("here", "init", "trades", "--yes", "--harness", "codex")[0] == 0
    Path("rekindle.yaml").write_text(text)
    assert rekindle_in("here", "loops", "add", "rate-limit", "How many?")[0] == 0
    exit_code, said = rekindle_in("here", "export", "trades", "../trades.rekindle")
    assert exit_code == code, said
    return said


LIMITED = """\
version: 1
personas:
  careful:
    model: gpt-5
    system_prompt_file: careful.md
    permissions:
      allowed_tools: [Read, Bash]
      ask: [Bash(git push*), 'Bash(echo "a, [b] {c} #d":*)']
agents:
  trades:
    harness: [codex, {use: claude-code, persona: careful}]
    prompt: PROMPT.md
    persona: careful
    until: "test -f 'a b'"
    accounts: [work]
    env: {TOKEN: plainvalue9, PATH_TOO: $HOME}
accounts:
  work: {harness: codex, config_dir: ~/work}
"""


def test_all_keys_of_the_agent_and_its_personas_arrive(rekindle_in):
    """Except for values of `env:` that may be secrets, and accounts, which are named."""
    assert "TOKEN" in export(rekindle_in, LIMITED)
    assert b"plainvalue9" not in Path("../trades.rekindle").read_bytes()
    before = parse(LIMITED)
    code, said = rekindle_in("there", "import", "../trades.rekindle", "--yes")
    assert code == 0, said
    assert "set TOKEN below `env:`" in said
    assert "define work below `accounts:`" in said
    after = parse(Path("rekindle.yaml").read_text())
    assert after.personas == before.personas
    expected = msgspec.structs.replace(before.agents["trades"], env={"PATH_TOO": "$HOME"})
    assert after.agents["trades"] == expected


def test_another_persona_with_the_same_name_stays_as_it_is(rekindle_in):
    """Its permissions would silently replace those of the agent, which gets its own persona."""
    export(rekindle_in, LIMITED)
    Path("../there").mkdir()
    known = "version: 1\npersonas:\n  careful:\n    permissions: {allowed_tools: [Bash]}\n"
    Path("../there/rekindle.yaml").write_text(known)
    code, said = rekindle_in("there", "import", "../trades.rekindle", "--yes")
    assert code == 0, said
    assert "its persona careful is called trades-careful here" in said
    after, before = parse(Path("rekindle.yaml").read_text()), parse(LIMITED)
    assert after.personas["careful"] == parse(known).personas["careful"]
    assert after.personas["trades-careful"] == before.personas["careful"]
    entry = after.agents["trades"]
    assert {entry.persona, *(item.persona for item in entry.harnesses)} == {"trades-careful"}


def test_the_default_persona_of_an_agent_is_not_that_of_other_agents(rekindle_in, tmp_path):
    """Neither does the import add one for them, nor does it use theirs."""
    allowed = "personas:\n  default:\n    permissions: {allowed_tools: [Bash, Write]}\n"
    export(rekindle_in, PLAIN + allowed)
    other = PLAIN.replace("trades", "other")
    denied = allowed.replace("Bash, Write", "Read")
    for folder, text in (("one", other), ("two", other + denied)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "rekindle.yaml").write_text(text)
        code, said = rekindle_in(folder, "import", "../trades.rekindle", "--yes")
        assert code == 0, said
        assert "its persona default is called trades-default here" in said
        after = parse(Path("rekindle.yaml").read_text())
        assert after.personas.get("default") == parse(text).personas.get("default")
        assert after.agents["other"] == parse(text).agents["other"]
        assert after.agents["trades"].persona == "trades-default"
        assert after.personas["trades-default"] == parse(PLAIN + allowed).personas["default"]


SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
PLAIN = "version: 1\nagents:\n  trades:\n    harness: codex\n    prompt: PROMPT.md\n"


def test_documents_are_exported_without_secrets(rekindle_in, tmp_path):
    note = tmp_path / "here/.rekindle/agents/trades/memories/note.md"
    note.parent.mkdir(parents=True)
    note.write_text(f"The token is {SECRET}.\n")
    export(rekindle_in, PLAIN)
    data = Path("../trades.rekindle").read_bytes()
    assert b"The token is" in data
    assert SECRET.encode() not in data


def test_the_draft_of_the_next_relay_moves_with_the_agent(rekindle_in, exported, tmp_path):
    """Secrets are redacted, and an unrelated draft is set aside."""
    draft = tmp_path / "here/.rekindle/drafts/trades/relay.md"
    draft.write_text(f"## Next Action\nUse {SECRET}.\n")
    assert rekindle_in("here", "export", "trades", "../second.rekindle")[0] == 0
    for name, size in (("second.rekindle", 1), ("trades.rekindle", 0)):
        there = tmp_path / name.removesuffix(".rekindle")
        old = there / ".rekindle/drafts/trades/relay.md"
        old.parent.mkdir(parents=True)
        old.write_text("of another agent")
        code, said = rekindle_in(there.name, "import", f"../{name}", "--yes")
        assert code == 0, said
        assert [path.read_text() for path in old.parent.glob("relay.md.*")] == ["of another agent"]
        assert len(list(old.parent.glob("relay.md"))) == size
    moved = (tmp_path / "second/.rekindle/drafts/trades/relay.md").read_text()
    assert moved.startswith("## Next Action\nUse ")
    assert SECRET not in moved


def test_a_link_in_place_of_the_draft_is_not_followed(rekindle_in, exported, tmp_path):
    (tmp_path / "elsewhere").write_text("not the agent's")
    (tmp_path / "here/.rekindle/drafts/trades/relay.md").symlink_to(tmp_path / "elsewhere")
    assert rekindle_in("here", "export", "trades", "../second.rekindle")[0] == 0
    assert b"not the agent's" not in (tmp_path / "second.rekindle").read_bytes()


def test_a_note_with_any_readable_name_moves_with_the_agent(rekindle_in, exported, tmp_path):
    name = ".rekindle/agents/trades/memories/Größe und Preis.md"
    (tmp_path / "here" / name).write_text("dear")
    assert rekindle_in("here", "export", "trades", "../second.rekindle")[0] == 0
    assert rekindle_in("there", "import", "../second.rekindle", "--yes")[0] == 0
    assert Path(name).read_text() == "dear"


def test_keys_with_secrets_are_not_exported(rekindle_in):
    """Without them, the agent could do more than before, so the export is refused."""
    said = export(rekindle_in, f"{PLAIN}    until: check {SECRET}\n", code=2)
    assert "agents.trades.until" in said
    assert not Path("../trades.rekindle").exists()


def test_the_import_of_an_agent_needs_confirmation(rekindle_in, exported):
    code, said = rekindle_in("there", "import", str(exported))
    assert code == 2
    assert "--yes" in said
    assert read_tree(Path()) == {}


def test_the_default_file_is_ignored_by_git_and_never_replaced(rekindle_in, exported, tmp_path):
    """It contains a whole conversation, and would be in the next snapshot."""
    worktrees.git(tmp_path / "here", "init", "-q")
    code, said = rekindle_in("here", "export", "trades")
    assert code == 0, said
    assert "wrote .rekindle/exports/trades.rekindle (" in said
    assert b".rekindle" not in worktrees.git(tmp_path / "here", "status", "--porcelain")
    code, said = rekindle_in("here", "export", "trades")
    assert code == 2
    assert "exists already" in said
    assert (
        rekindle_in(
            "there", "import", "../here/.rekindle/exports/trades.rekindle", "--yes", "--no-snapshot"
        )[0]
        == 0
    )


def test_an_export_without_a_session_says_so(rekindle_in, exported):
    fresh = "the agent's next launch starts a fresh session"
    assert fresh in rekindle_in("here", "export", "trades", "../second.rekindle")[1]
    assert fresh in rekindle_in("there", "import", "../second.rekindle", "--yes")[1]


def test_the_suggested_command_can_be_pasted(rekindle_in, exported):
    said = rekindle_in("here", "export", "trades", "../my agent.rekindle")[1]
    assert "`rekindle import 'my agent.rekindle'`" in said


def test_a_missing_folder_for_the_file_is_named(rekindle_in, exported):
    code, said = rekindle_in("here", "export", "trades", "nosuch/trades.rekindle")
    assert code == 2
    assert "there is no folder nosuch" in said
    assert "doctor" not in said


def test_keys_that_all_agents_share_are_named(rekindle_in):
    more = "notify: [ntfys://x]\nquota: {}\npersonas:\n  summarizer: {model: x}\n"
    said = export(rekindle_in, PLAIN + more)
    assert "not in the file: notify, personas.summarizer, which all agents share" in said


def test_a_file_that_does_not_exist_is_named(rekindle_in):
    code, said = rekindle_in("there", "import", "nosuch")
    assert code == 2
    assert "rekindle export AGENT" in said


def test_an_unfinished_import_cannot_be_started(rekindle_in, exported):
    assert rekindle_in("there", "import", str(exported), "--yes")[0] == 0
    Path(".rekindle/agents/trades/run/importing").write_text("x")
    store = open_store(load_project(Path()))
    with (
        pytest.raises(OwnershipError, match="import of agent trades is not finished"),
        store.supervising("trades"),
    ):
        pass


SESSION = "30bc600c-59d1-47d3-8b01-c0bbd4e423f5"
ROLLOUT = f"rollout-2026-11-18T10-36-05-{SESSION}.jsonl"


def forge(file, session_parts=(), **changes):
    """Change the header and the transcript of an export, with right checksums."""
    export = read_export(file.read_bytes())
    header = msgspec.structs.replace(export.header, **changes)
    file.write_bytes(agent_export.render(header, {**export.parts, **dict(session_parts)}))


def make_rollout(folder):
    payload = {"id": SESSION, "cwd": str(folder)}
    return json.dumps({"type": "session_meta", "payload": payload}).encode() + b"\n"


@pytest.mark.parametrize(
    "changes",
    [
        {"harness": "opencode"},
        {"harness": "nosuch"},
        {"harness": "claude-code"},
        {"entry": {"harness": "nosuch"}},
        {"entry": {"harness": "claude-code"}},
        {"session": "--dangerously-skip-permissions"},
        {"session": ""},
        {"session": SESSION.replace("3", "4")},
        {"folder": "/elsewhere"},
        {"session_parts": {f"session/{ROLLOUT}": b"not json\n"}},
        {"session_parts": {"session/settings.json": b"{}"}},
        {"session_parts": {"agent/ops.jsonl": b"not json\n"}},
        {"personas": {"default": {"permissions": {"deny": [1]}}}},
    ],
)
def test_a_forged_header_is_refused_before_anything_is_written(
    rekindle_in, exported, tmp_path, monkeypatch, changes
):
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    parts = {f"session/{ROLLOUT}": make_rollout("/a")}
    forge(exported, parts, session=SESSION, folder="/a")
    good = exported.read_bytes()
    forge(exported, **changes)
    code, said = rekindle_in("there", "import", str(exported), "--yes")
    assert code in {3, 4}, said
    assert "→" in said
    assert read_tree(tmp_path / "there") == {}
    exported.write_bytes(good)
    assert rekindle_in("there", "import", str(exported), "--yes")[0] == 0
    assert list((tmp_path / "codex").rglob(ROLLOUT))


def test_another_transcript_of_the_session_is_kept(rekindle_in, exported, tmp_path, monkeypatch):
    """The import stops before it writes anything."""
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    other = tmp_path / "codex/sessions/2026/11/18" / ROLLOUT
    other.parent.mkdir(parents=True)
    other.write_bytes(make_rollout("/a") + b"{}\n")
    forge(exported, {f"session/{ROLLOUT}": make_rollout("/a")}, session=SESSION, folder="/a")
    code, said = rekindle_in("there", "import", str(exported), "--yes")
    assert code == 5
    assert "another transcript" in said
    assert read_tree(tmp_path / "there") == {}
    other.write_bytes(make_rollout("/a"))
    assert rekindle_in("there", "import", str(exported), "--yes")[0] == 0
    assert other.read_bytes() == make_rollout("/a")


LARGE = 24 * 1024 * 1024


@pytest.mark.heavy
def test_a_large_transcript_is_not_held_in_memory(rekindle_in, exported, tmp_path, monkeypatch):
    """An import needs much less memory than the file has bytes, also if it is repeated."""
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    # Python reserves as much for each read of a small file, although it does not use it.
    monkeypatch.setattr(durable_files, "FILE_BYTES", LARGE // 24)
    line = json.dumps({"type": "event_msg", "text": "x" * 100_000}).encode() + b"\n"
    rollout = make_rollout("/a") + line * (LARGE // len(line))
    parts = {f"session/{ROLLOUT}": rollout, "agent/transcripts/a.jsonl.gz": rollout}
    forge(exported, parts, session=SESSION, folder="/a")
    for _ in range(2):
        tracemalloc.start()
        try:
            code, said = rekindle_in("there", "import", str(exported), "--yes")
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert code == 0, said
        assert peak < LARGE / 2
        # As if the import was killed just before its end.
        stamp = read_export(exported.read_bytes()).digest
        Path(".rekindle/agents/trades/run/importing").write_text(stamp)
    (placed,) = (tmp_path / "codex").rglob(ROLLOUT)
    assert placed.stat().st_size == len(rollout) + len(str(Path.cwd())) - len("/a")
    assert Path(".rekindle/agents/trades/transcripts/a.jsonl.gz").stat().st_size == len(rollout)


KILLED = """
import os, sys
from rekindle.system.files import durable_files
left = int(sys.argv[1])
def count(function):
    def call(*arguments, **more):
        global left
        left -= 1
        if left < 0:
            os._exit(9)
        return function(*arguments, **more)
    return call
for name in ("replace_file", "make_folder", "rename_durably", "append_durably", "remove_file"):
    setattr(durable_files, name, count(getattr(durable_files, name)))
from rekindle.cli import main
sys.exit(main.run(["import", sys.argv[2], "--yes"]))
"""


@pytest.mark.heavy
@pytest.mark.parametrize("step", [0, 3, 7, 12, 16, 18, 20, 22, 24, 27, 31])
def test_a_killed_import_is_finished_by_the_next_one(rekindle_in, exported, tmp_path, step):
    """Killed at any write, it leaves no agent that can be used, or one that the same file ends."""
    there = tmp_path / "there"
    there.mkdir()
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(step), str(exported)],
        cwd=there,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
        capture_output=True,
    )
    assert killed.returncode == 9, killed.stderr
    code, said = rekindle_in("there", "import", str(exported), "--yes")
    assert code == 0, said
    assert "rate-limit" in rekindle_in("there", "loops", "trades", "--json")[1]
    assert not list((there / ".rekindle/agents").glob(".tmp*"))
