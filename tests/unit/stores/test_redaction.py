"""A thousand secrets through every door, and none of them anywhere below .rekindle or printed."""

import json
import time

import pytest

from conftest import put_clis_on_path
from fakes import Fake, fakes
from rekindle import config
from rekindle.cli import main
from rekindle.documents import brief, checkpoint
from rekindle.documents.events import (
    DocumentRejected,
    LoopAdded,
)
from rekindle.hook import record_event
from rekindle.policy.redact.redaction import Redaction
from rekindle.system import clock
from rekindle.system.files import file_locks
from rekindle.wiring.open_store import open_store

COUNT = 1_000
DOORS = 10


@pytest.fixture
def say(tmp_path, tmp_path_factory, monkeypatch, capfd):
    """Run a command in a folder with one agent; gives all that it printed."""
    monkeypatch.chdir(tmp_path)
    put_clis_on_path(tmp_path_factory.mktemp("clis"), monkeypatch)
    monkeypatch.delenv("REKINDLE_AGENT", raising=False)

    def run(*arguments, code=0):
        ended = main.run(list(arguments))
        said = capfd.readouterr()
        assert ended == code, said
        return said.out + said.err

    run("init", "--yes", "--agent", "trades")
    (tmp_path / "PROMPT.md").write_text("Ship it.\n")
    return run


@pytest.fixture
def store(say, tmp_path):
    return open_store(config.load_project(tmp_path))


def relay(some: list[Fake]) -> str:
    notes = "\n".join(f"- {fake.line}" for fake in some)
    return f"## Current Phase\n{notes}\n\n## Next Action\n{some[0].line}\n"


def hook_record(prompt: str) -> bytes:
    data = json.dumps({"session_id": "s1", "prompt": prompt}).encode()
    return record_event.compose_record("claude-code", "UserPromptSubmit", "", data, len(data))


def kept_below(folder) -> str:
    """Every byte of every file, the archive and the log among them, and every file's name."""
    return "\n".join(
        f"{path.name}\n{path.read_bytes().decode('utf-8', 'replace')}"
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    )


def test_a_thousand_planted_secrets_are_nowhere(say, store, tmp_path):  # noqa: PLR0915 - one run through all doors
    """Relays, loops, prompts, edits by hand, checkpoints, briefs, rejects: 0 survive, 0 printed."""
    made = list(fakes(1, COUNT))
    doors = [made[number::DOORS] for number in range(DOORS)]
    folder = store.folder("trades")
    printed = []

    (tmp_path / "relay.md").write_text(relay(doors[0]))
    printed.append(say("relay", "check", "relay.md"))
    printed.append(say("relay", "set", "relay.md"))
    for number, fake in enumerate(doors[1]):
        if number % 10 == 0:
            texts = [one.line for one in doors[1][number : number + 10]]
            printed.append(say("loops", "add", f"loop-{number}", *texts))
            printed.append(say("loops", "add", f"id-{fake.secret}"[:64], "text", code=0))
    for number in range(0, 100, 10):
        texts = [one.line for one in doors[2][number : number + 10]]
        printed.append(say("resolve", f"loop-{number}", *texts))

    segment = folder.inbox / f"{time.time_ns():020d}-00.seg"
    with segment.open("ab") as file:
        for fake in doors[3]:
            file.write(hook_record(f"please use\n{fake.line}\nfor this"))
    printed += [say("status"), say("status", "--json")]  # the inbox laid over, not folded yet
    printed.append(say("doctor", "--fix"))

    relay_file = folder.document("relay")
    relay_file.write_text(relay(doors[4]))
    printed += [say("relay", "show"), say("doctor"), say("doctor", "--fix")]
    assert relay_file.read_text().startswith("## Current Phase\n- ")
    relay_file.write_text("\n".join(fake.line for fake in doors[5]))  # no directive: set aside
    printed.append(say("doctor", "--fix"))
    assert (folder.memories / "consensus.md.rejected").exists()

    edited = json.loads(folder.state.read_bytes())
    edited["open_loops"] += [fake.line for fake in doors[6][:50]]
    edited["open_loops"] += [{"id": f"e{n}", "text": f.line} for n, f in enumerate(doors[6][50:])]
    edited["resolved"] += [{"id": f"r{n}", "reason": f.line} for n, f in enumerate(doors[7][:50])]
    edited["numbers"] = {f"note {n}": f.line for n, f in enumerate(doors[7][50:])}
    edited["about"] = {"lines": [fake.line for fake in doors[8]]}
    folder.state.write_text(json.dumps(edited, indent=2))
    printed += [say("status"), say("loops"), say("doctor", "--fix")]

    lines = "\n".join(f"- {fake.line}" for fake in doors[9])
    with store.writer("trades") as writer:
        point = checkpoint.compose(dict.fromkeys(checkpoint.CheckpointSection, lines))
        writer.commit_checkpoint(point, by="summarizer")
        note = brief.parse(
            f"# trades — 2026-04-09\n**Changed:** {lines}\n**Next:** {made[0].line}\n"
        )
        writer.commit_brief(note, by="machine")
        writer.fold()
        writer.snapshot()
    folder.document("checkpoint").write_text(f"{checkpoint.render(point)}\n{made[9].line}\n")
    printed += [say("doctor", "--fix"), say("loops"), say("loops", "--json"), say("relay", "show")]
    printed += [say("events"), say("events", "--json"), say("relay", "diff"), say("doctor")]

    assert not any(folder.inbox.iterdir())
    kept = kept_below(tmp_path / ".rekindle")
    assert kept.count("[redacted:") > COUNT
    assert folder.log.read_text().count("prompt.submitted") == len(doors[3])
    said = "\n".join(printed)
    assert [fake for fake in made if fake.secret in kept] == []
    assert [fake for fake in made if fake.secret in said] == []


