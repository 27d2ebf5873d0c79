"""The commit protocol, and what recovery makes of a file that does not fit the log."""

import os
import stat
from datetime import date

import msgspec
import pytest

from conftest import RELAY
from rekindle.documents import brief, checkpoint, events, relay, state
from rekindle.documents.relay import RelayField
from rekindle.errors import CheckFailedError
from rekindle.formats.json_codec import hash_bytes
from rekindle.policy.projection import open_loops
from rekindle.policy.settings.runtime_settings import (
    RelaySettings,
    RuntimeSettings,
    Settings,
)
from rekindle.thresholds.storage import REJECTED_FILES


def commit(store, text=RELAY, by="agent"):
    with store.writer("trades") as writer:
        return writer.commit_relay(relay.parse(text), by=by)


def heal(store):
    with store.writer("trades") as writer:
        writer.fold()


def kinds(store):
    return [event.kind for event in store.events_since("trades", 0).events]


def relay_file(store):
    return store.folder("trades").document("relay")


def test_a_committed_relay_is_in_the_log_the_archive_and_its_file(store):
    """A commit leaves the same bytes in the archive and in the file, and their hash in the log."""
    standing = commit(store)
    assert relay_file(store).read_text() == RELAY
    assert store.archived("trades", standing.path).decode() == RELAY
    event = next(iter(store.newest_events("trades")))
    assert (event.kind, event.sha256) == ("relay.committed", hash_bytes(RELAY.encode()))
    assert event.headline == "Write the parser"


def test_a_second_commit_names_the_first_as_its_previous(store):
    """Each commit carries the hash of the one before, for rolling forward."""
    first = commit(store)
    second = commit(store, RELAY.replace("parser", "printer"))
    assert second.previous == first.sha256


def test_the_agents_notes_are_in_its_next_relay_and_no_other(store, clock):
    """A relay that a person sets stays as it is; a later one carries failed approaches over."""
    for about in ("failed approach", "decision"):
        text = f"{about}: ghp_{hash_bytes(b'a token')[:36]}"
        proposed = events.ProposalMade(ts=clock(), about=about, text=text, by="trades")
        assert store.submit("trades", proposed)
    commit(store, by="person")
    assert relay_file(store).read_text() == RELAY
    commit(store)
    parsed = relay.parse(relay_file(store).read_bytes())
    assert "- failed approach: " in parsed.content(RelayField.FAILED_APPROACHES)
    assert "- decision: " in parsed.content(RelayField.KEY_DECISIONS)
    assert "ghp_" not in relay_file(store).read_text()
    assert parsed.next_action == relay.parse(RELAY).next_action
    commit(store, RELAY.replace("parser", "printer"))
    parsed = relay.parse(relay_file(store).read_bytes())
    assert "- failed approach: " in parsed.content(RelayField.FAILED_APPROACHES)


def test_an_unusable_relay_is_refused_and_the_old_one_stands(store):
    """A relay without a directive never replaces one that has one."""
    commit(store)
    with pytest.raises(CheckFailedError, match="Next Action"):
        commit(store, "## Current Phase\nlost\n")
    assert relay_file(store).read_text() == RELAY


def test_what_is_trimmed_is_in_the_archive(open_store):
    """Over its cap a relay is trimmed, and the archive and the relay together hold every line."""
    cap = Settings(runtime=RuntimeSettings(relay=RelaySettings(max_relay_tokens=200)))
    store = open_store(settings=cap)
    store.create("trades")
    history = "".join(f"- did thing number {n} with great care\n" for n in range(100))
    text = RELAY + f"\n## What We Did This Cycle\n{history}"
    standing = commit(store, text)
    assert not standing.over_cap
    kept = relay_file(store).read_text().splitlines()
    archived = store.archived("trades", standing.trimmed).decode().splitlines()
    assert set(text.splitlines()) <= set(kept) | set(archived)
    assert "Write the parser" in kept


