"""Progress, and the work that leads nowhere: what counts, what is paced, what pauses."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.documents import relay as relays
from rekindle.documents.events import (
    CycleEnded,
    WorkSigns,
)
from rekindle.policy.progress import idle
from rekindle.policy.progress.work_progress import (
    PROGRESS_TABLE,
    describe_work,
    find_progress,
    list_artefact_names,
    name_series,
)
from rekindle.policy.projection.sessions import LaunchRecord
from rekindle.policy.relay.convergence import (
    TopicStage,
    check_stage,
)
from rekindle.policy.settings.runtime_settings import (
    CYCLES_KEPT,
    PROGRESS_NAMES,
    PROGRESS_NUMBERED,
    SESSIONS_KEPT,
)
from rekindle.policy.stall.relay_comparison import compare_relays
from rekindle.policy.stall.verdict import StallKind

NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)
NOTES, CODE = WorkSigns(artefacts=("notes.txt",)), WorkSigns(artefacts=("app.py", "notes.txt"))

SHOWN = {
    "a commit, unless it holds only journals, state files or logs": WorkSigns(commits=1),
    "a resolved loop": WorkSigns(resolved=2),
    "a new decision": WorkSigns(decisions=1),
    "a relay with a different request": WorkSigns(asks_else=True),
    "an artefact that does not change in every launch": NOTES,
}


def test_every_kind_of_progress():
    assert {words: find_progress(signs) for words, signs in SHOWN.items()} == {
        words: words for words in SHOWN
    }
    assert [row.words for row in PROGRESS_TABLE] == list(SHOWN)


def test_nothing_seen_is_not_progress():
    assert find_progress(None) == ""
    assert find_progress(WorkSigns()) == ""


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
    """This holds if a launch in between has changed nothing."""
    assert bool(find_progress(signs, before)) is is_progress


def test_results_are_compared_by_exact_names():
    assert list_artefact_names(["out/run-17.txt", "out/run-18.txt", "app.py"]) == (
        "app.py",
        "out/run-17.txt",
        "out/run-18.txt",
    )
    assert list_artefact_names(["agent.log", ".rekindle/x.py"]) == ()


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("run-2026-11-16.txt", "run-#.txt"),
        ("run-16.11.26.txt", "run-#.txt"),
        ("out/20261116T093000Z/part-2.csv", "out/#/part-2.csv"),
        ("out-1763285.json", "out-#.json"),
        ("out-3fa9c12e.json", "out-#.json"),
        ("6f1c2b3a-90de-4abc-8def-0123456789ab.txt", "#.txt"),
        ("v1.2.3/feedback-10.md", "v1.2.3/feedback-10.md"),
        ("effaced/decade.py", "effaced/decade.py"),
    ],
)
def test_dates_long_numbers_and_hex_ids_make_no_difference(path, name):
    assert list_artefact_names([path]) == (name,)


def test_of_many_numbered_files_the_log_names_the_last_ones_and_every_other_file():
    names = list_artefact_names([*(f"a-{number}.txt" for number in range(1, 31)), "z.py"])
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
    assert not find_progress(last, before)
    assert name_series(last, before).artefacts == ("chapter-#.md",)
    assert name_series(last, before[1:]) == last
    assert find_progress(last, before[1:])
    assert find_progress(last, [*before[:-1], CODE])
    assert find_progress(WorkSigns(artefacts=("app.py", *last.artefacts)), before)


def test_a_snapshot_keeps_enough_to_bound_numbered_files():
    assert min(SESSIONS_KEPT, CYCLES_KEPT) >= PROGRESS_NUMBERED


def test_names_that_an_older_version_logged_without_numbers_are_still_compared():
    folded = WorkSigns(artefacts=("chapter-#.md",))
    assert not find_progress(folded, [folded, folded])
    assert find_progress(chapters(1)[0], [folded, folded])


NAMES = st.lists(st.sampled_from(["a.py", "b.py", "notes.txt"]), unique=True).map(tuple)
FEW = st.integers(0, 2)
SIGNS = st.builds(
    WorkSigns, commits=FEW, artefacts=NAMES, resolved=FEW, decisions=FEW, asks_else=st.booleans()
)
SAME = relays.parse("## Next Action\nWrite the lexer\n")
ELSE = relays.parse("## Next Action\nShip the installer for Windows\n")


@given(SIGNS, st.lists(SIGNS, max_size=4))
def test_pacing_and_the_verdict_on_a_cycle_agree(signs, before):
    """Whatever a cycle did: it cannot be paused exactly if the launches count from there."""
    work = describe_work(signs, before)
    found = compare_relays(SAME, ELSE if signs.asks_else else SAME, work)
    cycles = [
        CycleEnded(ts=NOW, seq=3 + number, cycle=number, signs=one)
        for number, one in enumerate([*before, signs])
    ]
    counted = measured(launch(100), cycles=cycles[:-1]).launches
    assert counted == 1
    last = msgspec.structs.replace(cycles[-1], seq=102)
    counted = measured(launch(100), cycles=[*cycles[:-1], last]).launches
    assert (bool(work) or found.verdict is StallKind.PROGRESS) is (counted == 0)


@given(SIGNS, st.lists(SIGNS, max_size=4))
def test_words_for_the_work_are_there_exactly_if_it_is_progress(signs, before):
    alone = msgspec.structs.replace(signs, asks_else=False)
    assert bool(describe_work(signs, before)) is bool(find_progress(alone, before))


def test_a_file_that_every_cycle_changes_is_not_shipped():
    for constant, is_shipped in ((), True), (("out/run-3.txt",), False):
        found = check_stage(TopicStage.SHIP, SAME, ["out/run-3.txt"], constant=constant)
        assert found.ok is is_shipped
    assert found.words == "changed only files that every cycle changes, such as out/run-3.txt"


def launch(seq, kind="crash", signs=None, **more):
    ended = NOW + timedelta(minutes=seq)
    how = {"seconds": 600.0, "ended": ended, "ended_seq": seq + 1, "exit": kind} | more
    return LaunchRecord(1, "one", resumes=False, seq=seq, signs=signs, **how)


def measured(*launches, cycles=(), began=1, intervened=0, stopped=0):
    known = {one.cycle: one for one in cycles}
    return idle.sum_idle_launches(
        launches, known, began=began, intervened=intervened, stopped=stopped
    )
