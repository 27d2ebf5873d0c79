"""The seal: a log that something else than Rekindle changed counts for nothing it forged."""

import shutil

import msgspec
import pytest

from rekindle.documents import events, state
from rekindle.errors import StoreError, TamperedLogError
from rekindle.policy.operator import questions
from rekindle.policy.projection import open_loops
from rekindle.policy.projection.projection import Projection
from rekindle.policy.stall.stall_response import LastAnswer
from rekindle.policy.supervision.run_moves import CycleLimit
from rekindle.stores.files import FileStore
from rekindle.stores.folders.private_files import PrivateProject
from rekindle.stores.log import (
    event_log,
    log_acceptance,
    seal,
)
from rekindle.stores.log.seal import (
    ChainPosition,
    Seal,
)
from rekindle.system.files import (
    durable_files,
    user_folder,
)


def add(store, identity, clock):
    clock.forward(seconds=1)
    return store.submit("trades", open_loops.propose_loop({}, identity, "text", clock()))


def say(store, desired, clock):
    clock.forward(seconds=1)
    return store.submit("trades", events.DesiredSet(ts=clock(), desired=desired))


def forged(store, clock):
    seen = store.read("trades").committed
    clock.forward(hours=1)
    wanted = events.DesiredSet(ts=clock(), desired="running", seq=seen.seq + 1, gen=seen.gen)
    return events.render(wanted) + b"\n"


@pytest.fixture
def stopped(store, clock):
    add(store, "first", clock)
    say(store, "running", clock)
    add(store, "second", clock)
    say(store, "stopped", clock)
    assert store.read("trades").condition == "sealed"
    return store


def append(folder, line):
    with folder.log.open("ab") as file:
        file.write(line)


def rewrite(folder, _):
    data = folder.log.read_bytes()
    folder.log.write_bytes(data.replace(b'"stopped"', b'"running"'))


def truncate(folder, _):
    lines = folder.log.read_bytes().splitlines(keepends=True)
    folder.log.write_bytes(b"".join(lines[:-1]))


def restore(folder, _):
    lines = folder.log.read_bytes().splitlines(keepends=True)
    folder.log.write_bytes(b"".join(lines[:3]))


def remove(folder, _):
    shutil.rmtree(folder.path)


def torn(folder, _):
    with folder.log.open("ab") as file:
        file.write(b'{"v":1,"seq":99,"ts"')