def test_a_kill_between_commit_and_replace_is_rolled_forward(store):
    """A file that equals the commit before is brought up to the last one."""
    commit(store)
    newer = RELAY.replace("parser", "printer")
    commit(store, newer)
    relay_file(store).write_text(RELAY)
    before = kinds(store)
    heal(store)
    assert relay_file(store).read_text() == newer
    assert kinds(store) == before


def test_a_deleted_relay_is_restored(store):
    """A file that is gone comes back from the archive."""
    commit(store)
    relay_file(store).unlink()
    heal(store)
    assert relay_file(store).read_text() == RELAY


def test_an_edit_by_hand_is_adopted(store):
    """A person's edit of the relay becomes a commit of its own."""
    commit(store)
    edited = RELAY.replace("parser", "manual")
    relay_file(store).write_text(edited)
    heal(store)
    event = next(iter(store.newest_events("trades")))
    assert (event.kind, event.by, event.headline) == (
        "relay.committed",
        "person",
        "Write the manual",
    )
    assert relay_file(store).read_text() == edited


def test_a_first_relay_written_by_hand_is_adopted(store):
    """A relay that a person put there before the first commit counts."""
    relay_file(store).write_text(RELAY)
    heal(store)
    assert store.read("trades").committed.documents["relay"].by == "person"


@pytest.mark.parametrize("name", ["relay", "checkpoint", "brief"])
@pytest.mark.parametrize("began", ["launch", "session"])
def test_no_edit_counts_as_the_person_s_once_an_agent_could_have_made_it(store, clock, name, began):
    """A process that `keep:` names outlives the launch, and can write the file."""
    launch = {"ts": clock(), "launch": "l1", "cycle": 1, "session": "s1"}
    point = checkpoint.compose(dict.fromkeys(checkpoint.CheckpointSection, "- something"))
    page = brief.compose("trades", date(2026, 4, 9), {brief.BriefLabel.NEXT: "Go on."})
    path = store.folder("trades").document(name)
    with store.writer("trades") as writer:
        if began == "launch":
            writer.append(events.LaunchStarted(**launch, harness="command"))
            writer.append(events.LaunchEnded(**launch, exit="clean"))
        else:
            writer.append(events.SessionStarted(ts=clock(), session="s1", harness="codex"))
            writer.append(events.SessionEnded(ts=clock(), session="s1"))
        writer.commit_checkpoint(point, by="summarizer")
        writer.commit_brief(page, by="summarizer")
    text = path.read_text() if path.exists() else RELAY
    path.write_text(f"{text}\nedited\n")
    heal(store)
    assert "edited" in path.read_text()
    assert store.read("trades").committed.documents[name].by == "agent-edit"


def test_an_edit_that_cannot_be_used_is_set_aside_and_said(store):
    """Rubbish in the relay's place is kept as .rejected; the last commit is restored."""
    commit(store)
    relay_file(store).write_bytes(b"\xff\xfe rubbish")
    heal(store)
    assert relay_file(store).read_text() == RELAY
    aside = relay_file(store).with_name("consensus.md.rejected")
    assert aside.read_bytes() == b"\xff\xfe rubbish"
    event = next(iter(store.newest_events("trades")))
    assert (event.kind, event.path) == ("document.rejected", "memories/consensus.md.rejected")


def reject(store, *texts):
    for text in texts:
        relay_file(store).write_bytes(text)
        heal(store)


def list_rejected(store):
    return {path.name for path in relay_file(store).parent.glob("*.rejected")}


def test_two_rejected_edits_do_not_overwrite_each_other(store):
    commit(store)
    reject(store, b"one", b"two")
    assert list_rejected(store) == {"consensus.md.2.rejected", "consensus.md.rejected"}


