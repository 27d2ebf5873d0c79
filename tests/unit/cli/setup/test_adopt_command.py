"""`rekindle adopt`: the documents of another loop become an agent's own."""

import json
import os

import pytest

from rekindle.documents import manifest
from rekindle.stores.folders.agent_folder import RekindleFolder
from rekindle.stores.folders.private_files import find_private_project
from rekindle.stores.log.log_acceptance import seal_log

RELAY = """\
## Current Phase
Baking

## Key Decisions Made
- Rye: keeps longer (2026-05-01)

## Next Action
Order flour
"""
BRIEF = "bakery — 2026-05-02\n\n**Changed:**\n- new oven\n\n**Next:** order flour\n"
STATE = {
    "agent": "bakery",
    "last_active": "2026-05-02T08:00:00Z",
    "open_loops": [
        {"id": "miller", "text": "The miller has not called", "added": "2026-05-01"},
        {"id": "roof", "text": "屋顶漏水", "added": "2026-04-01", "room": "attic"},
    ],
    "resolved": [{"id": "oven", "reason": "delivered", "resolved_date": "2026-05-01"}],
    "numbers": {"loaves": "40"},
    "current_task": "flour",
}
RESOLVED = (
    '{"id": "roof", "reason": "fixed", "ts": "2026-05-02T10:00:00Z", "domain": "bakery"}\n'
    '{"id": "miller", "reason": "called", "ts": "2026-04-30T10:00:00Z"}\n'
    "not a line\n"
)


@pytest.fixture
def rekindle(tmp_path, monkeypatch, rekindle):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.delenv("REKINDLE_AGENT", raising=False)
    return rekindle


@pytest.fixture
def phoenix(tmp_path):
    folder = tmp_path / "phoenix"
    (folder / "memories").mkdir(parents=True)
    (folder / "memories/consensus.md").write_text(RELAY)
    (folder / "brief.md").write_text(BRIEF)
    (folder / "state.json").write_text(json.dumps(STATE))
    (folder / "resolved.jsonl").write_text(RESOLVED)
    (folder / "ops.jsonl").write_text('{"event":"session_end"}\n')
    return folder


