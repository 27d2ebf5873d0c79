"""An agent as the engine keeps it: one lease at a time, every fact once, nothing of a zombie's."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.documents import events, primer
from rekindle.formats import validation
from rekindle.policy.fleet import agent_leases, agent_registry
from rekindle.policy.fleet.agent_leases import LeaseRequest
from rekindle.policy.fleet.agent_registry import (
    AgentDefinition,
    CommitRequest,
    RegisteredAgent,
)
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.projection import Projection
from rekindle.policy.settings.runtime_settings import (
    FLEET_DOCUMENT_BYTES,
    FLEET_EVENTS_KEPT,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DEFINITION = AgentDefinition(manifest="version: 1\n", pool="default", heartbeat_seconds=5)


def new() -> RegisteredAgent:
    kept = RegisteredAgent(
        agent="trades", definition=DEFINITION, projection=Projection(agent="trades")
    )
    return agent_registry.append_events(kept, events.AgentCreated(ts=NOW, agent="trades"))


def line(event: events.Event) -> str:
    return events.render(event).decode()


def commit(kept: RegisteredAgent, *new: events.Event, id: str = "one", **more) -> CommitRequest:  # noqa: A002
    given = {"id": id, "generation": kept.generation, "known": kept.projection.seq} | more
    return CommitRequest(lines=tuple(map(line, new)), **given)


def taken_up(kept: RegisteredAgent, host: str = "a") -> RegisteredAgent:
    leased = agent_leases.grant_lease(kept)
    return agent_leases.open_lease(
        leased, LeaseRequest(generation=leased.generation, lease="", host=host), NOW
    )[0]


def cycle(number: int) -> events.CycleStarted:
    return events.CycleStarted(ts=NOW, cycle=number)


def relay(number: int, path: str) -> events.RelayCommitted:
    return events.RelayCommitted(ts=NOW, sha256=f"{number}", path=path, by="agent")


def test_a_fact_gets_its_place_and_the_generation_of_its_lease():
    kept = taken_up(new())
    after, answer = agent_registry.commit_events(kept, commit(kept, cycle(1)))
    (said,) = [events.parse(one.encode()) for one in answer.lines]
    assert (said.kind, said.seq, said.gen) == ("cycle.started", 3, 1)
    assert after.projection.cycle == 1


def test_a_commit_is_answered_with_the_commands_since():
    kept = taken_up(new())
    before = kept.projection.seq
    kept = agent_registry.record_commands(
        kept, [line(events.DesiredSet(ts=NOW, desired="stopped"))]
    )
    after, answer = agent_registry.commit_events(kept, commit(kept, cycle(1), known=before))
    assert [events.parse(one.encode()).kind for one in answer.lines] == [
        "desired.set",
        "cycle.started",
    ]
    assert after.projection.run.desired == "stopped"


def test_a_commit_whose_answer_was_lost_counts_once():
    kept = taken_up(new())
    asked = commit(kept, cycle(1))
    once, first = agent_registry.commit_events(kept, asked)
    twice, second = agent_registry.commit_events(once, asked)
    assert (twice, second) == (once, first)


def test_only_the_last_commits_are_known_again():
    kept = taken_up(new())
    for number in range(40):
        kept, _ = agent_registry.commit_events(kept, commit(kept, cycle(number), id=f"{number}"))
    assert list(kept.answered) == ["38", "39"]


@pytest.mark.parametrize("how", ["older", "ended", "newer"])
def test_a_lease_that_is_not_in_force_is_refused(how):
    kept = taken_up(new())
    generation = kept.generation
    if how == "older":
        kept = agent_leases.grant_lease(kept)
    elif how == "ended":
        kept = agent_leases.release_lease(kept, is_gone=False)
    else:
        generation += 1
    assert agent_leases.explain_refused_lease(kept, generation, "")


def test_the_lease_in_force_is_not_refused():
    kept = taken_up(new())
    assert agent_leases.explain_refused_lease(kept, kept.generation, "") == ""


@pytest.mark.parametrize(
    "asked",
    [
        CommitRequest(id="x", generation=1, known=99),
        CommitRequest(id="x", generation=1, known=0, lines=('{"kind": "cycle.started"}',)),
        CommitRequest(id="x", generation=1, known=0, lines=("no json",)),
        CommitRequest(
            id="x", generation=1, known=0, documents={"a": "x" * (FLEET_DOCUMENT_BYTES + 1)}
        ),
    ],
)
def test_what_cannot_be_counted_is_refused_in_words(asked):
    assert agent_registry.explain_unfit_commit(taken_up(new()), asked)


def test_what_fits_is_not():
    kept = taken_up(new())
    assert agent_registry.explain_unfit_commit(kept, commit(kept, cycle(1))) == ""


def test_an_operator_says_words_and_no_facts():
    said = events.DesiredSet(ts=NOW, desired="running")
    assert (
        agent_registry.explain_refused_command([line(said), line(events.HandoffRequested(ts=NOW))])
        == ""
    )
    assert "relay.committed" in agent_registry.explain_refused_command(
        [line(said), line(relay(1, "x"))]
    )
    assert agent_registry.explain_refused_command(["no json"])


def test_a_due_time_starts_one_run():
    """A host that was frozen may send the command again, even after a later due time."""
    now = datetime(2026, 5, 4, 12, tzinfo=UTC)

    def start(due: datetime | None) -> str:
        return line(events.DesiredSet(ts=now, desired="running", due=due))

    kept = agent_registry.record_commands(new(), [start(now), start(now)])
    assert kept.projection.seq == new().projection.seq + 1
    later = agent_registry.record_commands(kept, [start(now + timedelta(hours=1)), start(now)])
    assert later.projection.seq == kept.projection.seq + 1
    assert agent_registry.record_commands(kept, [start(None)]).projection.seq > kept.projection.seq


def test_a_kind_that_only_a_later_rekindle_knows_keeps_its_words():
    kept = taken_up(new())
    strange = '{"v": 1, "kind": "moon.rose", "ts": "2026-03-01T12:00:00Z", "phase": "full"}'
    asked = msgspec.structs.replace(commit(kept), lines=(strange,))
    assert agent_registry.explain_unfit_commit(kept, asked) == ""
    after, answer = agent_registry.commit_events(kept, asked)
    assert '"phase":"full"' in answer.lines[0]
    assert after.projection.seq == kept.projection.seq + 1


def test_a_host_that_stays_is_sent_nothing():
    kept = agent_leases.release_lease(taken_up(new()), is_gone=False)
    leased = agent_leases.grant_lease(kept)
    known = leased.projection
    asked = LeaseRequest(
        lease="",
        generation=leased.generation,
        host="a",
        seq=known.seq,
        held=agent_registry.hash_projection(known),
        defined=agent_registry.hash_definition(DEFINITION),
    )
    after, opened = agent_leases.open_lease(leased, asked, NOW)
    assert opened.kept is None
    assert opened.definition is None
    assert after.projection == known


@pytest.mark.parametrize("what", ["another state", "another definition", "another host"])
def test_a_host_that_has_something_else_is_sent_what_it_lacks(what):
    leased = agent_leases.grant_lease(agent_leases.release_lease(taken_up(new()), is_gone=False))
    asked = LeaseRequest(
        lease="",
        generation=leased.generation,
        host="b" if what == "another host" else "a",
        seq=leased.projection.seq,
        held="other"
        if what == "another state"
        else agent_registry.hash_projection(leased.projection),
        defined="other"
        if what == "another definition"
        else agent_registry.hash_definition(DEFINITION),
    )
    _, opened = agent_leases.open_lease(leased, asked, NOW)
    assert (opened.definition is not None) == (what == "another definition")
    assert (opened.kept is not None) == (what != "another definition")


def test_a_move_is_in_the_log_and_a_return_without_another_host_is_not():
    kept = agent_leases.release_lease(taken_up(new(), "a"), is_gone=True)
    assert kept.host == ""
    back = taken_up(kept, "a")
    assert back.projection.moved == kept.projection.moved
    moved = taken_up(agent_leases.release_lease(back, is_gone=True), "b")
    assert (moved.projection.moved.previous, moved.projection.moved.host) == ("a", "b")


def test_a_failed_push_is_reported_to_the_next_host():
    """It stays true after the next host has pushed: the missing work is still missing."""
    kept = taken_up(new())
    kept, _ = agent_registry.commit_events(
        kept, commit(kept, events.WorkspacePushFailed(ts=NOW, words="no room"))
    )
    kept = taken_up(agent_leases.release_lease(kept, is_gone=True), "b")
    pushed = events.WorkspacePushed(ts=NOW, revision="r", claim=kept.generation)
    kept, _ = agent_registry.commit_events(kept, commit(kept, pushed, id="two"))
    assert kept.projection.unpushed is None
    moved = kept.projection.moved
    assert (moved.host, moved.previous, moved.left) == ("b", "a", "no room")
    told = primer.render_move(moved.host, moved.previous, moved.left)
    assert "on host a until now, and continues on b. Its last push failed (no room). Work" in told
    kept = taken_up(agent_leases.release_lease(kept, is_gone=True), "a")
    assert kept.projection.moved.left == ""


def test_documents_stay_as_long_as_anybody_may_ask_for_them():
    kept = taken_up(new())
    for number in range(1, 21):
        path = f"memories/archive/relay-{number}.md"
        started = commit(kept, cycle(number), id=f"s{number}")
        kept, _ = agent_registry.commit_events(kept, started)
        ended = events.CycleEnded(ts=NOW, cycle=number, relay=path)
        asked = commit(
            kept, relay(number, path), ended, id=f"{number}", documents={path: f"# {number}\n"}
        )
        kept, _ = agent_registry.commit_events(kept, asked)
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
        kept, _ = agent_registry.commit_events(
            kept, commit(kept, cycle(number), begun, beat, id=f"{number}")
        )
        kept = agent_registry.compact_agent(kept)
        sizes.append(len(validation.encode_json(kept)))
    assert len(kept.tail) == FLEET_EVENTS_KEPT
    assert max(sizes[200:]) < 1.25 * sizes[120]


def test_a_host_that_is_too_far_behind_is_told_so():
    kept = taken_up(new())
    for number in range(FLEET_EVENTS_KEPT + 5):
        kept, _ = agent_registry.commit_events(kept, commit(kept, cycle(number), id=f"{number}"))
    assert "too far behind" in agent_registry.explain_unfit_commit(
        kept, commit(kept, cycle(1), id="late", known=1)
    )


def test_a_commit_of_more_facts_than_are_kept_is_answered_whole():
    """Reports of hooks accumulate while a session works."""
    kept = taken_up(new())
    many = [cycle(number) for number in range(3 * FLEET_EVENTS_KEPT)]
    after, answer = agent_registry.commit_events(kept, commit(kept, *many))
    assert len(answer.lines) == len(many)
    assert len(after.tail) == FLEET_EVENTS_KEPT


@pytest.mark.parametrize(
    "path",
    ["../../.bashrc", "/etc/passwd", "memories/archive/../../x", "memories/consensus.md", "", "a"],
)
def test_a_document_has_its_place_in_the_archive_alone(path):
    """The host that receives the agent writes it there."""
    kept = taken_up(new())
    assert agent_registry.explain_unfit_commit(
        kept, commit(kept, relay(1, path), documents={path: "x"})
    )


def test_what_is_carried_over_fits_a_message_whatever_was_said():
    """The engine takes two megabytes: more, and the agent would never go on."""
    kept = taken_up(new())
    for number in range(200):
        asked = events.PromptSubmitted(
            ts=NOW + timedelta(seconds=number), session=f"s{number}", text="x" * 200_000
        )
        noticed = events.HangDetected(ts=NOW, launch="x", words="y" * 100_000, ended=False)
        kept, _ = agent_registry.commit_events(kept, commit(kept, asked, noticed, id=f"{number}"))
    assert len(validation.encode_json(agent_registry.compact_agent(kept))) < 1_000_000


def test_known_facts_are_never_replaced():
    kept = taken_up(new())
    forged = events.AgentReceived(ts=NOW, seq=99, known={"agent": "other"})
    assert "replace" in agent_registry.explain_unfit_commit(kept, commit(kept, forged))


def test_what_is_said_has_no_place_of_its_own():
    kept = taken_up(new())
    said = events.HandoffRequested(ts=NOW, seq=99, gen=99, at="segment:7")
    after = agent_registry.record_commands(kept, [line(said)])
    found = events.parse(after.tail[-1].encode())
    assert (found.seq, found.gen, found.at) == (kept.projection.seq + 1, kept.generation, "")


def test_what_the_engine_keeps_survives_being_written_down():
    kept, _ = agent_registry.commit_events(taken_up(new()), commit(taken_up(new()), cycle(1)))
    assert validation.decode_json(validation.encode_json(kept), RegisteredAgent) == kept


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
                kept = agent_leases.grant_lease(kept)
            case "open" if kept.lease is not None:
                asked = LeaseRequest(generation=kept.generation, lease="", host="ab"[place % 2])
                kept, _ = agent_leases.open_lease(kept, asked, NOW)
            case "commit" if not agent_leases.explain_refused_lease(kept, kept.generation, ""):
                kept, _ = agent_registry.commit_events(
                    kept, commit(kept, cycle(place), id=f"{place}")
                )
            case "zombie":
                assert all(
                    agent_leases.explain_refused_lease(kept, one, "")
                    for one in old
                    if one != kept.generation
                )
            case "gone":
                kept = agent_leases.release_lease(kept, is_gone=True)
            case "say":
                kept = agent_registry.record_commands(kept, [line(events.HandoffRequested(ts=NOW))])
        log += kept.tail[len(kept.tail) - (kept.projection.seq - before) :]
    found = [events.parse(one.encode()) for one in log]
    assert [one.seq for one in found] == list(range(1, len(found) + 1))
    assert [one.gen for one in found] == sorted(one.gen for one in found)
    assert fold_events(Projection(agent="trades"), found) == kept.projection


def spend(tokens: int, usd: float) -> events.SpendRecorded:
    return events.SpendRecorded(ts=NOW, launch="l", tokens=tokens, usd=usd)


def test_the_spending_of_all_runs_is_added_up():
    """A run that starts in the middle of a commit counts from there."""
    kept = agent_registry.append_events(new(), events.RunStarted(ts=NOW), spend(10, 1.0))
    assert agent_registry.sum_spending(kept) == agent_registry.SpentTotal(1.0, 10)
    kept = agent_registry.append_events(
        kept, spend(20, 2.0), events.RunStarted(ts=NOW), spend(5, 0.5), spend(6, 0.75)
    )
    assert kept.projection.run.run_spending().tokens == 6
    assert agent_registry.sum_spending(kept) == agent_registry.SpentTotal(2.75, 26)
    kept = agent_registry.append_events(kept, events.RunStarted(ts=NOW))
    assert agent_registry.sum_spending(kept) == agent_registry.SpentTotal(2.75, 26)


def test_a_command_counts_although_the_clock_of_its_sender_is_behind():
    kept = agent_registry.record_commands(
        new(), [line(events.DesiredSet(ts=NOW, desired="running"))]
    )
    late = events.DesiredSet(ts=NOW - timedelta(hours=1), desired="stopped")
    kept = agent_registry.record_commands(kept, [line(late)])
    assert kept.projection.run.desired == "stopped"