DAMAGE = {
    append: "appended",
    torn: "appended",
    rewrite: "rewritten",
    truncate: "rewritten",
    restore: "rewritten",
    remove: "missing",
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("is_cold", [False, True], ids=["known", "cold"])
def test_a_changed_log_starts_nothing(stopped, open_store, clock, damage, is_cold):
    """Readers show it in safe mode, no writer touches it, and no forged line counts."""
    folder = stopped.folder("trades")
    damage(folder, forged(stopped, clock))
    before = folder.log.read_bytes() if folder.log.exists() else None
    store = open_store() if is_cold else stopped
    seen = store.read("trades")
    assert seen.condition == DAMAGE[damage]
    assert (seen.projection.run.is_safe, seen.projection.run.safe.why) == (True, "tampered")
    assert seen.projection.run.desired != "running"
    with pytest.raises(TamperedLogError), store.writer("trades"):
        pass
    assert (folder.log.read_bytes() if folder.log.exists() else None) == before
    if folder.path.exists():
        assert any(seen.projection.run.safe.words in one.what for one in store.inspect("trades"))


@pytest.mark.parametrize("damage", DAMAGE)
def test_the_operator_accepts_it(stopped, open_store, clock, damage):
    """Then it is sealed as it is; lines that were added are set aside, and never count."""
    folder = stopped.folder("trades")
    line = forged(stopped, clock)
    damage(folder, line)
    if damage in {truncate, restore}:
        folder.state.unlink()
    store = open_store()
    assert store.accept_log("trades")
    assert not store.accept_log("trades")
    for reader in (store, stopped, open_store()):
        assert reader.read("trades").condition == "sealed"
        assert not reader.read("trades").projection.run.is_safe
    assert add(store, "after", clock)
    (noted,) = [
        one
        for one in store.events_since("trades", 0).events
        if isinstance(one, events.DocumentRejected)
    ]
    assert "operator accepted" in noted.reason
    if damage is append:
        assert (folder.path / noted.path).read_bytes() == line
        assert store.read("trades").projection.run.desired == "stopped"


def numbered(store, *lines):
    """Return events as lines behind the log."""
    first = store.read("trades").committed.seq + 1
    return b"".join(
        events.render(msgspec.structs.replace(event, seq=first + place, gen=1)) + b"\n"
        for place, event in enumerate(lines)
    )


def test_a_project_that_was_moved_and_moved_back_keeps_its_history(stopped, open_store, clock):
    """The seal that the other path has, in the user's own folder, confirms the later lines."""
    folder = stopped.folder("trades")
    older = folder.private.seal.read_bytes()
    for number in range(5):
        add(stopped, f"later-{number}", clock)
    moved = PrivateProject(folder.path / "moved").make_agent("trades")
    moved.seal.write_bytes(folder.private.seal.read_bytes())
    folder.private.seal.write_bytes(older)
    whole = folder.log.read_bytes()
    append(folder, numbered(stopped, events.CycleEnded(ts=clock(), cycle=7)))
    store = open_store()
    assert store.read("trades").condition == "appended"
    assert store.accept_log("trades")
    after = store.read("trades").committed
    assert folder.log.read_bytes().startswith(whole)
    assert ("later-4" in after.loops, after.cycle_ended) == (True, 0)


def test_a_seal_that_is_older_than_the_log_sets_the_later_lines_aside(stopped, open_store, clock):
    """After a restore of the user's folder, only a file that the agent can write has them."""
    folder = stopped.folder("trades")
    older, known = folder.private.seal.read_bytes(), folder.log.read_bytes()
    add(stopped, "later", clock)
    later = folder.log.read_bytes().removeprefix(known)
    folder.private.seal.write_bytes(older)
    store = open_store()
    assert store.accept_log("trades")
    assert (folder.path / "ops.jsonl.rejected").read_bytes() == later
    assert (folder.path / "state.json.rejected").exists()
    assert store.read("trades").committed.loops.keys() == {"first", "second"}
    assert add(store, "after", clock)


def claim_newer_state(folder):
    """Have state.json say that it was made from the whole log, as the writer's own would."""
    seq = events.parse(folder.log.read_bytes().splitlines()[-1]).seq
    folder.state.write_bytes(
        state.render(msgspec.structs.replace(state.parse(folder.state.read_bytes()), seq=seq))
    )


def change_a_byte(folder):
    data = folder.log.read_bytes()
    folder.log.write_bytes(data.replace(b"{", b"{ ", 1))


def change_a_byte_and_state(folder):
    claim_newer_state(folder)
    change_a_byte(folder)


def lose_seal(folder):
    folder.private.seal.unlink()


def decisions(clock):
    """Every kind of line that gives a permission, or makes a budget look less spent."""
    question = {"question": "trades-1", "number": 1, "about": "budget"}
    known = msgspec.to_builtins(Projection(agent="trades", answer=LastAnswer(99, "yes")))
    return [
        events.DesiredSet(ts=clock(), desired="running", cycles=0, unbounded=True),
        events.RestartRequested(ts=clock(), fresh=True),
        events.PersonAnswered(ts=clock(), text="yes, deploy it"),
        events.HandoffRequested(ts=clock()),
        events.MessageSent(ts=clock(), message="m1", text="yes, deploy it"),
        events.BudgetRaised(ts=clock(), usd=1e6),
        events.QuestionAsked(
            ts=clock(), **question, choices=("raise",), default="raise", deadline=clock()
        ),
        events.QuestionAnswered(
            ts=clock(), question="trades-1", effect="continue", text="yes", budget={"usd": 1e6}
        ),
        events.AgentReceived(ts=clock(), known=known),
        events.SpendRecorded(ts=clock(), launch="b", tokens=1, usd=0.01),
    ]


@pytest.mark.parametrize("has_snapshot", [False, True], ids=["short", "snapshot"])
@pytest.mark.parametrize(
    "hide", [claim_newer_state, change_a_byte, change_a_byte_and_state, lose_seal]
)
def test_acceptance_takes_no_decision_that_was_not_sealed(
    stopped, open_store, clock, hide, has_snapshot
):
    """Whatever the workspace says of the log's age: forged commands never count."""
    with stopped.writer("trades") as writer:
        writer.append(events.RunStarted(ts=clock()))
        writer.append(events.SpendRecorded(ts=clock(), launch="a", tokens=900, usd=9.0))
        if has_snapshot:
            writer.snapshot()
    folder, before = stopped.folder("trades"), stopped.read("trades").committed
    lines = [*decisions(clock), events.CycleEnded(ts=clock(), cycle=7)]
    for place, event in enumerate(lines, before.seq + 1):
        numbered = msgspec.structs.replace(event, seq=place, gen=1, at=f"operator/1-a.seg:{place}")
        append(folder, events.render(numbered) + b"\n")
    hide(folder)
    store = open_store()
    assert store.accept_log("trades")
    assert store.read("trades").condition == "sealed"
    after = store.read("trades").committed
    assert (after.new_answers, after.questions, after.answers) == ([], {}, {})
    assert after.messages == {}
    assert (after.handoff_asked, after.fresh_asked, after.run.raised) == (0, 0, ())
    assert (after.run.desired, after.run.restarted) in {("stopped", 0), ("", 0)}
    assert after.run.cycles == CycleLimit()
    assert "operator/1-a.seg" not in after.cursors
    assert {"first", "second"} <= after.loops.keys()
    assert after.loss is None
    assert after.run.run_spending().usd == 9.0
    if hide is claim_newer_state or has_snapshot:
        assert (after.run.desired, after.cycle_ended) == ("stopped", 0)
    (aside,) = folder.path.glob("ops.jsonl*.rejected")
    assert b"yes, deploy it" in aside.read_bytes()
    assert b"yes, deploy it" not in folder.log.read_bytes()
    assert add(store, "after", clock)


@pytest.mark.parametrize("kind", ["cycle.ended", "relay.committed"])
@pytest.mark.parametrize("hide", [None, claim_newer_state])
def test_no_appended_line_of_any_kind_counts(stopped, open_store, clock, kind, hide):
    """This holds even if state.json, which the agent can write, claims to include that line."""
    folder = stopped.folder("trades")
    forged = {
        "cycle.ended": events.CycleEnded(ts=clock(), cycle=7),
        "relay.committed": events.RelayCommitted(
            ts=clock(), path="memories/archive/x.md", sha256="0", by="agent", headline="deploy"
        ),
    }
    append(folder, numbered(stopped, forged[kind]))
    if hide:
        hide(folder)
    before = stopped.read("trades").committed
    store = open_store()
    assert store.accept_log("trades")
    after = store.read("trades").committed
    assert (after.cycle_ended, after.documents) == (0, before.documents)
    with store.writer("trades") as writer:
        writer.append(events.CycleEnded(ts=clock(), cycle=1))
    assert store.read("trades").committed.cycle_ended == 1


def test_what_the_snapshot_knows_outlives_a_rewritten_log(stopped, open_store, clock):
    """Genuine answers count as before, though the lines that say them cannot be told apart."""
    clock.forward(seconds=1)
    stopped.submit("trades", events.PersonAnswered(ts=clock(), text="use the second account"))
    with stopped.writer("trades") as writer:
        writer.append(*[events.Heartbeat(ts=clock())] * 20)
        writer.snapshot()
    folder, before = stopped.folder("trades"), stopped.read("trades").committed
    append(folder, numbered(stopped, events.CycleEnded(ts=clock(), cycle=7)))
    change_a_byte(folder)
    folder.log.write_bytes(folder.log.read_bytes().replace(b'"stopped"', b'"running"'))
    store = open_store()
    assert store.read("trades").condition == "rewritten"
    assert store.accept_log("trades")
    for reader in (store, open_store()):
        after = reader.read("trades").committed
        assert after.new_answers == before.new_answers != []
        assert (after.run.desired, after.cycle_ended) == ("stopped", 0)
        assert after.loops.keys() == {"first", "second"}
    assert add(store, "after", clock)


def test_lines_before_the_change_are_confirmed_by_older_records(stopped, open_store, clock):
    """Without a snapshot, the seal's own records tell how far the log is genuine."""
    clock.forward(seconds=1)
    stopped.submit("trades", events.PersonAnswered(ts=clock(), text="use the second account"))
    say(stopped, "stopped", clock)
    folder, before = stopped.folder("trades"), stopped.read("trades").committed
    *lines, _ = folder.log.read_bytes().splitlines(keepends=True)
    forged = events.DesiredSet(ts=clock(), desired="running", seq=before.seq, gen=1)
    folder.log.write_bytes(b"".join([*lines, events.render(forged), b"\n"]))
    folder.state.unlink()
    store = open_store()
    assert store.accept_log("trades")
    after = store.read("trades").committed
    assert after.new_answers == before.new_answers != []
    assert after.run.desired == "stopped"


def ask(store, clock, number=1):
    """Have the agent ask a question, as a supervisor does."""
    clock.forward(seconds=1)
    entered = events.SafeModeEntered(ts=clock(), why="auth", words="log in")
    asking = questions.QuestionTerms(
        clock(), 60.0, last_number=lambda: store.last_question("trades")
    )
    with store.writer("trades") as writer:
        writer.append(*questions.add_questions(writer.projection, [entered], asking))
        assert f"trades-{number}" in writer.projection.questions


def forget_numbers(folder):
    """Lose what the user folder has of the agent, as in a project from another host."""
    shutil.rmtree(folder.private.path)


def rewrite_as_empty(folder):
    folder.log.write_bytes(b"{}\n")
    folder.state.unlink()


def remove_log(folder):
    folder.log.unlink()
    folder.state.unlink()


@pytest.mark.parametrize("has_snapshot", [False, True], ids=["short", "snapshot"])
@pytest.mark.parametrize(
    "damage", [change_a_byte, rewrite_as_empty, remove_log, lose_seal, forget_numbers]
)
def test_no_question_gets_the_id_of_one_that_an_accepted_log_has_lost(
    stopped, open_store, clock, damage, has_snapshot
):
    """The command of an old notification must not answer another question."""
    for number in (1, 2):
        ask(stopped, clock, number)
    if has_snapshot:
        with stopped.writer("trades") as writer:
            writer.snapshot()
    damage(stopped.folder("trades"))
    store = open_store()
    assert store.accept_log("trades")
    ask(store, clock, 3)
    rewrite_as_empty(store.folder("trades"))
    assert store.accept_log("trades")
    ask(store, clock, 4)


def test_a_log_from_elsewhere_cannot_make_ids_long(stopped, open_store, clock):
    folder = stopped.folder("trades")
    ask(stopped, clock)
    asked = b'"question":"trades-%d"'
    forged = folder.log.read_bytes().replace(asked % 1, asked % 10**12)
    folder.log.write_bytes(forged + folder.log.read_bytes())
    forget_numbers(folder)
    store = open_store()
    assert store.accept_log("trades")
    ask(store, clock, 2)


def test_a_log_that_is_taken_over_without_a_seal_decides_nothing(stopped, open_store, clock):
    """The same rule as for a log that the operator accepts."""
    clock.forward(seconds=1)
    folder = stopped.folder("trades")
    append(folder, numbered(stopped, *decisions(clock)))
    lose_seal(folder)
    folder.state.unlink()
    store = open_store("elsewhere")
    with store.writer("trades", take_over=True):
        pass
    after = store.read("trades").committed
    assert (after.new_answers, after.questions, after.run.desired) == ([], {}, "")
    assert after.loops.keys() == {"first", "second"}
    (noted,) = [
        one
        for one in store.events_since("trades", 0).events
        if isinstance(one, events.DocumentRejected)
    ]
    assert b"yes, deploy it" in (folder.path / noted.path).read_bytes()


def test_spending_outlives_a_log_that_is_rewritten_whole(stopped, open_store, clock):
    """This holds without a snapshot; only the spending of the last run counts."""
    with stopped.writer("trades") as writer:
        for usd in (30.0, 9.0):
            writer.append(events.RunStarted(ts=clock()))
            writer.append(events.SpendRecorded(ts=clock(), launch="a", tokens=900, usd=usd))
    folder = stopped.folder("trades")
    assert not folder.snapshot.exists()
    data = folder.log.read_bytes().replace(b'"usd":9.0', b'"usd":0.1')
    folder.log.write_bytes(data.replace(b"{", b"{ ", 1))
    store = open_store()
    assert store.accept_log("trades")
    assert store.read("trades").committed.run.run_spending().usd == 9.0


def test_spending_outlives_a_command_that_is_killed_while_it_accepts(
    stopped, open_store, clock, monkeypatch
):
    """The log is sealed by then, so that no later command would look at it again."""
    with stopped.writer("trades") as writer:
        writer.append(events.RunStarted(ts=clock()))
        writer.append(events.SpendRecorded(ts=clock(), launch="a", tokens=900, usd=9.0))
    folder, reseal = stopped.folder("trades"), log_acceptance.seal_log
    folder.log.write_bytes(folder.log.read_bytes().replace(b'"usd":9.0', b'"usd":0.1'))
    claim_newer_state(folder)

    def reseal_and_die(of):
        reseal(of)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(log_acceptance, "seal_log", reseal_and_die)
        with pytest.raises(KeyboardInterrupt):
            open_store().accept_log("trades")
    store = open_store()
    assert store.read("trades").condition == "sealed"
    with store.writer("trades"):
        pass
    spent = store.read("trades").committed.run.run_spending()
    assert (spent.usd, spent.tokens) == (9.0, 900)
    with store.writer("trades") as writer:
        writer.append(events.RunStarted(ts=clock()))
    with open_store().writer("trades"):
        pass
    assert store.read("trades").committed.run.run_spending().usd == 0.0


@pytest.mark.parametrize("forged", [events.RunStarted, events.LaunchEnded])
def test_an_accepted_log_has_spent_no_less(stopped, open_store, clock, forged):
    """Neither a forged beginning of a run nor a forged end of a launch gives budget back."""
    with stopped.writer("trades") as writer:
        writer.append(events.RunStarted(ts=clock()))
        writer.append(events.SpendRecorded(ts=clock(), launch="a", tokens=900, usd=9.0))
    folder, seq = stopped.folder("trades"), stopped.read("trades").committed.seq
    fields = (
        {"launch": "b", "cycle": 1, "session": "s", "exit": "clean"}
        if forged is events.LaunchEnded
        else {}
    )
    append(folder, events.render(forged(ts=clock(), seq=seq + 1, gen=1, **fields)) + b"\n")
    claim_newer_state(folder)
    store = open_store()
    assert store.accept_log("trades")
    spent = store.read("trades").committed.run.run_spending()
    assert (spent.usd, spent.tokens) == (9.0, 900)


def test_a_stop_counts_while_the_log_is_not_trusted(stopped, clock):
    """It is kept outside the log, and acknowledged."""
    say(stopped, "running", clock)
    append(stopped.folder("trades"), forged(stopped, clock))
    assert stopped.read("trades").projection.run.desired == "running"
    stopped.create("trades")
    assert not say(stopped, "stopped", clock)
    assert stopped.read("trades").projection.run.desired == "stopped"
    stopped.accept_log("trades")
    with stopped.writer("trades") as writer:
        writer.fold()
    assert stopped.read("trades").committed.run.desired == "stopped"


def test_a_log_from_elsewhere_is_not_trusted(stopped, tmp_path, clock):
    """Cloned, copied, or with the user's folder lost: it has no seal on this host."""
    other = FileStore(
        tmp_path,
        host="here",
        settings=stopped._settings,
        clock=clock,
        private=PrivateProject(tmp_path / "another host"),
    )
    seen = other.read("trades")
    assert seen.condition == "unsealed"
    assert seen.projection.run.is_safe
    with pytest.raises(TamperedLogError), other.writer("trades"):
        pass
    assert other.accept_log("trades")
    assert add(other, "after", clock)


def test_a_forged_snapshot_in_the_workspace_counts_for_nothing(stopped, open_store):
    with stopped.writer("trades") as writer:
        writer.snapshot()
    folder = stopped.folder("trades")
    assert folder.snapshot.is_relative_to(user_folder.find_user_folder())
    kept = folder.snapshot.read_bytes().replace(b"stopped", b"running")
    (folder.path / "snapshot.json").write_bytes(kept)
    assert open_store().read("trades").projection.run.desired == "stopped"


def test_history_before_the_snapshot_is_verified_by_doctor(stopped, open_store, clock):
    """The counted state is in the snapshot; a reader does not hash the whole log each time."""
    with stopped.writer("trades") as writer:
        writer.append(*[events.Heartbeat(ts=clock())] * 20)
        writer.snapshot()
    folder = stopped.folder("trades")
    folder.log.write_bytes(folder.log.read_bytes().replace(b'"stopped"', b'"running"'))
    store = open_store()
    assert store.read("trades").condition == "sealed"
    assert store.read("trades").projection.run.desired == "stopped"
    assert any("changed before its last snapshot" in one.what for one in store.inspect("trades"))
    folder.snapshot.unlink()
    assert open_store().read("trades").condition == "rewritten"


@pytest.mark.parametrize("kept", ["nothing", "a part of a line", "a line", "all but one byte"])
def test_an_append_that_was_cut_short_is_not_tampering(store, open_store, clock, kept):
    """A power loss leaves any part of it; whatever it is counts for nothing, and is cut off."""
    folder = store.folder("trades")
    before = store.read("trades")
    lines = [
        events.render(events.Heartbeat(ts=clock(), seq=before.committed.seq + 1 + place, gen=1))
        + b"\n"
        for place in range(3)
    ]
    whole = b"".join(lines)
    then = ChainPosition(before.end + len(whole), seal.extend_chain(before.chain, lines))
    seal.promise_append(folder.private.seal, ChainPosition(before.end, before.chain), then)
    part = {"nothing": 0, "a part of a line": 9, "a line": len(lines[0]), "all but one byte": -1}
    append(folder, whole[: part[kept]])
    for reader in (store, open_store()):
        seen = reader.read("trades")
        assert (seen.condition, seen.committed.seq) == ("sealed", before.committed.seq)
    assert add(store, "after", clock)
    assert store.read("trades").bad == ()
    assert open_store().read("trades").committed.seq == before.committed.seq + 1


def test_an_append_whose_confirmation_is_lost_counts(store, open_store, clock, monkeypatch):
    monkeypatch.setattr(seal, "confirm_append", lambda *_: None)
    add(store, "kept", clock)
    assert "kept" in open_store().read("trades").committed.loops
    assert seal.read_seal(store.folder("trades").private.seal).then is not None
    add(store, "next", clock)
    assert open_store().read("trades").condition == "sealed"


def test_a_confirmed_append_cannot_be_taken_back(stopped, open_store):
    """Cutting the log back to where it was before the stop is not an append that was cut short."""
    assert seal.read_seal(stopped.folder("trades").private.seal).then is None
    truncate(stopped.folder("trades"), b"")
    assert open_store().read("trades").condition == "rewritten"


def test_a_full_user_folder_refuses_before_the_log_changes(store, clock, monkeypatch):
    before = store.folder("trades").log.read_bytes()

    def full(path, *_, **__):
        raise StoreError(str(path), "No space left on device", errno=28)

    with monkeypatch.context() as patch:
        patch.setattr(seal, "_append_seal", full)
        with pytest.raises(StoreError), store.writer("trades") as writer:
            writer.append(events.Heartbeat(ts=clock()))
    assert store.folder("trades").log.read_bytes() == before
    assert add(store, "after", clock)
    assert store.read("trades").condition == "sealed"


def test_a_failed_append_leaves_the_log_sealed(store, open_store, clock, monkeypatch):
    """This holds even if its partial text cannot be cut off at once."""
    real = durable_files.append_durably

    def failing(path, data):
        real(path, data[:-5])
        raise StoreError(str(path), "No space left on device", errno=28)

    with monkeypatch.context() as patch:
        patch.setattr(durable_files, "append_durably", failing)
        with pytest.raises(StoreError), store.writer("trades") as writer:
            writer.append(events.Heartbeat(ts=clock()))
    assert open_store().read("trades").condition == "sealed"
    assert add(store, "after", clock)
    assert open_store().read("trades").condition == "sealed"


def test_a_line_that_slips_in_between_is_not_covered(store, open_store, clock, monkeypatch):
    """Written after the writer has read the log: the append is refused, not acknowledged."""
    real = event_log.append_lines
    line = forged(store, clock)

    def slipped(path, lines):
        append(store.folder("trades"), line)
        return real(path, lines)

    monkeypatch.setattr(event_log, "append_lines", slipped)
    with pytest.raises(TamperedLogError), store.writer("trades") as writer:
        writer.append(events.Heartbeat(ts=clock()))
    assert open_store().read("trades").condition == "appended"
    assert open_store().read("trades").projection.run.desired == ""


@pytest.mark.parametrize("garbage", [b"", b"\n1 5 abc", b"\x00" * 9000, b"\n1 5 abc 00000000\n"])
def test_a_torn_record_falls_back_to_the_one_before(store, open_store, clock, garbage):
    with store.folder("trades").private.seal.open("ab") as file:
        file.write(garbage)
    assert open_store().read("trades").condition == "sealed"
    assert add(store, "after", clock)
    assert open_store().read("trades").condition == "sealed"


def test_the_file_of_the_seal_stays_small(store, monkeypatch):
    monkeypatch.setattr(seal, "SEAL_COMPACT_BYTES", 2_000)
    path = store.folder("trades").private.seal
    last = seal.read_seal(path).base
    for number in range(40):
        place = ChainPosition(number, "0" * 64)
        seal.promise_append(path, last, place)
        assert seal.read_seal(path) == Seal(last, place)
        seal.confirm_append(path, place)
        assert seal.read_seal(path) == Seal(place)
        assert path.stat().st_size < 2_500
        last = place


def test_a_late_line_of_another_host_is_cut_off(store, open_store, clock):
    """Its generation was taken over: it never counts, and delays no command."""
    new = open_store("there")
    with new.writer("trades", take_over=True):
        pass
    late = events.DesiredSet(ts=clock(), desired="running", seq=3, gen=1)
    append(store.folder("trades"), events.render(late) + b"\n")
    assert new.read("trades").condition == "sealed"
    assert add(new, "after", clock)
    assert b"desired" not in store.folder("trades").log.read_bytes()


def test_readers_beside_a_writer_never_see_it_tampered(store, open_store, clock):
    """A reader reads the seal first, and judges what is behind it by the newer one."""
    reader = open_store()
    with store.writer("trades") as writer:
        real = seal.read_seal
        grown = []

        def late(path):
            found = real(path)
            if not grown:
                grown.append(path)
                writer.append(events.Heartbeat(ts=clock()))
            return found

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(seal, "read_seal", late)
            seen = reader.read("trades")
        assert grown
    assert seen.condition == "sealed"