def everything(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def own(tmp_path, name="bakery"):
    return tmp_path / "here/.rekindle/agents" / name


def log(tmp_path, name="bakery"):
    return lines(own(tmp_path, name) / "ops.jsonl")


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_phoenix_folder_becomes_an_agent(rekindle, tmp_path, phoenix):
    before = everything(phoenix)
    code, out, err = rekindle("adopt", phoenix)
    assert code == 0, err
    assert everything(phoenix) == before, "the source stays as it was"
    folder = own(tmp_path)
    assert (folder / "memories/consensus.md").read_text() == RELAY
    assert (folder / "brief.md").read_text() == BRIEF
    kept = json.loads((folder / "state.json").read_text())
    assert [loop["id"] for loop in kept["open_loops"]] == ["miller"]
    assert kept["open_loops"][0]["added"] == "2026-05-01"
    assert kept["numbers"] == {"loaves": "40"}
    assert kept["current_task"] == "flour"
    done = {row["id"]: row for row in lines(folder / "resolved.jsonl")}
    assert done["oven"]["ts"].startswith("2026-05-01")
    assert (done["roof"]["reason"], done["roof"]["ts"][:10]) == ("fixed", "2026-05-02")
    commits = [event for event in log(tmp_path) if event["kind"].endswith(".committed")]
    assert {event["by"] for event in commits} == {"person"}
    for word in (
        "Order flour",
        "1 open loop",
        "ops.jsonl",
        "resolved.jsonl has unreadable lines: 1",
    ):
        assert word in out
    assert "bakery" in manifest.parse((tmp_path / "here/rekindle.yaml").read_text()).agents


def test_the_same_again_changes_nothing(rekindle, tmp_path, phoenix):
    rekindle("adopt", phoenix)
    rekindle("resolve", "miller", "called at last")
    (tmp_path / "later.md").write_text(RELAY.replace("Order flour", "Bake"))
    rekindle("relay", "set", tmp_path / "later.md")
    before = everything(tmp_path / "here")
    code, out, _ = rekindle("adopt", phoenix)
    assert code == 0
    assert "nothing to do" in out
    assert everything(tmp_path / "here") == before, "what was done since is not undone"
    (phoenix / "memories/consensus.md").write_text(RELAY.replace("Order flour", "Order salt"))
    assert "Order salt" in rekindle("adopt", phoenix)[1]


@pytest.mark.parametrize("place", ["consensus.md", ".", "notes.txt"])
def test_a_relay_alone_is_taken_over(rekindle, tmp_path, place):
    folder = tmp_path / "memories"
    folder.mkdir()
    (folder / ("notes.txt" if place == "notes.txt" else "consensus.md")).write_text(RELAY)
    code, out, err = rekindle("adopt", f"../memories/{place}", "--agent", "bakery", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert (told["agent"], told["adopted"]) == ("bakery", True)
    assert (own(tmp_path) / "memories/consensus.md").read_text() == RELAY


def test_the_only_agent_takes_it(rekindle, tmp_path):
    rekindle("init", "--yes", "--agent", "trades")
    (tmp_path / "consensus.md").write_text(RELAY)
    assert rekindle("adopt", tmp_path / "consensus.md")[0] == 0
    assert (own(tmp_path, "trades") / "memories/consensus.md").read_text() == RELAY
    rekindle("init", "--yes", "--agent", "other")
    code, _, err = rekindle("adopt", tmp_path / "consensus.md")
    assert code == 2
    assert "which agent" in err


def test_what_is_too_long_is_trimmed_and_secrets_go(rekindle, tmp_path):
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    long = "\n".join(f"- did number {n} {'well ' * 20}" for n in range(300))
    text = f"{RELAY}\nToken: {secret}\n\n## What We Did This Cycle\n{long}\n"
    (tmp_path / "consensus.md").write_text(text)
    code, out, err = rekindle("adopt", tmp_path / "consensus.md", "--agent", "bakery")
    assert code == 0, err
    assert "trimmed to its cap" in out
    assert "redacted" in out
    assert not any(secret.encode() in data for data in everything(own(tmp_path)).values())
    assert secret in (tmp_path / "consensus.md").read_text()


def test_what_cannot_be_used_is_left_out_in_words(rekindle, phoenix):
    (phoenix / "memories/consensus.md").write_text("## Next Action\nTBD\n")
    (phoenix / "brief.md").write_text("no title\n")
    code, out, err = rekindle("adopt", phoenix)
    assert code == 0, err
    assert "left out the relay: the Next Action only says 'TBD'" in out
    assert "left out the brief: has no title line" in out


def link(folder):
    (folder / "real.md").write_text(RELAY)
    (folder / "x.md").symlink_to(folder / "real.md")
    return folder / "x.md"


def linked_folder(folder):
    (folder / "real").mkdir()
    (folder / "real/consensus.md").write_text(RELAY)
    (folder / "memories").symlink_to(folder / "real")
    return folder


def pipe(folder):
    os.mkfifo(folder / "state.json")
    return folder


def written(name, data):
    def make(folder):
        (folder / name).write_bytes(data)
        return folder / name if name.endswith(".md") else folder

    return make


DEEP = b"[" * 100_000


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (link, 5),
        (linked_folder, 5),
        (pipe, 5),
        (written("x.md", RELAY.encode() + b"x" * 8_000_001), 4),
        (written("x.md", b"\x00\x01\x02" + RELAY.encode()), 4),
        (written("x.md", b"\xff\xfe" + RELAY.encode()), 4),
        (written("x.md", b""), 8),
        (written("x.md", b"## Next Action\nTBD\n"), 8),
        (written("state.json", b"{"), 4),
        (written("state.json", DEEP), 4),
        (written("state.json", b'{"a":' * 900 + b"1" + b"}" * 900), 4),
        (written("state.json", b'{"a":' * 9_000 + b"1" + b"}" * 9_000), 4),
        (written("state.json", b'{"open_loops": 7}'), 4),
        (written("state.json", b'{"a": 1, "a": 2}'), 4),
        (written("state.json", b'{"v": 99}'), 4),
        (written("state.json", b'{"agent": "../../etc"}'), 2),
        (written("other.txt", b"x"), 7),
        (lambda folder: folder / "gone", 7),
    ],
)
def test_hostile_sources_are_refused_before_anything_is_written(rekindle, tmp_path, make, code):
    source = tmp_path / "source"
    source.mkdir()
    found, out, err = rekindle("adopt", make(source))
    assert (found, out) == (code, ""), err
    assert "→" in err, "a hint says what to do"
    assert not list((tmp_path / "here").iterdir())


def test_a_name_that_leads_elsewhere_is_refused(rekindle, tmp_path):
    (tmp_path / "consensus.md").write_text(RELAY)
    assert rekindle("adopt", tmp_path / "consensus.md", "--agent", "../x")[0] == 2
    assert not list((tmp_path / "here").iterdir())


def test_a_crash_before_the_note_takes_nothing_twice(rekindle, tmp_path, phoenix):
    rekindle("adopt", phoenix)
    path = own(tmp_path) / "ops.jsonl"
    kept = path.read_text().splitlines(keepends=True)
    assert json.loads(kept[-1])["kind"] == "source.adopted"
    path.write_text("".join(kept[:-1]))
    seal_log(
        RekindleFolder(tmp_path / "here", find_private_project(tmp_path / "here")).agent("bakery")
    )
    state = own(tmp_path) / "state.json"
    state.unlink()  # it names the event that is gone
    assert rekindle("adopt", phoenix)[0] == 0
    kinds = [event["kind"] for event in log(tmp_path)]
    assert kinds.count("relay.committed") == kinds.count("brief.committed") == 1
    assert kinds.count("state.adopted") == 1
    assert kinds[-1] == "source.adopted"


def test_a_loop_of_ours_is_closed_where_they_resolved_it(rekindle, tmp_path, phoenix):
    rekindle("init", "--yes", "--agent", "bakery")
    rekindle("loops", "add", "oven", "which oven?")
    rekindle("loops", "add", "salt", "where is the salt?")
    assert rekindle("adopt", phoenix)[0] == 0
    kept = json.loads((own(tmp_path) / "state.json").read_text())
    assert {loop["id"] for loop in kept["open_loops"]} == {"miller", "salt"}


def test_our_own_folder_is_not_a_source(rekindle, tmp_path, phoenix):
    rekindle("adopt", phoenix)
    code, _, err = rekindle("adopt", own(tmp_path))
    assert code == 2
    assert "already in Rekindle's own folder" in err
