"""Between two cycles: the ladder, and what ends a run."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.documents import events
from rekindle.policy.exits import refused_end
from rekindle.policy.exits.restart import (
    EnterSafeMode,
    StopRun,
)
from rekindle.policy.projection import fold
from rekindle.policy.projection.projection import Projection
from rekindle.policy.settings.runtime_settings import (
    CYCLES_KEPT,
    SHORT_CYCLE_SECONDS,
    StallSettings,
)
from rekindle.policy.stall import stall_response
from rekindle.policy.stall.stall_response import StartNextCycle

NOW = datetime(2026, 4, 9, tzinfo=UTC)
SIGNAL = "STALL DETECTED: previous cycle produced same next action. You must change approach."


def cycle(number, verdict="progress", **more):
    facts = {"about": "Write the lexer", "words": "the same ask again", **more}
    return events.CycleEnded(seq=number * 10, cycle=number, ts=NOW, verdict=verdict, **facts)


def same(number, **more):
    return cycle(number, "stalled", is_equal=True, **more)


def claim(number, **more):
    return cycle(number, "", claimed=True, **more)


def alike(number, **more):
    return cycle(number, "stalled", **more)


def after(*cycles, since=0, done=1, cap=0, **settings):
    known = {one.cycle: one for one in cycles[:-1]}
    stall, run = StallSettings(**settings), {"since": since, "done": done, "cap": cap}
    return stall_response.decide_after_cycle(known, cycles[-1], **run, settings=stall)


def test_a_message_that_waits_is_answered_by_another_cycle():
    """The agent did not know it when it reported the end; the last cycle ends the run anyway."""
    ends = cycle(1, claimed=True)
    run = {"since": 0, "done": 1, "settings": StallSettings()}
    assert isinstance(stall_response.decide_after_cycle({}, ends, cap=0, **run), StopRun)
    for cap, expected in ((0, StartNextCycle), (2, StartNextCycle), (1, StopRun)):
        found = stall_response.decide_after_cycle({}, ends, cap=cap, has_messages=True, **run)
        assert isinstance(found, expected)


def notice(*cycles, since=0, **settings):
    return stall_response.render_stall_notice(
        {one.cycle: one for one in cycles}, since, StallSettings(**settings)
    )


LADDER = {
    "progress": ([cycle(1)], False, False),
    "the same once": ([cycle(1), same(2)], True, False),
    "the same twice": ([same(1), same(2)], False, True),
    "alike once": ([cycle(1), alike(2)], False, False),
    "alike twice": ([alike(1), alike(2)], True, False),
    "alike three times": ([alike(1), alike(2), alike(3)], False, True),
    "alike, then the same": ([alike(1), same(2)], True, False),
    "the same, then alike": ([same(1), alike(2)], False, True),
    "a treadmill": ([cycle(1, "treadmill"), cycle(2, "treadmill")], True, False),
    "a step between": ([same(1), cycle(2), same(3)], True, False),
    "the same, with work": ([same(1, evidence="1 commit")], False, False),
    "only talk": ([cycle(n, owed="no artefact") for n in (1, 2, 3)], False, True),
    "work, and no choice": (
        [cycle(n, owed="x", evidence="1 commit") for n in (1, 2, 3)],
        False,
        False,
    ),
    "unusable": ([cycle(1, "unusable"), cycle(2, "unusable"), cycle(3, "unusable")], False, True),
    "nothing to compare": ([cycle(1, "")], False, False),
}


@pytest.mark.parametrize("name", LADDER)
def test_the_ladder(name):
    cycles, told, paused = LADDER[name]
    assert bool(notice(*cycles)) is told
    assert isinstance(after(*cycles), EnterSafeMode) is paused


def test_it_is_told_once():
    assert notice(cycle(1), same(2))
    assert not notice(cycle(1), same(2), same(3)), "then it is paused, not told again"


def test_the_notice_says_what_was_repeated_and_tried_and_how_to_switch_it_off():
    found = notice(cycle(1), same(2))
    assert found.startswith(SIGNAL)
    assert "Repeated: Write the lexer" in found
    assert "`runtime: stall: tell: false`" in found
    assert "If the work is done, write only DONE as the Next Action." in found


def test_what_led_nowhere_is_remembered_whatever_the_operator_says():
    known = {1: cycle(1, did="x"), 2: alike(2, did="read it"), 3: same(3, did="read it again")}
    told = "Tried without progress:\n- cycle 2: read it\n- cycle 3: read it again"
    assert stall_response.render_failed_cycles(known) == told
    assert stall_response.render_failed_cycles({**known, 4: cycle(4)}) == ""


def test_a_pause_says_what_and_why_and_has_no_brackets():
    """The screens put it into brackets; the hint names the setting that switches it off."""
    assert after(same(1), same(2)).words == (
        "several cycles without progress: Write the lexer; the same ask again"
    )
    quoted = [same(n, words="the same ask again: Write the lexer") for n in (1, 2)]
    assert after(*quoted).words.count("Write the lexer") == 1
    unusable = [cycle(n, "unusable", about="", words="no directive") for n in (1, 2, 3)]
    assert after(*unusable).words == "several cycles without progress: no directive"
    assert after(cycle(1, "waiting", about="Ann")).words == "it waits for a person: Ann"


def test_a_wait_beside_which_work_is_done_climbs_the_ladder():
    worked = [cycle(n, "waiting", evidence="1 commit", is_equal=True) for n in (1, 2, 3)]
    assert after(*worked[:2]) == StartNextCycle()
    assert after(*worked).why == "waiting", "it needs an answer: another try would wait again"
    assert after(*worked, done=3, cap=3).why == "waiting"


def test_the_operator_s_word_leads_back_to_the_ground():
    cycles = [same(1), same(2)]
    assert isinstance(after(*cycles), EnterSafeMode)
    assert after(*cycles, same(3), since=25) == StartNextCycle()
    assert notice(*cycles, since=25) == ""


def test_who_waits_for_a_person_is_paused_at_once():
    found = after(cycle(1, "waiting", about="Ann's answer"))
    assert isinstance(found, EnterSafeMode)
    assert found.why == "waiting"
    assert "Ann's answer" in found.words


def test_switched_off_nothing_is_told_or_paused():
    assert notice(cycle(1), same(2), tell=False) == ""
    assert after(same(1), same(2), pause=False) == StartNextCycle()
    assert after(cycle(1, "waiting"), pause=False) == StartNextCycle()


def test_the_run_is_done_when_its_command_says_so_whatever_else():
    assert after(same(1), same(2, until="passed"), cap=9).why == "done"
    assert after(cycle(1, "waiting", until="passed")).why == "done"
    assert after(cycle(1, until="failed"), done=1, cap=9) == StartNextCycle()


def test_after_its_cycles_a_run_is_over_and_never_called_done():
    for until, words in (("", "did not report the end of its work"), ("failed", "does not pass")):
        found = after(cycle(1, until=until), done=3, cap=3)
        assert found.why == "cycles"
        assert "3 cycles" in found.words
        assert words in found.words
    assert after(cycle(1), done=10**6, cap=0) == StartNextCycle()


def test_a_command_of_until_that_could_not_be_started_is_named_so():
    words = refused_end.render_failure("./check", "could not be started: no such file", [])
    found = after(cycle(1, until="failed", until_words=words), done=3, cap=3)
    assert found.words == "3 cycles, and `until:` could not be started: no such file"
    claims = [claim(n, until="failed", until_words=words) for n in (1, 2, 3)]
    assert "done, but `until:` could not be started: no such file" in after(*claims).words


@pytest.mark.parametrize(
    ("how", "output", "line"),
    [
        ("exited with 1", ["2 passed", "1 failed", ""], "`./check` exited with 1: 1 failed"),
        ("exited with 1", [], "`./check` exited with 1"),
        ("exited with 1", ["x could not be started"], "`./check` exited with 1: x could not be"),
        ("took longer than 9.5 s", [], "`./check` took longer than 9.5 s"),
    ],
)
def test_a_failed_command_of_until_is_explained_in_one_line(how, output, line):
    found = refused_end.explain_failure(refused_end.render_failure("./check", how, output))
    assert found.startswith(f"`until:` fails: {line}")


def test_a_claim_ends_the_run_only_if_no_command_of_until_decides():
    assert after(claim(1), done=1, cap=9) == StopRun("claimed")
    assert after(claim(1), done=9, cap=9) == StopRun("claimed")
    assert after(claim(1, until="passed"), done=1, cap=9).why == "done"
    assert after(claim(1, until="failed"), done=1, cap=9) == StartNextCycle()


def test_a_claim_that_until_refutes_is_told_and_never_called_a_stall():
    output = "`just test` exited with 1. Its output ends with:\n    1 failed"
    refuted = [claim(n, until="failed", until_words=output) for n in (1, 2, 3)]
    assert notice(*refuted[:2]) == ""
    told = stall_response.render_until_failure({one.cycle: one for one in refuted[:2]})
    assert told.startswith("You reported that the work is done.")
    assert output in told
    assert after(*refuted[:2], cap=9) == StartNextCycle()
    paused = after(*refuted, done=3, cap=9)
    assert (type(paused), paused.why) == (EnterSafeMode, "disputed")
    assert after(*refuted, done=3, cap=3).why == "disputed"
    worked = claim(3, until="failed", evidence="1 commit")
    assert after(*refuted[:2], worked, cap=9) == StartNextCycle()


def test_until_is_told_of_only_after_the_cycle_in_which_it_failed():
    failed = cycle(1, until="failed", until_words="`make` exited with 2. It printed nothing.")
    told = stall_response.render_until_failure({1: failed})
    assert "`make` exited with 2" in told
    assert "You reported" not in told
    assert stall_response.render_until_failure({1: failed, 2: cycle(2)}) == ""
    assert stall_response.render_until_failure({}) == ""


def test_at_the_last_cycle_a_pause_is_the_end_and_is_said():
    """Safe mode does not wait for a cycle that will not come."""
    found = after(cycle(1, "waiting", about="Ann"), done=1, cap=1)
    assert isinstance(found, StopRun)
    assert (found.why, "Ann" in found.words) == ("waiting", True)
    assert after(same(1), same(2), done=2, cap=2).why == "stalled"


def test_short_cycles_are_noticed():
    quick = {n: cycle(n, seconds=20.0) for n in range(1, 4)}
    assert stall_response.are_cycles_hurried(quick)
    assert not stall_response.are_cycles_hurried({**quick, 4: cycle(4, seconds=600.0)})
    assert not stall_response.are_cycles_hurried({1: cycle(1, seconds=1.0)})


ENDED = st.builds(
    events.CycleEnded,
    ts=st.just(NOW),
    seq=st.integers(1, 500),
    cycle=st.integers(1, 80),
    verdict=st.sampled_from(["progress", "stalled"]),
)


@given(st.lists(ENDED, max_size=120, unique_by=lambda one: (one.seq, one.cycle)), st.randoms())
def test_what_is_remembered_does_not_depend_on_the_order(happened, rng):
    # The first end of a cycle counts, so equal places do not occur.
    first = {}
    for one in sorted(happened, key=lambda one: one.seq):
        first.setdefault(one.cycle, one)
    newest = sorted(first)[-CYCLES_KEPT:]
    shuffled = list(first.values())
    rng.shuffle(shuffled)
    found = fold.fold_events(Projection("a"), shuffled).ended
    assert sorted(found) == newest


def test_the_last_five_cycles_without_progress_are_listed():
    known = {number: alike(number, did="read it") for number in range(1, 7)}
    listed = stall_response.render_failed_cycles(known).splitlines()[1:]
    assert listed == [f"- cycle {number}: read it" for number in range(2, 7)]


@pytest.mark.parametrize(
    ("seconds", "is_hurried"),
    [
        ([], False),
        ([1.0, 1.0], False),
        ([1.0, 1.0, 1.0], True),
        ([SHORT_CYCLE_SECONDS] * 3, False),
        ([SHORT_CYCLE_SECONDS - 1] * 3, True),
        ([0.0, 0.0, 3 * SHORT_CYCLE_SECONDS], False),
        ([0.0, 0.0, 3 * SHORT_CYCLE_SECONDS - 1], True),
        ([9_000.0, 1.0, 1.0, 1.0], True),
        ([1.0, 9_000.0, 1.0, 1.0], False),
    ],
)
def test_when_cycles_are_hurried(seconds, is_hurried):
    """The average of the last three decides."""
    known = {number: cycle(number, seconds=each) for number, each in enumerate(seconds, 1)}
    assert stall_response.are_cycles_hurried(known) is is_hurried


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"claimed": True}, StopRun("claimed")),
        ({"claimed": True, "review": "passed"}, StopRun("done", "the review agrees")),
        ({"claimed": True, "review": "failed"}, StartNextCycle()),
        (
            {"claimed": True, "review": "unavailable", "review_words": "no key"},
            StopRun("claimed", "the review failed: no key"),
        ),
        ({"until": "passed"}, StopRun("done", "the `until:` command passes")),
        (
            {"until": "passed", "review": "passed"},
            StopRun("done", "the `until:` command passes, and the review agrees"),
        ),
        ({"until": "passed", "review": "failed"}, StartNextCycle()),
        ({"until": "failed", "claimed": True}, StartNextCycle()),
        ({}, StartNextCycle()),
    ],
)
def test_what_ends_a_run(how, expected):
    """The command of `until:`, or the agent if there is none, and a review that does not fail."""
    assert after(cycle(1, **how), done=1, cap=9) == expected


@pytest.mark.parametrize(("done", "cap", "is_last"), [(1, 0, False), (1, 2, False), (2, 2, True)])
def test_the_last_cycle(done, cap, is_last):
    """Without a maximum, there is none."""
    expected = (
        StopRun("cycles", "2 cycles, and the agent did not report the end of its work")
        if is_last
        else StartNextCycle()
    )
    assert after(cycle(1), done=done, cap=cap) == expected


def test_the_words_of_a_pause():
    """What was repeated and why, or what the stage required."""
    owed = [cycle(n, "stalled", owed="names no winner") for n in (1, 2, 3)]
    assert after(*owed) == EnterSafeMode(
        "stalled", "several cycles without progress: Write the lexer; names no winner"
    )
    assert after(cycle(1, "waiting", about="")) == EnterSafeMode(
        "waiting", "it waits for a person: the same ask again"
    )
    claims = [claim(n, until="failed") for n in (1, 2, 3)]
    assert after(*claims) == EnterSafeMode(
        "disputed", "it reports that it is done, but `until:` fails"
    )


def test_the_notices_of_a_failed_end():
    """Whether the agent or the command reported the end."""
    failed = {"review": "failed", "review_words": "- no tests"}
    words = " A review does not agree. Missing, according to the review:\n- no tests"
    render = stall_response.render_failed_review
    assert render({1: claim(1, **failed)}) == f"You reported that the work is done.{words}"
    assert render({1: cycle(1, **failed)}) == f"`until:` passes.{words}"
    assert render({1: claim(1, **failed), 2: cycle(2)}) == ""
    assert render({}) == ""
    until = {"until": "failed", "until_words": "exit 1"}
    rest = "The work is done when the `until:` command passes.\nexit 1"
    render = stall_response.render_until_failure
    assert render({1: claim(1, **until)}) == f"You reported that the work is done. {rest}"
    assert render({1: cycle(1, **until)}) == rest
    assert render({1: cycle(1, until="failed")}) == ""
    assert render({1: cycle(1, until="passed", until_words="x")}) == ""


def test_the_whole_notice_of_a_stall():
    """Without an empty line if nothing was repeated."""
    assert notice(cycle(1), same(2)) == (
        f"{SIGNAL}\nRepeated: Write the lexer\nWhy: the same ask again\n"
        "If the work is done, write only DONE as the Next Action.\n"
        "`runtime: stall: tell: false` disables this notice"
    )
    assert "Repeated" not in notice(alike(1, about=""), alike(2, about=""))


def test_the_first_end_of_a_cycle_counts():
    """A second report changes nothing, and only the newest cycles are kept."""
    known = {}
    first, again = cycle(1), events.CycleEnded(seq=11, cycle=1, ts=NOW)
    earlier = events.CycleEnded(seq=9, cycle=1, ts=NOW)
    for event, expected in ((first, first), (again, first), (first, first), (earlier, earlier)):
        stall_response.remember_cycle_end(known, event)
        assert known == {1: expected}
    for number in range(2, CYCLES_KEPT + 2):
        stall_response.remember_cycle_end(known, cycle(number))
    assert sorted(known) == list(range(2, CYCLES_KEPT + 2))


def test_a_review_is_recorded():
    """With its position."""
    made = events.ReviewMade(ts=NOW, seq=7, cycle=2, verdict="failed", words="no tests")
    assert stall_response.record_review(made) == stall_response.LastReview(
        7, 2, "failed", "no tests"
    )


def test_cycles_since_the_operator_s_word_count():
    """A cycle at the position of the word is before it."""
    assert isinstance(after(same(1), same(2), since=9), EnterSafeMode)
    assert after(same(1), same(2), since=10) == StartNextCycle()


def test_an_agent_that_works_gets_one_notice_and_is_never_paused():
    """However often its relay repeats: the notice asks for the next step of the work."""
    cycles = [cycle(number, "treadmill", evidence="2 commits") for number in range(1, 30)]
    for count in range(1, len(cycles) + 1):
        assert isinstance(after(*cycles[:count]), StartNextCycle)
        told = notice(*cycles[:count])
        assert bool(told) is (count == 2)
    assert "There was work (2 commits): name the next step of it." in notice(*cycles[:2])


def test_idle_cycles_after_work_are_counted_from_the_work():
    """Work in between starts the count of idle cycles again."""
    working = [cycle(number, "stalled", evidence="1 commit") for number in (1, 2, 3)]
    idle = [cycle(number, "stalled") for number in (4, 5, 6)]
    assert isinstance(after(*working, *idle[:2]), StartNextCycle)
    assert isinstance(after(*working, *idle), EnterSafeMode)


def test_a_wait_beside_own_work_does_not_pause_at_once():
    """The agent can go on with its own work; without any, the third cycle pauses."""
    waits = [cycle(number, "waiting", has_own_work=True) for number in (1, 2, 3)]
    assert isinstance(after(*waits[:1]), StartNextCycle)
    assert isinstance(after(*waits), EnterSafeMode)
    assert isinstance(after(cycle(1, "waiting")), EnterSafeMode)
    working = [
        cycle(number, "waiting", has_own_work=True, evidence="1 commit") for number in range(1, 9)
    ]
    assert isinstance(after(*working), StartNextCycle)


def test_a_wait_beside_own_work_is_told_once():
    """The notice does not speak of a stall: the agent should go on with its own work."""
    waits = [
        cycle(number, "waiting", has_own_work=True, evidence="1 commit", about="Ann's key")
        for number in (1, 2)
    ]
    told = notice(waits[0])
    assert "a person must act first: Ann's key" in told
    assert SIGNAL not in told
    assert "a person must act first" not in notice(*waits)
