"""`rekindle search` finds what sessions said and did, and what relays decided."""

import json
import sqlite3
from contextlib import closing
from datetime import timedelta

import pytest

from rekindle.cli.main import run
from rekindle.documents import events
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.stores.files import FileStore
from rekindle.stores.folders.private_files import find_private_project
from rekindle.stores.search import search_index
from rekindle.system import clock, host
from rekindle.wiring.access.trust_checks import accept_folder

MANIFEST = """\
version: 1
agents: {trades: {harness: claude-code}, docs: {harness: claude-code}}
"""
RELAY = """\
## Key Decisions
- Use Postgres for orders

## Next Action
Write the migration
"""


class Project:
    def __init__(self, path, capfd):
        self.path, self._capfd = path, capfd
        self.store = FileStore(
            path, host=host.identify_host(), settings=Settings(), clock=clock.read_clock
        )
        self.began = clock.read_clock() - timedelta(days=3)

    @property
    def index(self):
        return find_private_project(self.path).search

    def __call__(self, *words, code=0):
        ended = run(["search", *words])
        out, err = self._capfd.readouterr()
        assert ended == code, out + err
        return out + err

    def hits(self, *words):
        return json.loads(self(*words, "--json"))["hits"]

    def record(self, agent, session, *texts, edits=""):
        """Append turns to a session's transcript, as Claude Code writes them."""
        path = self.path / f"{session}.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        at = self.began + timedelta(minutes=len(lines))
        for text in texts:
            message = {"role": "user", "content": text}
            lines.append(
                json.dumps({"type": "user", "timestamp": at.isoformat(), "message": message})
            )
        if edits:
            call = {"type": "tool_use", "id": "c1", "name": "Edit", "input": {"file_path": edits}}
            message = {"id": "m1", "model": "opus", "content": [call]}
            lines.append(
                json.dumps({"type": "assistant", "timestamp": at.isoformat(), "message": message})
            )
        is_new = not path.exists()
        path.write_text("".join(f"{line}\n" for line in lines))
        if is_new:
            with self.store.writer(agent) as writer:
                started = {"session": session, "harness": "claude-code", "transcript": str(path)}
                writer.append(events.SessionStarted(ts=clock.read_clock(), **started))

    def set_relay(self, agent, text):
        proposed = events.RelayProposed(ts=clock.read_clock(), text=text, by="person")
        self.store.submit(agent, proposed)


