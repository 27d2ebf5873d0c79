"""An agent as the engine keeps it: one lease at a time, every fact once, nothing of a zombie's."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.documents import event as events
from rekindle.documents import primer, shape
from rekindle.policy import register
from rekindle.policy.fold import Projection, fold
from rekindle.policy.register import Commit, Definition, Kept, Opening
from rekindle.policy.settings import FLEET_DOCUMENT_BYTES, FLEET_EVENTS_KEPT

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DEFINITION = Definition(manifest="version: 1\n", pool="default", heartbeat_seconds=5)


def new() -> Kept:
    kept = Kept(agent="trades", definition=DEFINITION, projection=Projection(agent="trades"))
    return register.append(kept, events.AgentCreated(ts=NOW, agent="trades"))


def line(event: events.Event) -> str:
    return events.render(event).decode()


def commit(kept: Kept, *new: events.Event, id: str = "one", **more) -> Commit:  # noqa: A002
    given = {"id": id, "generation": kept.generation, "known": kept.projection.seq} | more
    return Commit(lines=tuple(map(line, new)), **given)


def taken_up(kept: Kept, host: str = "a") -> Kept:
    leased = register.lease(kept)
    return register.opened(leased, Opening(generation=leased.generation, host=host), NOW)[0]


def cycle(number: int) -> events.CycleStarted:
    return events.CycleStarted(ts=NOW, cycle=number)


def relay(number: int, path: str) -> events.RelayCommitted:
    return events.RelayCommitted(ts=NOW, sha256=f"{number}", path=path, by="agent")


def test_a_fact_gets_its_place_and_the_generation_of_its_lease():
    kept = taken_up(new())
    after, answer = register.commit(kept, commit(kept, cycle(1)))
    (said,) = [events.parse(one.encode()) for one in answer.lines]
    assert (said.kind, said.seq, said.gen) == ("cycle.started", 3, 1)
    assert after.projection.cycle == 1


def test_whoever_commits_is_told_what_was_said_meanwhile():
    kept = taken_up(new())
    before = kept.projection.seq
    kept = register.say(kept, [line(events.DesiredSaid(ts=NOW, desired="stopped"))])
    after, answer = register.commit(kept, commit(kept, cycle(1), known=before))
    assert [events.parse(one.encode()).kind for one in answer.lines] == [
        "desired.said",
        "cycle.started",
    ]
    assert after.projection.run.desired == "stopped"


def test_a_commit_whose_answer_was_lost_counts_once():
    kept = taken_up(new())
    asked = commit(kept, cycle(1))
    once, first = register.commit(kept, asked)
    twice, second = register.commit(once, asked)
    assert (twice, second) == (once, first)


def test_only_the_last_commits_are_known_again():
    kept = taken_up(new())
    for number in range(40):
        kept, _ = register.commit(kept, commit(kept, cycle(number), id=f"{number}"))
    assert list(kept.answered) == ["38", "39"]


@pytest.mark.parametrize("how", ["older", "ended", "newer"])
def test_a_lease_that_is_not_in_force_is_refused(how):
    kept = taken_up(new())
    generation = kept.generation
    if how == "older":
        kept = register.lease(kept)
    elif how == "ended":
        kept = register.release(kept, is_gone=False)
    else:
        generation += 1
    assert register.refused(kept, generation)


def test_the_lease_in_force_is_not_refused():
    kept = taken_up(new())
    assert register.refused(kept, kept.generation) == ""


@pytest.mark.parametrize(
    "asked",
    [
        Commit(id="x", generation=1, known=99),
        Commit(id="x", generation=1, known=0, lines=('{"kind": "cycle.started"}',)),
        Commit(id="x", generation=1, known=0, lines=("no json",)),
        Commit(id="x", generation=1, known=0, documents={"a": "x" * (FLEET_DOCUMENT_BYTES + 1)}),
    ],
)
def test_what_cannot_be_counted_is_refused_in_words(asked):
    assert register.unfit(taken_up(new()), asked)


def test_what_fits_is_not():
    kept = taken_up(new())
    assert register.unfit(kept, commit(kept, cycle(1))) == ""


def test_an_operator_says_words_and_no_facts():
    said = events.DesiredSaid(ts=NOW, desired="running")
    assert register.unsayable([line(said), line(events.HandoffAsked(ts=NOW))]) == ""
    assert "relay.committed" in register.unsayable([line(said), line(relay(1, "x"))])
    assert register.unsayable(["no json"])


def test_a_kind_that_only_a_later_rekindle_knows_keeps_its_words():
    kept = taken_up(new())
    strange = '{"v": 1, "kind": "moon.rose", "ts": "2026-03-01T12:00:00Z", "phase": "full"}'
    asked = msgspec.structs.replace(commit(kept), lines=(strange,))
    assert register.unfit(kept, asked) == ""
    after, answer = register.commit(kept, asked)
    assert '"phase":"full"' in answer.lines[0]
    assert after.projection.seq == kept.projection.seq + 1


def test_a_host_that_stays_is_sent_nothing():
    kept = register.release(taken_up(new()), is_gone=False)
    leased = register.lease(kept)
    known = leased.projection
    asked = Opening(
        generation=leased.generation,
        host="a",
        seq=known.seq,
        held=register.held(known),
        defined=register.defined(DEFINITION),
    )
    after, opened = register.opened(leased, asked, NOW)
    assert opened.kept is None
    assert opened.definition is None
    assert after.projection == known


@pytest.mark.parametrize("what", ["another state", "another definition", "another host"])
def test_a_host_that_has_something_else_is_sent_what_it_lacks(what):
    leased = register.lease(register.release(taken_up(new()), is_gone=False))
    asked = Opening(
        generation=leased.generation,
        host="b" if what == "another host" else "a",
        seq=leased.projection.seq,
        held="other" if what == "another state" else register.held(leased.projection),
        defined="other" if what == "another definition" else register.defined(DEFINITION),
    )
    _, opened = register.opened(leased, asked, NOW)
    assert (opened.definition is not None) == (what == "another definition")
    assert (opened.kept is not None) == (what != "another definition")


def test_a_move_is_in_the_log_and_a_return_after_nobody_had_it_is_none():
    kept = register.release(taken_up(new(), "a"), is_gone=True)
    assert kept.host == ""
    back = taken_up(kept, "a")
    assert back.projection.moved == kept.projection.moved
    moved = taken_up(register.release(back, is_gone=True), "b")
    assert (moved.projection.moved.previous, moved.projection.moved.host) == ("a", "b")


def test_what_could_not_be_pushed_is_said_to_whoever_has_it_next():
    """Also after the next host has pushed: what is there is still not in it."""
    kept = taken_up(new())
    kept, _ = register.commit(kept, commit(kept, events.WorkspaceKept(ts=NOW, words="no room")))
    kept = taken_up(register.release(kept, is_gone=True), "b")
    pushed = events.WorkspacePushed(ts=NOW, revision="r", claim=kept.generation)
    kept, _ = register.commit(kept, commit(kept, pushed, id="two"))
    assert kept.projection.unpushed is None
    moved = kept.projection.moved
    assert (moved.host, moved.previous, moved.left) == ("b", "a", "no room")
    told = primer.moved(moved.host, moved.previous, moved.left)
    assert "on host a until now, and goes on on b. Its last push failed (no room). What" in told
    kept = taken_up(register.release(kept, is_gone=True), "a")
    assert kept.projection.moved.left == ""


def test_documents_stay_as_long_as_anybody_may_ask_for_them():
    kept = taken_up(new())
    for number in range(1, 21):
        path = f"memories/archive/relay-{number}.md"
        started = commit(kept, cycle(number), id=f"s{number}")
        kept, _ = register.commit(kept, started)
        ended = events.CycleEnded(ts=NOW, cycle=number, relay=path)
        asked = commit(
            kept, relay(number, path), ended, id=f"{number}", documents={path: f"# {number}\n"}
        )
        kept, _ = register.commit(kept, asked)
    assert sorted(kept.documents.values()) == sorted(f"# {number}\n" for number in range(17, 21))


def test_what_is_carried_over_does_not_grow():
    kept, sizes = taken_up(new()), []
    for number in range(1, 301):
        begun = events.LaunchStarted(
            ts=NOW + timedelta(seconds=number),
            launch=f"{number}",
            cycle=number,
            session=f"s{number}",
            harness="command",
        )
        beat = events.Heartbeat(
            ts=NOW, session=f"s{number}", call=f"c{number}", at=f"seg{number}:9"
        )
        kept, _ = register.commit(kept, commit(kept, cycle(number), begun, beat, id=f"{number}"))
        kept = register.compacted(kept)
        sizes.append(len(shape.to_json(kept)))
    assert len(kept.tail) == FLEET_EVENTS_KEPT
    assert max(sizes[200:]) < 1.25 * sizes[120]


def test_a_host_that_is_too_far_behind_is_told_so():
    kept = taken_up(new())
    for number in range(FLEET_EVENTS_KEPT + 5):
        kept, _ = register.commit(kept, commit(kept, cycle(number), id=f"{number}"))
    assert "too long ago" in register.unfit(kept, commit(kept, cycle(1), id="late", known=1))


def test_a_commit_of_more_facts_than_are_kept_is_answered_whole():
    """What hooks report piles up while a session works."""
    kept = taken_up(new())
    many = [cycle(number) for number in range(3 * FLEET_EVENTS_KEPT)]
    after, answer = register.commit(kept, commit(kept, *many))
    assert len(answer.lines) == len(many)
    assert len(after.tail) == FLEET_EVENTS_KEPT


@pytest.mark.parametrize(
    "path",
    ["../../.bashrc", "/etc/passwd", "memories/archive/../../x", "memories/consensus.md", "", "a"],
)
def test_a_document_has_its_place_in_the_archive_alone(path):
    """Whoever receives the agent writes it there."""
    kept = taken_up(new())
    assert register.unfit(kept, commit(kept, relay(1, path), documents={path: "x"}))


def test_what_is_carried_over_fits_a_message_whatever_was_said():
    """The engine takes two megabytes: more, and the agent would never go on."""
    kept = taken_up(new())
    for number in range(200):
        asked = events.PromptSubmitted(
            ts=NOW + timedelta(seconds=number), session=f"s{number}", text="x" * 200_000
        )
        noticed = events.HangNoticed(ts=NOW, launch="x", words="y" * 100_000, ended=False)
        kept, _ = register.commit(kept, commit(kept, asked, noticed, id=f"{number}"))
    assert len(shape.to_json(register.compacted(kept))) < 1_000_000


def test_nobody_replaces_what_is_known():
    kept = taken_up(new())
    forged = events.AgentReceived(ts=NOW, seq=99, known={"agent": "other"})
    assert "replace" in register.unfit(kept, commit(kept, forged))


def test_what_is_said_has_no_place_of_its_own():
    kept = taken_up(new())
    said = events.HandoffAsked(ts=NOW, seq=99, gen=99, at="segment:7")
    after = register.say(kept, [line(said)])
    found = events.parse(after.tail[-1].encode())
    assert (found.seq, found.gen, found.at) == (kept.projection.seq + 1, kept.generation, "")


def test_what_the_engine_keeps_survives_being_written_down():
    kept, _ = register.commit(taken_up(new()), commit(taken_up(new()), cycle(1)))
    assert shape.from_json(shape.to_json(kept), Kept) == kept


@given(st.lists(st.sampled_from(["lease", "open", "commit", "zombie", "gone", "say"]), max_size=40))
def test_however_hosts_come_and_go_the_log_is_one(steps):
    """Places without a gap, generations that never fall, and what it adds up to is its fold."""
    kept, old, log = new(), [], []
    log += kept.tail
    for place, step in enumerate(steps):
        before = kept.projection.seq
        match step:
            case "lease":
                old.append(kept.generation)
                kept = register.lease(kept)
            case "open" if kept.is_leased:
                asked = Opening(generation=kept.generation, host="ab"[place % 2])
                kept, _ = register.opened(kept, asked, NOW)
            case "commit" if not register.refused(kept, kept.generation):
                kept, _ = register.commit(kept, commit(kept, cycle(place), id=f"{place}"))
            case "zombie":
                assert all(register.refused(kept, one) for one in old if one != kept.generation)
            case "gone":
                kept = register.release(kept, is_gone=True)
            case "say":
                kept = register.say(kept, [line(events.HandoffAsked(ts=NOW))])
        log += kept.tail[len(kept.tail) - (kept.projection.seq - before) :]
    found = [events.parse(one.encode()) for one in log]
    assert [one.seq for one in found] == list(range(1, len(found) + 1))
    assert [one.gen for one in found] == sorted(one.gen for one in found)
    assert fold(Projection(agent="trades"), found) == kept.projection
