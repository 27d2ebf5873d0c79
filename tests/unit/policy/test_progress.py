"""Progress, and the work that leads nowhere: what counts, what is paced, what pauses."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.documents import relay as relays
from rekindle.documents.event import CycleEnded, WorkSigns
from rekindle.policy import idle
from rekindle.policy.convergence import Stage, held
from rekindle.policy.cycle import Fresh
from rekindle.policy.progress import ROWS, artefact_names, describe_work, name_series, progress
from rekindle.policy.run import HandOn, Run, next_move
from rekindle.policy.sessions import Attempt
from rekindle.policy.settings import (
    CYCLES_KEPT,
    PROGRESS_NAMES,
    PROGRESS_NUMBERED,
    SESSIONS_KEPT,
    Progress,
    Runtime,
)
from rekindle.policy.stall.compare import compare
from rekindle.policy.stall.verdict import Kind

NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)
NOTES, CODE = WorkSigns(artefacts=("notes.txt",)), WorkSigns(artefacts=("app.py", "notes.txt"))

SHOWN = {
    "a commit": WorkSigns(commits=1),
    "a resolved loop": WorkSigns(resolved=2),
    "a new decision": WorkSigns(decisions=1),
    "a relay that asks for something else": WorkSigns(asks_else=True),
    "an artefact that does not change every time": NOTES,
}


def test_every_kind_of_progress():
    assert {words: progress(signs) for words, signs in SHOWN.items()} == {
        words: words for words in SHOWN
    }
    assert [row.words for row in ROWS] == list(SHOWN)


def test_nothing_seen_is_not_progress():
    assert progress(None) == ""
    assert progress(WorkSigns()) == ""


@pytest.mark.parametrize(
    ("before", "signs", "is_progress"),
    [
        ([NOTES], NOTES, True),
        ([NOTES, NOTES], NOTES, False),
        ([NOTES, NOTES], CODE, True),
        ([CODE, CODE], CODE, False),
        ([CODE, NOTES], CODE, True),
        ([WorkSigns(artefacts=("a",)), NOTES], NOTES, True),
        ([NOTES, NOTES, WorkSigns()], NOTES, False),
    ],
)
def test_a_file_that_changes_every_time_is_not_progress(before, signs, is_progress):
    """Also if a launch in between has changed nothing at all."""
    assert bool(progress(signs, before)) is is_progress


def test_results_are_compared_by_exact_names():
    assert artefact_names(["out/run-17.txt", "out/run-18.txt", "app.py"]) == (
        "app.py",
        "out/run-17.txt",
        "out/run-18.txt",
    )
    assert artefact_names(["agent.log", ".rekindle/x.py"]) == ()


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("run-2026-11-16.txt", "run-#-#-#.txt"),
        ("run-16.11.26.txt", "run-#.#.#.txt"),
        ("out/20261116T093000Z/part-2.csv", "out/#T#Z/part-2.csv"),
        ("out-1763285.json", "out-#.json"),
        ("out-3fa9c12e.json", "out-#.json"),
        ("6f1c2b3a-90de-4abc-8def-0123456789ab.txt", "#.txt"),
        ("v1.2.3/feedback-10.md", "v1.2.3/feedback-10.md"),
        ("effaced/decade.py", "effaced/decade.py"),
    ],
)
def test_dates_long_numbers_and_hex_ids_make_no_difference(path, name):
    assert artefact_names([path]) == (name,)


def test_of_many_numbered_files_the_log_names_the_last_ones_and_every_other_file():
    names = artefact_names([*(f"a-{number}.txt" for number in range(1, 31)), "z.py"])
    assert len(names) == PROGRESS_NAMES
    assert {"a-30.txt", "a-22.txt", "z.py"} <= set(names)


def chapters(count):
    return [WorkSigns(artefacts=(f"chapter-{number}.md",)) for number in range(1, count + 1)]


def test_a_new_numbered_file_in_every_cycle_is_progress():
    written = chapters(14)
    assert [describe_work(one, written[:place]) for place, one in enumerate(written)] == [
        "1 changed file"
    ] * 14


def test_numbered_files_alone_are_progress_only_so_many_times_in_a_row():
    *before, last = chapters(PROGRESS_NUMBERED)
    assert not progress(last, before)
    assert name_series(last, before).artefacts == ("chapter-#.md",)
    assert name_series(last, before[1:]) == last
    assert progress(last, before[1:])
    assert progress(last, [*before[:-1], CODE])
    assert progress(WorkSigns(artefacts=("app.py", *last.artefacts)), before)


def test_a_snapshot_keeps_enough_to_bound_numbered_files():
    assert min(SESSIONS_KEPT, CYCLES_KEPT) >= PROGRESS_NUMBERED


def test_names_that_an_older_version_logged_without_numbers_are_still_compared():
    folded = WorkSigns(artefacts=("chapter-#.md",))
    assert not progress(folded, [folded, folded])
    assert progress(chapters(1)[0], [folded, folded])


NAMES = st.lists(st.sampled_from(["a.py", "b.py", "notes.txt"]), unique=True).map(tuple)
FEW = st.integers(0, 2)
SIGNS = st.builds(
    WorkSigns, commits=FEW, artefacts=NAMES, resolved=FEW, decisions=FEW, asks_else=st.booleans()
)
SAME = relays.parse("## Next Action\nWrite the lexer\n")
ELSE = relays.parse("## Next Action\nShip the installer for Windows\n")


@given(SIGNS, st.lists(SIGNS, max_size=4))
def test_pacing_and_the_verdict_on_a_cycle_agree(signs, before):
    """Whatever a cycle did: its verdict is progress exactly if the launches count from there."""
    found = compare(SAME, ELSE if signs.asks_else else SAME, describe_work(signs, before))
    cycles = [
        CycleEnded(ts=NOW, seq=3 + number, cycle=number, signs=one)
        for number, one in enumerate([*before, signs])
    ]
    counted = measured(launch(100), cycles=cycles[:-1]).launches
    assert counted == 1
    last = msgspec.structs.replace(cycles[-1], seq=102)
    counted = measured(launch(100), cycles=[*cycles[:-1], last]).launches
    assert (found.verdict is Kind.PROGRESS) is (counted == 0)


@given(SIGNS, st.lists(SIGNS, max_size=4))
def test_words_for_the_work_are_there_exactly_if_it_is_progress(signs, before):
    alone = msgspec.structs.replace(signs, asks_else=False)
    assert bool(describe_work(signs, before)) is bool(progress(alone, before))


def test_a_file_that_every_cycle_changes_is_not_shipped():
    for constant, is_shipped in ((), True), (("out/run-3.txt",), False):
        found = held(Stage.SHIP, SAME, ["out/run-3.txt"], constant=constant)
        assert found.ok is is_shipped
    assert found.words == "changed nothing but what every cycle changes, such as out/run-3.txt"


def launch(seq, kind="crash", signs=None, **more):
    ended = NOW + timedelta(minutes=seq)
    how = {"seconds": 600.0, "ended": ended, "ended_seq": seq + 1, "exit": kind} | more
    return Attempt(1, "one", resumes=False, seq=seq, signs=signs, **how)


def measured(*launches, cycles=(), began=1, heeded=0, stopped=0):
    known = {one.cycle: one for one in cycles}
    return idle.measure(launches, known, began=began, heeded=heeded, stopped=stopped)


def test_launches_are_counted_since_the_last_progress():
    found = measured(launch(2), launch(4, signs=WorkSigns(commits=1)), launch(6), launch(8))
    assert (found.launches, found.seconds) == (2, 1200.0)
    assert found.failing == NOW + timedelta(minutes=6)


def test_a_cycle_that_moved_forward_counts_for_its_launches():
    cycle = CycleEnded(ts=NOW, seq=5, cycle=1, signs=WorkSigns(asks_else=True))
    assert measured(launch(2), launch(6), cycles=[cycle]).launches == 1
    assert measured(launch(2), launch(3), cycles=[cycle]).launches == 0
    still = CycleEnded(ts=NOW, seq=5, cycle=1, signs=WorkSigns())
    assert measured(launch(2), launch(3), cycles=[still]).launches == 2


def test_the_operator_s_restart_begins_to_count_again():
    assert measured(launch(2), launch(4), launch(6), heeded=5).launches == 1
    assert measured(launch(2), launch(4), launch(6), began=5).launches == 1


def test_the_operator_s_stop_begins_to_count_launches_again():
    """Hours and money count from the last progress: a stop makes none."""
    found = measured(launch(2), launch(4), launch(6), stopped=5)
    assert (found.launches, found.seconds) == (1, 1800.0)
    assert found.failing == NOW + timedelta(minutes=6)
    assert measured(launch(2), stopped=5).failing is None


def test_the_bounds_name_pacing_and_pauses():
    assert idle.bounds_in_words(Progress()) == (
        "without progress, waits 15 to 60 minutes between launches from the 11th on, and pauses"
        " after 40 launches or 12 hours of work, or $20 if the account is billed per token"
    )
    assert idle.bounds_in_words(Progress(paced_after=1, max_launches=1), lifted=True) == (
        "without progress, waits 15 to 60 minutes between launches from the 2nd on, and continues,"
        " as `--budget none` says"
    )


def test_what_still_runs_is_not_counted():
    assert measured(launch(2), launch(4, kind="")).launches == 1


def test_money_is_counted_since_the_last_progress():
    spent = [
        launch(2, run_usd=5.0, billed=True),
        launch(4, run_usd=9.0, signs=WorkSigns(commits=1)),
        launch(6, run_usd=12.0),
        launch(8, run_usd=16.5),
    ]
    found = measured(*spent)
    assert (found.usd, found.billed) == (7.5, True)
    assert measured(*spent, heeded=7).usd == 4.5
    assert measured(*spent, launch(12, run_usd=1.0), began=10).usd == 1.0


def test_a_good_end_ends_the_failures():
    assert measured(launch(2), launch(4, "clean")).failing is None
    assert measured(launch(2), launch(4, "handoff")).failing is None


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (idle.Idle(launches=39, seconds=43_199.0, usd=999.0), ""),
        (idle.Idle(launches=40), "40 launches in a row without progress"),
        (idle.Idle(seconds=43_200.0), "12 hours of work without progress"),
        (idle.Idle(usd=20.0, billed=True), "$20.00 were spent without progress"),
        (idle.Idle(usd=19.99, billed=True), ""),
    ],
)
def test_the_bounds_that_pause(found, words):
    assert idle.is_over(found, Progress()) == words
    pause = idle.pause(found, Progress())
    assert (pause.why if pause else "") == ("no-progress" if words else "")


def test_later_launches_are_spaced_out():
    def wait(times, now=NOW):
        last = launch(0, ended=NOW)
        found = idle.pace(idle.Idle(launches=times, last=last), Progress(), now)
        return (found.until - now).total_seconds() if found else 0

    assert [wait(times) for times in (0, 9, 10, 11, 12, 39)] == [0, 0, 900, 1800, 3600, 3600]
    assert wait(10, NOW + timedelta(seconds=900)) == 0
    assert wait(10, NOW - timedelta(days=1)) == 900  # a clock that was set back


def test_a_launch_after_a_handoff_is_spaced_out_once_its_checkpoint_is_written():
    handed = launch(8, "handoff", ended=NOW)
    found = idle.Idle(launches=10, last=handed)

    def move(*, launches=10, checkpoint, **how):
        fruitless = msgspec.structs.replace(found, launches=launches)
        return next_move(
            Run(began=1),
            [handed],
            now=NOW,
            runtime=Runtime(),
            checkpoint=checkpoint,
            fruitless=fruitless,
            **how,
        )

    assert isinstance(move(checkpoint=0), HandOn)
    wait = move(checkpoint=10)
    assert (wait.why, wait.until) == ("idle", NOW + timedelta(minutes=15))
    assert isinstance(move(checkpoint=10, launches=9), Fresh)
    assert isinstance(move(checkpoint=10, paces_handoffs=False), Fresh)


def test_failures_are_announced_before_they_last_an_hour():
    last = launch(0, ended=NOW, words="what is this?")
    found = idle.Idle(launches=3, failing=NOW, last=last)
    assert idle.notice(found, NOW + timedelta(minutes=44)) == ""
    assert "what is this?" in idle.notice(found, NOW + timedelta(minutes=45))
    probe = idle.Wait(NOW + timedelta(minutes=15), "crash", 1, probe=True)
    assert "2026-04-09 12:15 UTC" in idle.notice(found, NOW, probe)
    assert idle.notice(idle.Idle(launches=3, last=last), NOW, probe) == ""