def test_only_the_newest_rejected_edits_are_kept(store):
    """A number is not used again, so that the log names the same file."""
    commit(store)
    reject(store, *(b"edit %d" % number for number in range(1, REJECTED_FILES + 4)))
    numbers = range(4, REJECTED_FILES + 4)
    assert list_rejected(store) == {f"consensus.md.{number}.rejected" for number in numbers}
    newest = next(iter(store.newest_events("trades")))
    path = store.folder("trades").path / newest.path
    assert path.read_bytes() == b"edit %d" % numbers[-1]


def test_old_rejected_files_are_removed_without_following_links(store, tmp_path):
    """The agent can put anything under such a name; it neither leads elsewhere nor blocks."""
    commit(store)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine").write_text("mine")
    memories = relay_file(store).parent
    (memories / "consensus.md.rejected").symlink_to(elsewhere / "mine")
    (memories / "consensus.md.2.rejected").symlink_to(elsewhere)
    (memories / "consensus.md.3.rejected").mkdir()
    (memories / "consensus.md.3.rejected/inner").symlink_to(elsewhere)
    reject(store, *(b"edit %d" % number for number in range(REJECTED_FILES)))
    numbers = range(4, REJECTED_FILES + 4)
    assert list_rejected(store) == {f"consensus.md.{number}.rejected" for number in numbers}
    assert (elsewhere / "mine").read_text() == "mine"


def test_a_planted_last_number_does_not_block_the_writer(store):
    commit(store)
    memories = relay_file(store).parent
    (memories / f"consensus.md.{'9' * 9}.rejected").touch()
    (memories / f"consensus.md.{'9' * 200}.rejected").touch()  # not a number of Rekindle's
    reject(store, b"edit")
    assert (memories / "consensus.md.rejected").read_bytes() == b"edit"


def test_an_edit_saved_during_a_commit_is_set_aside(store):
    """Saving the file while a commit is under way loses neither text."""
    commit(store)
    with store.writer("trades") as writer:
        relay_file(store).write_text(RELAY.replace("parser", "late edit"))
        writer.commit_relay(relay.parse(RELAY.replace("parser", "printer")), by="agent")
    assert "printer" in relay_file(store).read_text()
    assert "late edit" in relay_file(store).with_name("consensus.md.rejected").read_text()


def test_unchanged_sections_keep_their_bytes(store):
    """A change of one field leaves CRLF, tabs and unknown sections as they were."""
    text = "# Odd\r\n\tkeep\r\n## Next Action (Cycle #3)\r\nGo\r\n## Budget  \r\n| a |b|\r\n"
    changed = relay.parse(text).with_content(RelayField.NEXT_ACTION, "Stop\r\n")
    with store.writer("trades") as writer:
        writer.commit_relay(changed, by="agent")
    assert relay_file(store).read_bytes() == text.replace("Go", "Stop").encode()


def test_a_checkpoint_and_a_brief_are_committed_the_same_way(store):
    """All three documents have an archive copy, an event and a file."""
    point = checkpoint.compose(dict.fromkeys(checkpoint.CheckpointSection, "- something"))
    page = brief.compose("trades", date(2026, 4, 9), {brief.BriefLabel.NEXT: "Go on."})
    with store.writer("trades") as writer:
        writer.commit_checkpoint(point, by="summarizer")
        writer.commit_brief(page, by="summarizer")
    folder = store.folder("trades")
    assert folder.document("checkpoint").read_text() == checkpoint.render(point)
    assert folder.document("brief").read_text() == brief.render(page)
    documents = store.read("trades").committed.documents
    for name in ("checkpoint", "brief"):
        assert hash_bytes(store.archived("trades", documents[name].path)) == documents[name].sha256


