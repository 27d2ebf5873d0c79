"""A checkpoint for the next session: whoever was to write it, and whatever went wrong with that."""

import pytest

from rekindle.documents import checkpoint, primer
from rekindle.documents import event as events
from rekindle.documents.checkpoint import Part
from rekindle.documents.transcript import Turn
from rekindle.errors import ManifestError, OverBudgetError
from rekindle.flows.end_cycle import Ending
from rekindle.flows.hand_off import HandOff
from rekindle.flows.session_turns import without_primer
from rekindle.flows.summarize import Summarize
from rekindle.flows.until import UntilResult
from rekindle.summarizers.mechanical import Known
from unit.flows.test_run_cycle import Scene


def plain():
    return Summarize(None, cap=0)


def ending(**more):
    asked = {"summarizer": plain, "checkpointer": plain}
    return Ending(**asked | more, known=lambda _: Known(), until=UntilResult)


def raising(error):
    def fail(*_):
        raise error

    return fail


@pytest.fixture
def scene(store, clock, tmp_path):
    return Scene(store, clock, tmp_path)


def test_a_summarizer_that_cannot_even_be_asked(scene):
    """The checkpoint is made without it, the log says why, and the work goes on."""
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


def test_a_checkpoint_forgets_no_launch_whose_cost_nobody_knows(scene):
    said = {"ts": scene.clock(), "cycle": 1}
    ended = events.LaunchEnded(**said, launch="l", session="s", exit="context-full", unpriced=2)
    with scene.store.writer("trades") as writer:
        writer.append(events.RunStarted(ts=scene.clock()), ended)
    (last,) = scene.store.read("trades").committed.attempts.values()
    HandOff(scene.agent(), scene.world(), ending()).write("l", last)
    assert scene.store.read("trades").committed.run.spent_of_run().unpriced == 2


def test_a_checkpoint_names_what_was_ended_with_the_session(scene):
    """Quoted and on one line each: an agent has written these commands."""
    commands = ("npm run dev", "sh -c 'echo “stop”'")
    said = {"ts": scene.clock(), "cycle": 1}
    ended = events.LaunchEnded(**said, launch="l", session="s", exit="context-full", ended=commands)
    with scene.store.writer("trades") as writer:
        writer.append(events.RunStarted(ts=scene.clock()), ended)
    (last,) = scene.store.read("trades").committed.attempts.values()
    HandOff(scene.agent(), scene.world(), ending()).write("l", last)
    written = checkpoint.parse(scene.store.document("trades", "checkpoint"))
    lines = written.content(Part.CURRENT_STATE).splitlines()
    assert lines[-2:] == [
        "- ended with the session: “npm run dev”",
        "- ended with the session: “sh -c 'echo 'stop''”",
    ]
    assert written.content(Part.MODIFIED_FILES) == "- none"


def test_of_our_prompts_only_the_task_is_a_person_s():
    task = "# Task\nShip the parser."

    def told(*texts, **how):
        turns = [Turn(number=n, who="person", text=text) for n, text in enumerate(texts, 1)]
        return [turn.text for turn in without_primer(turns, task, **how)]

    ours = f"Never touch main.\n\n{task}\n"
    first = f"{ours}\nWrite the relay there."
    assert told(first, primer.RESUMED, "yes", is_supervised=True) == [task, "", "yes"]
    assert told("mine alone", is_supervised=False) == ["mine alone"]
    handed = f"{primer.GOES_ON}so far\n\n{primer.asked('count the stars')}\n"
    assert told(handed, is_supervised=False) == ["count the stars"]


def test_many_handoffs_of_a_cycle_are_counted_from_one_and_told_once(scene):
    """Also those of a window that was full before anybody had stopped it."""
    full = ("context-full", scene.opens(), scene.later(3600))
    scene.plays(*[full] * 6, ("clean", scene.opens()))
    assert scene.run(ending=ending()).why == "cycles"
    assert [one.count for one in scene.logged(events.HandoffResumed)] == [1, 2, 3, 4, 5, 6]
    (what, words), (end, _) = scene.notified
    assert (what, end) == ("handoffs", "cycles")
    assert "4 handoffs in one cycle: split this work" in words
