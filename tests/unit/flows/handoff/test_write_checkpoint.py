"""A checkpoint for the next session is written by any summarizer, and after any failure of one."""

import msgspec
import pytest

from rekindle.documents import checkpoint, events, primer
from rekindle.documents.checkpoint import CheckpointSection
from rekindle.documents.launches.launch_types import Capabilities
from rekindle.documents.launches.route import Route
from rekindle.documents.transcripts.turns import Turn
from rekindle.errors import ManifestError, OverBudgetError
from rekindle.flows.cycles.close_cycle import CycleEndPorts
from rekindle.flows.handoff.write_checkpoint import CheckpointWriter
from rekindle.flows.launches.checked_command import CommandResult
from rekindle.flows.transcripts.session_turns import strip_primers
from rekindle.flows.transcripts.summarize_turns import Summarizer
from rekindle.policy.settings.runtime_settings import MAX_LIMIT_PROBE_SECONDS
from rekindle.summarizers.mechanical_summary import KnownWork
from unit.flows.cycles.test_cycle_runner import Scene


def plain():
    return Summarizer(None, cap=0)


def ending(**more):
    asked = {"summarizer": plain, "checkpointer": plain}
    return CycleEndPorts(**asked | more, known=lambda _: KnownWork(), until=CommandResult)


def raising(error):
    def fail(*_):
        raise error

    return fail


@pytest.fixture
def scene(store, clock, tmp_path):
    return Scene(store, clock, tmp_path)


def test_a_summarizer_that_cannot_even_be_asked(scene):
    """The checkpoint is made without it, the log has the reason, and the work continues."""
    scene.plays(("context-full", scene.opens()), ("clean", scene.opens()))
    wrong = raising(ManifestError("there is no persona named 'nosuch'"))
    assert scene.run(ending=ending(checkpointer=wrong, summarizer=wrong)).why == "cycles"
    assert scene.exits() == ["context-full", "clean"]
    (failed,) = scene.logged(events.HandoffFailed)
    assert "nosuch" in failed.words
    assert failed.launch == scene.logged(events.LaunchEnded)[0].launch
    (made,) = scene.logged(events.SummaryMade)
    assert (made.document, made.how) == ("checkpoint", "mechanical")
    assert "nosuch" in made.words
    assert len(scene.logged(events.CheckpointCommitted)) == 1


@pytest.mark.parametrize("once", [True, False])
def test_a_halt_notifies_in_the_words_of_the_row(scene, once):
    scene.plays(("context-full", scene.opens()))
    error = OverBudgetError(5_000, 2_000)
    if not once:
        scene.rest = raising(KeyboardInterrupt)
    try:
        scene.run(ending=ending(checkpointer=raising(error)), once=once)
    except KeyboardInterrupt:
        assert not once, "it rests in safe mode"
    ((what, words),) = scene.notified
    assert what == "handoff"
    assert str(error) in words
    assert words.endswith("\n→ rekindle answer trades-1 retry  (or: stop)")


def test_a_checkpoint_forgets_no_launch_with_an_unknown_cost(scene):
    said = {"ts": scene.clock(), "cycle": 1}
    ended = events.LaunchEnded(**said, launch="l", session="s", exit="context-full", unpriced=2)
    with scene.store.writer("trades") as writer:
        writer.append(events.RunStarted(ts=scene.clock()), ended)
    (last,) = scene.store.read("trades").committed.attempts.values()
    CheckpointWriter(scene.agent(), scene.world(), ending()).write("l", last)
    assert scene.store.read("trades").committed.run.run_spending().unpriced == 2


def test_a_checkpoint_names_what_was_ended_with_the_session(scene):
    """Quoted and on one line each: an agent has written these commands."""
    commands = ("npm run dev", "sh -c 'echo “stop”'")
    said = {"ts": scene.clock(), "cycle": 1}
    ended = events.LaunchEnded(**said, launch="l", session="s", exit="context-full", ended=commands)
    with scene.store.writer("trades") as writer:
        writer.append(events.RunStarted(ts=scene.clock()), ended)
    (last,) = scene.store.read("trades").committed.attempts.values()
    CheckpointWriter(scene.agent(), scene.world(), ending()).write("l", last)
    written = checkpoint.parse(scene.store.document("trades", "checkpoint"))
    lines = written.content(CheckpointSection.CURRENT_STATE).splitlines()
    assert lines[-2:] == [
        "- ended with the session: “npm run dev”",
        "- ended with the session: “sh -c 'echo 'stop''”",
    ]
    assert written.content(CheckpointSection.MODIFIED_FILES) == "- none"


def test_of_our_prompts_only_the_task_is_a_person_s():
    task = "# Task\nShip the parser."

    def told(*texts, **how):
        turns = [Turn(number=n, who="person", text=text) for n, text in enumerate(texts, 1)]
        return [turn.text for turn in strip_primers(turns, task, **how)]

    ours = f"Never touch main.\n\n{task}\n"
    first = f"{ours}\nWrite the relay there."
    assert told(first, primer.RESUME_PROMPT, "yes", is_supervised=True) == [task, "", "yes"]
    assert told("mine alone", is_supervised=False) == ["mine alone"]
    handed = f"{primer.CONTINUATION}so far\n\n{primer.render_request('count the stars')}\n"
    assert told(handed, is_supervised=False) == ["count the stars"]


def test_many_handoffs_of_a_cycle_are_counted_from_one_and_told_once(scene):
    """This includes windows that were full before any handoff."""
    full = ("context-full", scene.opens(), scene.later(3600))
    scene.plays(*[full] * 6, ("clean", scene.opens()))
    assert scene.run(ending=ending()).why == "cycles"
    assert [one.count for one in scene.logged(events.HandoffResumed)] == [1, 2, 3, 4, 5, 6]
    (what, words), (end, _) = scene.notified
    assert (what, end) == ("handoffs", "cycles")
    assert "4 handoffs in one cycle: split this work" in words


WORK, OWN = Route("fake", "work"), Route("fake", "own")


@pytest.fixture
def routed(scene, monkeypatch):
    """An agent with two accounts, between which no transcript can be carried."""
    monkeypatch.setattr(scene.harness, "CAN", Capabilities(carries_sessions=True), raising=False)
    scene.facts = {"routes": (WORK, OWN), "account": "work"}
    make = scene.world
    monkeypatch.setattr(
        scene,
        "world",
        lambda store=None: msgspec.structs.replace(
            make(store), open_route=lambda route: scene.agent(account=route.account)
        ),
    )
    return scene


def test_a_session_that_cannot_be_carried_over_leaves_a_checkpoint(routed):
    """The next account starts from it, not from the recorded state alone."""
    routed.plays(("limit", routed.opens()), ("clean", routed.opens()))
    assert routed.run(ending=ending()).why == "cycles"
    first, second = routed.logged(events.LaunchStarted)
    assert (first.account, second.account) == ("work", "own")
    assert (second.resumes, second.recovery) == (False, False)
    assert [one.launch for one in routed.logged(events.HandoffResumed)] == [second.launch]


def test_an_expired_login_is_notified_once_until_the_route_works(routed):
    """Each cycle tries it again after a while."""
    routed.facts["cycles"] = 3
    late = routed.later(MAX_LIMIT_PROBE_SECONDS + 1)
    for _ in range(3):
        routed.plays(("auth", routed.opens()), ("clean", routed.opens(), late))
    assert routed.run(ending=ending(), once=False).why == "cycles"
    assert routed.exits() == ["auth", "clean"] * 3
    assert [what for what, _ in routed.notified].count("auth") == 1