@pytest.mark.parametrize("name", ["checkpoint", "brief"])
def test_a_broken_checkpoint_or_brief_is_set_aside_and_restored(store, name):
    """An edit without the needed parts does not replace a good document."""
    point = checkpoint.compose(dict.fromkeys(checkpoint.CheckpointSection, "- something"))
    page = brief.compose("trades", date(2026, 4, 9), {brief.BriefLabel.NEXT: "Go on."})
    with store.writer("trades") as writer:
        writer.commit_checkpoint(point, by="summarizer")
        writer.commit_brief(page, by="summarizer")
    path = store.folder("trades").document(name)
    good = path.read_bytes()
    path.write_text("nonsense")
    heal(store)
    assert path.read_bytes() == good
    assert path.with_name(f"{path.name}.rejected").read_text() == "nonsense"


@pytest.mark.parametrize("name", ["relay", "checkpoint", "brief"])
def test_a_document_of_a_newer_schema_that_the_log_does_not_name_is_set_aside(store, name):
    """Commits of a newer Rekindle are in the log; an agent can write any other file."""
    commit(store)
    path = store.folder("trades").document(name)
    newer = f"<!-- rekindle: {name} 2 -->\n{RELAY}"
    path.write_text(newer)
    heal(store)
    assert path.with_name(f"{path.name}.rejected").read_text() == newer
    assert relay_file(store).read_text() == RELAY
    event = next(iter(store.newest_events("trades")))
    assert (event.kind, event.document) == ("document.rejected", name)
    assert f"{name}: has schema 2" in event.reason


def test_additions_to_state_json_are_taken_over(store):
    """A loop, a number and an unknown field written by hand become events; nothing is dropped."""
    store.submit("trades", open_loops.propose_loop({}, "old", "Old one", store._clock()))
    path = store.folder("trades").state
    raw = msgspec.json.decode(path.read_bytes())
    raw["open_loops"] = [{"id": "new", "text": "New one", "added": "2026-02-01", "owner": "me"}]
    raw["numbers"]["nav"] = 266691
    raw["mood"] = {"today": "good"}
    path.write_bytes(msgspec.json.encode(raw))
    heal(store)
    after = state.parse(path.read_bytes())
    assert {loop.id for loop in after.open_loops} == {"old", "new"}
    added = next(loop for loop in after.open_loops if loop.id == "new")
    assert (added.added, added.stale, added.extra) == ("2026-02-01", True, {"owner": "me"})
    assert after.numbers == {"nav": "266691"}
    assert after.extra == {"mood": {"today": "good"}}
    assert state.is_unedited(path.read_bytes())


def test_a_resolution_written_into_state_json_counts(store):
    """Moving a loop to `resolved` by hand resolves it, in the log and in resolved.jsonl too."""
    store.submit("trades", open_loops.propose_loop({}, "old", "Old one", store._clock()))
    path = store.folder("trades").state
    raw = msgspec.json.decode(path.read_bytes())
    raw["open_loops"] = []
    raw["resolved"] = [{"id": "old", "reason": "by hand", "resolved_date": "2026-04-09"}]
    path.write_bytes(msgspec.json.encode(raw))
    heal(store)
    assert not store.read("trades").projection.loops["old"].is_open
    assert b'"by hand"' in store.folder("trades").resolved.read_bytes()


def test_a_broken_state_json_is_set_aside_and_rebuilt(store):
    """The log is the truth: a broken projection costs nothing."""
    store.submit("trades", open_loops.propose_loop({}, "old", "Old one", store._clock()))
    path = store.folder("trades").state
    path.write_bytes(b'{"open_loops": [')
    heal(store)
    assert [loop.id for loop in state.parse(path.read_bytes()).open_loops] == ["old"]
    assert path.with_name("state.json.rejected").read_bytes() == b'{"open_loops": ['