def test_an_edit_with_a_secret_is_taken_over_and_not_set_aside(say, store):
    """The person's bytes are known again although what is committed differs from them."""
    fake = next(fakes(2, 1))
    path = store.folder("trades").document("relay")
    path.write_text(relay([fake]))
    say("doctor", "--fix")
    assert "[redacted:" in path.read_text()
    assert list(path.parent.glob("*.rejected")) == []
    path.write_text(relay([fake]))
    say("relay", "set", str(path))
    assert list(path.parent.glob("*.rejected")) == []
    assert fake.secret not in path.read_text()


def test_a_second_look_adopts_nothing_new(say, store):
    """A secret written into state.json again and again is one edit."""
    fake = next(fakes(3, 1))
    folder = store.folder("trades")
    for _ in range(2):
        edited = json.loads(folder.state.read_bytes())
        edited["numbers"] = {"note": fake.line}
        folder.state.write_text(json.dumps(edited))
        say("doctor", "--fix")
    log = folder.log.read_text()
    assert log.count('"state.adopted"') == 1
    assert fake.secret not in log


def test_a_record_that_is_seen_twice_is_one(say, store):
    """Read from the inbox or from the log, a loop says the same: the fold stays independent."""
    fake = next(fakes(5, 1))
    say("loops", "add", "rotate", fake.line)
    (loop,) = store.read("trades").projection.loops.values()
    assert "[redacted:" in loop.text
    assert Redaction().text(loop.text) == loop.text
    assert say("loops", "add", "rotate", fake.line).startswith("Nothing to do: loop rotate")


def test_what_waits_for_a_busy_writer_holds_no_secret(say, store):
    """A command's records lie in the inbox until the writer folds them: already without secrets."""
    made = list(fakes(7, 20))
    folder = store.folder("trades")
    with file_locks.hold_lock(folder.lock, 0) as lock:
        assert lock is not None
        records = [
            LoopAdded(ts=clock.read_clock(), id=f"{n}", text=f.line) for n, f in enumerate(made)
        ]
        assert store.submit("trades", *records) is False
        waiting = kept_below(folder.inbox)
    assert waiting.count("[redacted:") >= len(made)
    assert [fake for fake in made if fake.secret in waiting] == []


def test_what_the_writer_itself_appends_holds_no_secret(say, store):
    """An event that never was in the inbox is redacted on its way into the log."""
    made = list(fakes(8, 20))
    folder = store.folder("trades")
    with store.writer("trades") as writer:
        for fake in made:
            writer.append(
                DocumentRejected(ts=writer.now(), document="relay", path="p", reason=fake.line)
            )
    log = folder.log.read_text()
    assert log.count("[redacted:") >= len(made)
    assert [fake for fake in made if fake.secret in log] == []


def test_the_manifest_s_allow_list_holds_in_the_store(say, tmp_path):
    """Texts that the project allows are kept as written."""
    fake = next(fakes(6, 1))
    manifest = tmp_path / "rekindle.yaml"
    manifest.write_text(f'{manifest.read_text()}redact:\n  allow: ["{fake.secret}"]\n')
    say("loops", "add", "rotate", fake.line)
    assert fake.secret in say("loops")


def test_an_edit_of_state_json_is_adopted_whatever_is_redacted_in_it(say, store):
    """Even with an unfinished key block, or a number under a telling name, the edit counts."""
    say("loops", "add", "rotate", "rotate the keys")
    path = store.folder("trades").state
    body = "a7Bk" * 16
    raw = json.loads(path.read_text())
    raw["numbers"]["api_token"] = 12345678901
    raw["note"] = ["-----BEGIN PRIVATE " + f"KEY-----\n{body}", False, None]
    path.write_text(json.dumps(raw, indent=1))
    say("loops", "add", "next", "the next one")
    after = json.loads(path.read_text())
    assert after["numbers"] == {"api_token": str(raw["numbers"]["api_token"])}
    assert after["note"][1:] == [False, None]
    assert body not in path.read_text()
    assert not path.with_name("state.json.rejected").exists()


def test_a_command_says_how_many_secrets_it_replaced(say, tmp_path):
    """The commands that set or check a relay say that it is not kept word for word."""
    made = list(fakes(3, 2))
    (tmp_path / "relay.md").write_text(relay(made[:1]))
    for command in ("check", "set"):
        assert "2 secrets were redacted" in say("relay", command, "relay.md")
        assert json.loads(say("relay", command, "relay.md", "--json"))["redacted"] == 2
    (tmp_path / "relay.md").write_text("## Next Action\nRead the log.\n")
    assert "redacted" not in say("relay", "set", "relay.md")