@pytest.fixture
def project(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rekindle.yaml").write_text(MANIFEST)
    accept_folder(tmp_path)
    made = Project(tmp_path, capfd)
    for agent in ("trades", "docs"):
        made.store.create(agent)
    return made


def test_words_are_found_in_any_session_of_any_agent(project):
    project.record("trades", "aaaa-1", "send POST /profile", "thank you")
    project.record("docs", "bbbb-2", "describe the profile page")
    assert [(hit["agent"], hit["number"]) for hit in project.hits("profile")] == [
        ("docs", 1),
        ("trades", 1),
    ]
    out = project("POST /profile")
    assert out.startswith(
        f"trades  {project.began:%Y-%m-%d %H:%M}  person  session aaaa-1, turn 1\n"
    )
    assert "  send POST /profile\n" in out


def test_a_file_is_found_in_tool_calls(project):
    project.record("trades", "aaaa-1", "look at src/api.py", edits="src/web.py")
    (hit,) = project.hits("--file", "web.py")
    assert (hit["agent"], hit["who"], hit["number"]) == ("trades", "agent", 2)
    assert project("--file", "api.py", code=7).endswith(
        "nothing found\n  → use fewer words, or `word*` for the beginning of a word\n"
    )


def test_before_the_first_run_the_hint_says_so(project):
    assert "no transcript is archived yet" in project("apple", code=7)


def test_relays_and_new_decisions_are_found(project):
    project.set_relay("trades", RELAY)
    assert [hit["kind"] for hit in project.hits("postgres")] == ["decision", "relay"]
    project.set_relay("trades", RELAY.replace("## Next", "- Keep SQLite for tests\n\n## Next"))
    assert [hit["kind"] for hit in project.hits("postgres")] == ["relay", "decision", "relay"]
    assert project.hits("sqlite")[0]["excerpt"] == "Keep SQLite for tests"


def test_agent_since_and_number_limit_the_hits(project):
    project.record("trades", "aaaa-1", "apple", "apple")
    project.record("docs", "bbbb-2", "apple")
    assert len(project.hits("apple")) == 3
    assert [hit["agent"] for hit in project.hits("apple", "--agent", "docs")] == ["docs"]
    assert len(project.hits("apple", "-n", "1")) == 1
    assert project.hits("apple", "--since", "1h") == []
    assert len(project.hits("apple", "--since", "4d")) == 3


def test_what_is_added_later_is_found_once(project):
    project.record("trades", "aaaa-1", "apple")
    assert len(project.hits("apple")) == 1
    project.record("trades", "aaaa-1", "apple", "pear")
    assert [hit["number"] for hit in project.hits("apple")] == [2, 1]
    assert len(project.hits("pear")) == 1


def test_the_index_is_updated_when_turns_are_archived_but_nothing_waits_for_it(
    project, monkeypatch, capfd
):
    project.record("trades", "aaaa-1", "apple")
    project.hits("apple")
    project.record("trades", "aaaa-1", "pear")
    monkeypatch.setattr(search_index, "SEARCH_WAIT_SECONDS", 3600)
    with closing(sqlite3.connect(project.index, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert run(["transcript", "trades"]) == 0
        assert count_entries(other) == 1
        other.execute("ROLLBACK")
        assert run(["transcript", "trades"]) == 0
        assert count_entries(other) == 2
    capfd.readouterr()


def count_entries(connection):
    return connection.execute("SELECT count(*) FROM entries").fetchone()[0]


@pytest.mark.parametrize("damage", ["removed", "cut", "overwritten"])
def test_a_lost_or_damaged_index_is_built_again_with_equal_results(project, damage):
    for session in ("aaaa-1", "aaaa-2"):
        project.record("trades", session, *(f"apple {number}" for number in range(50)))
    project.set_relay("trades", RELAY)
    before = project.hits("apple", "-n", "200"), project.hits("postgres")
    assert (len(before[0]), len(before[1])) == (100, 2)
    data = project.index.read_bytes()
    if damage == "removed":
        project.index.unlink()
    else:
        project.index.write_bytes(data[: len(data) // 2] if damage == "cut" else b"x" * len(data))
    assert (project.hits("apple", "-n", "200"), project.hits("postgres")) == before


def test_a_damaged_transcript_hides_only_its_own_turns(project):
    project.record("trades", "aaaa-1", "apple")
    project.record("trades", "aaaa-2", "apple pie")
    project.hits("pear")
    project.index.unlink()
    archive = project.store.folder("trades").transcripts
    (archive / "aaaa-1.json").unlink()
    (archive / "aaaa-1.jsonl.gz").write_bytes(b"\x1f\x8b damaged")
    for path in project.path.glob("*.jsonl"):
        path.unlink()
    assert len(project.hits("pie")) == 1


def test_an_agent_whose_log_is_missing_does_not_hide_the_others(project):
    project.record("trades", "aaaa-1", "apple")
    project.record("docs", "bbbb-2", "apple")
    project.store.folder("docs").log.unlink()
    out = project("apple")
    assert "Note: docs: " in out
    assert "trades  " in out


@pytest.mark.parametrize("words", [[], ["()"]])
def test_a_search_for_nothing_is_refused(project, words):
    assert "there is no word to search for" in project(*words, code=2)


def test_an_unknown_agent_is_refused(project):
    assert "agent" in project("apple", "--agent", "tradse", code=7)