def test_resolutions_are_appended_once_each(store, clock):
    """resolved.jsonl has one line per resolution, also after a crash before it was written."""
    for number in range(3):
        clock.forward(seconds=1)
        store.submit("trades", open_loops.propose_loop({}, f"l{number}", "text", clock()))
        known = store.read("trades").projection.loops
        store.submit("trades", open_loops.resolve_loop(known, f"l{number}", "done", clock()))
    path = store.folder("trades").resolved
    lines = path.read_bytes().splitlines()
    assert [msgspec.json.decode(line)["id"] for line in lines] == ["l0", "l1", "l2"]
    assert set(msgspec.json.decode(lines[0])) == {"id", "reason", "ts", "domain", "v", "seq"}
    path.write_bytes(b"".join(line + b"\n" for line in lines[:2]) + lines[2][:10])
    heal(store)
    healed = path.read_bytes().splitlines()
    assert [msgspec.json.decode(healed[place])["id"] for place in (0, 1, 3)] == ["l0", "l1", "l2"]


def test_every_file_is_for_its_owner_alone(store):
    """Files are 0600 and folders 0700, whatever the umask."""
    commit(store)
    store.submit("trades", open_loops.propose_loop({}, "old", "Old one", store._clock()))
    with store.writer("trades") as writer:
        writer.snapshot()
    old = os.umask(0)
    try:
        store.create("second")
    finally:
        os.umask(old)
    for path in [store.root.path, *store.root.path.rglob("*")]:
        mode = stat.S_IMODE(path.lstat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path


def test_leftovers_of_a_killed_writer_are_swept(store):
    """A half-written temporary file is gone after the next writer."""
    litter = store.folder("trades").path / ".tmp-0123-state.json"
    litter.write_bytes(b"{")
    heal(store)
    assert not litter.exists()


def test_the_log_is_never_rewritten(store, clock):
    """Whatever happens, the log only grows."""
    seen = store.folder("trades").log.read_bytes()
    commit(store)
    relay_file(store).write_bytes(b"rubbish")
    heal(store)
    store.submit("trades", events.Heartbeat(ts=clock()))
    with store.writer("trades") as writer:
        writer.snapshot()
    assert store.folder("trades").log.read_bytes().startswith(seen)


def test_an_edit_of_state_json_during_a_writer_s_life_is_taken_over(store, clock):
    """A supervisor writes for hours: what is saved meanwhile must not be overwritten."""
    with store.writer("trades") as writer:
        path = store.folder("trades").state
        raw = msgspec.json.decode(path.read_bytes())
        raw["open_loops"] = [{"id": "by-hand", "text": "added meanwhile"}]
        path.write_bytes(msgspec.json.encode(raw))
        writer.append(events.Heartbeat(ts=clock()))
        writer.project()
    assert store.read("trades").committed.loops["by-hand"].is_open


def test_an_adopted_file_keeps_its_inode(store):
    """An editor or agent that still has the file open keeps writing into the same file."""
    commit(store)
    relay_file(store).write_text(RELAY.replace("parser", "manual"))
    inode = relay_file(store).stat().st_ino
    heal(store)
    assert store.read("trades").committed.documents["relay"].by == "person"
    assert relay_file(store).stat().st_ino == inode


def test_loops_without_an_id_stay_apart(store):
    """Sentences in any language, and sentences that begin alike, get ids of their own."""
    path = store.folder("trades").state
    raw = msgspec.json.decode(path.read_bytes())
    long = "the very same beginning of a sentence that runs on and on until it "
    raw["open_loops"] = ["检查部署", "修复登录", long + "stops", long + "ends"]
    path.write_bytes(msgspec.json.encode(raw))
    heal(store)
    assert len(store.read("trades").committed.loops) == 4
    before = path.read_bytes()
    heal(store)
    assert path.read_bytes() == before


def test_a_date_changed_by_hand_is_taken_over(store, clock):
    """Correcting `added` in state.json changes the loop's age."""
    store.submit("trades", open_loops.propose_loop({}, "old", "Old one", clock()))
    path = store.folder("trades").state
    raw = msgspec.json.decode(path.read_bytes())
    raw["open_loops"][0]["added"] = "2026-01-01"
    path.write_bytes(b"\xef\xbb\xbf" + msgspec.json.encode(raw))
    heal(store)
    (loop,) = state.parse(path.read_bytes()).open_loops
    assert (loop.added, loop.stale) == ("2026-01-01", True)


@pytest.mark.parametrize("version", ['"2"', "2.0", "[]", "true"])
def test_a_version_that_is_not_a_number_is_refused(store, version):
    """An unreadable schema is not taken for ours."""
    path = store.folder("trades").state
    path.write_bytes(b'{"v": %s, "agent": "trades"}' % version.encode())
    heal(store)
    assert path.with_name("state.json.rejected").exists()


def test_a_snapshot_forgets_no_resolution_that_is_not_written_yet(store, clock):
    """Facts of the log's tail are in resolved.jsonl before the tail is cut off."""
    store.submit("trades", open_loops.propose_loop({}, "old", "Old one", clock()))
    known = store.read("trades").projection.loops
    with store.writer("trades") as writer:
        writer.append(open_loops.resolve_loop(known, "old", "done", clock()))
        writer.snapshot()
    assert b'"old"' in store.folder("trades").resolved.read_bytes()


def test_lines_that_another_tool_appended_do_not_repeat_ours(store, clock):
    """A resolution appended to resolved.jsonl by hand has no number: ours are told apart by it."""
    for name in ("one", "two"):
        store.submit("trades", open_loops.propose_loop({}, name, "text", clock()))
        known = store.read("trades").projection.loops
        store.submit("trades", open_loops.resolve_loop(known, name, "done", clock()))
        with store.folder("trades").resolved.open("ab") as file:
            file.write(b'{"id":"other","reason":"by hand","ts":"2026-04-09","domain":"x"}\n')
    heal(store)
    lines = store.folder("trades").resolved.read_bytes().splitlines()
    assert [msgspec.json.decode(line)["id"] for line in lines] == ["one", "other", "two", "other"]


def archived(store):
    return sorted(path.name for path in store.folder("trades").archive.iterdir())


def test_an_unchanged_relay_is_archived_once(store, clock):
    """Each commit is an event of its own; all of them name the one copy."""
    first = commit(store)
    for _ in range(3):
        clock.forward(minutes=5)
        again = commit(store)
    assert (again.path, again.sha256, again.previous) == (first.path, first.sha256, first.sha256)
    assert again.seq == first.seq + 3
    assert len(archived(store)) == 1
    commits = [one for one in store.newest_events("trades") if one.kind == "relay.committed"]
    assert [store.committed_relay("trades", one).decode() for one in commits] == [RELAY] * 4
    changed = commit(store, RELAY.replace("Write", "Test"))
    assert changed.path != first.path
    assert len(archived(store)) == 2


@pytest.mark.parametrize("damage", ["gone", "changed", "cut"])
def test_a_copy_that_the_archive_lost_is_not_reused(store, damage):
    """A commit never names a copy that does not hold its bytes."""
    path = store.folder("trades").path / commit(store).path
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(b"something else" if damage == "changed" else path.read_bytes()[:-1])
    again = commit(store)
    assert store.archived("trades", again.path).decode() == RELAY


def test_what_is_trimmed_from_an_unchanged_relay_is_archived_once(open_store, clock):
    store = open_store(
        settings=Settings(runtime=RuntimeSettings(relay=RelaySettings(max_relay_tokens=60)))
    )
    text = f"{RELAY}\n## What We Did\n" + "".join(f"- step {number}\n" for number in range(60))
    first = commit(store, text)
    clock.forward(minutes=5)
    again = commit(store, text)
    assert (first.trimmed, again.trimmed) == (again.trimmed, first.trimmed)
    assert "step 9" in store.archived("trades", again.trimmed).decode()
    assert len(archived(store)) == 2
    third = commit(store, text.replace("step", "part"))
    assert "part 9" in store.archived("trades", third.trimmed).decode()
