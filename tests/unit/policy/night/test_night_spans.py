"""The periods of a night: launches, waits, safe mode and questions."""

from datetime import timedelta

import pytest

from night_events import at, log
from rekindle.documents import events
from rekindle.documents.events import UnknownEvent
from rekindle.policy.night.night_spans import find_spans

LAUNCH = {"launch": "l1", "cycle": 2, "session": "s1"}
STARTED = (events.LaunchStarted, {**LAUNCH, "harness": "codex", "resumes": True})
ENDED = (events.LaunchEnded, {**LAUNCH, "exit": "crash", "words": "exit code 1"})
SAFE = (events.SafeModeEntered, {"why": "auth", "words": "not logged in"})


def question(about="auth", name="a-1"):
    fields = {"number": 1, "text": "What now?", "choices": ("retry", "stop"), "default": "stop"}
    return events.QuestionAsked, {"question": name, "about": about, **fields}


def answer(effect="restart", name="a-1", refused=""):
    return events.QuestionAnswered, {"question": name, "effect": effect, "refused": refused}


def spans(*made):
    found = find_spans(log(*made), at(600))
    return [(one.lane, one.start, one.end, one.first, one.last) for one in found]


def test_a_launch_lasts_from_its_start_to_its_end():
    (span,) = find_spans(log(STARTED, ENDED), at(9))
    assert (span.start, span.end, span.first, span.last) == (at(0), at(1), 1, 2)
    assert (span.lane, span.launch, span.session, span.cycle) == ("session", "l1", "s1", 2)
    assert (span.resumes, span.exit, span.text) == (True, "crash", "exit code 1")


def test_a_running_launch_has_no_end():
    (span,) = find_spans(log(STARTED), at(9))
    assert (span.end, span.exit, span.last) == (None, "", 1)


def test_each_launch_is_in_one_span_even_if_its_other_event_is_missing():
    other = {**LAUNCH, "launch": "l2"}
    found = find_spans(
        log(
            ENDED,
            STARTED,
            (events.LaunchStarted, {**other, "harness": "codex"}),
            (events.LaunchEnded, {**other, "launch": "l3", "exit": "lost"}),
        ),
        at(9),
    )
    assert [(one.launch, one.start, one.end, one.exit) for one in found] == [
        ("l1", at(0), at(0), "crash"),
        ("l1", at(1), at(2), ""),
        ("l2", at(2), at(3), ""),
        ("l3", at(3), at(3), "lost"),
    ]


def test_a_span_does_not_end_before_it_starts_if_the_clock_was_set_back():
    kind, fields = ENDED
    (span,) = find_spans(log(STARTED, (kind, {**fields, "ts": at(-30)})), at(9))
    assert span.start == span.end == at(0)


def test_a_session_that_the_cli_names_later_belongs_to_its_launch():
    kind, fields = STARTED
    reported = {"session": "s9", "harness": "codex", "launch": "l1"}
    (span,) = find_spans(
        log((kind, {**fields, "session": ""}), (events.SessionStarted, reported)), at(9)
    )
    assert span.session == "s9"
    ended = (events.LaunchEnded, {**LAUNCH, "session": "", "exit": "clean"})
    (span,) = find_spans(
        log((kind, {**fields, "session": ""}), (events.SessionStarted, reported), ended), at(9)
    )
    assert span.session == "s9"


def test_a_persons_own_session_is_a_span_and_a_visitor_is_not():
    own = {"session": "mine", "harness": "codex"}
    found = find_spans(
        log(
            (events.SessionStarted, own),
            (events.SessionStarted, {**own, "source": "compact"}),
            (events.SessionStarted, {**own, "session": "visit", "visitor": True}),
            (events.SessionEnded, {"session": "mine"}),
        ),
        at(9),
    )
    assert [(one.session, one.launch, one.start, one.end) for one in found] == [
        ("mine", "", at(0), at(3))
    ]
    lost = log((events.SessionStarted, own), (events.SessionLost, {"session": "mine"}))
    assert find_spans(lost, at(9))[0].end == at(1)


def wait(why="limit", minutes=90):
    return events.WaitStarted, {"why": why, "until": at(minutes)}


@pytest.mark.parametrize(
    ("after", "now", "end"),
    [
        ((), at(89), None),
        ((), at(90), at(90)),
        ((STARTED,), at(99), at(1)),
        ((wait("network", 95),), at(200), at(1)),
    ],
)
def test_a_wait_ends_at_its_time_or_with_the_next_step(after, now, end):
    span = find_spans(log(wait(), *after), now)[0]
    assert (span.lane, span.why, span.until, span.end) == ("wait", "limit", at(90), end)


def test_a_wait_that_was_over_before_the_next_launch_ends_on_time():
    kind, fields = STARTED
    span = find_spans(log(wait(minutes=5), (kind, {**fields, "ts": at(60)})), at(99))[0]
    assert (span.end, span.last) == (at(5), 2)


@pytest.mark.parametrize(("exit_kind", "words"), [("limit", "resets 5am"), ("overload", "")])
def test_a_wait_has_the_message_of_the_exit_that_caused_it(exit_kind, words):
    ended = {**LAUNCH, "exit": exit_kind, "words": "a limit", "hint": "resets 5am"}
    found = find_spans(log((events.LaunchEnded, ended), wait()), at(9))
    assert (found[1].text, found[1].words) == ("a usage limit", words)


@pytest.mark.parametrize(
    "after",
    [
        (events.RestartRequested, {}),
        (events.PersonAnswered, {"text": "go"}),
        (events.RunEnded, {"why": "claimed"}),
        (events.RunStarted, {}),
        answer(),
        answer("finish"),
    ],
)
def test_safe_mode_and_its_question_end_with_a_decision(after):
    found = spans(SAFE, question(), after)[:2]
    assert found == [("safe", at(0), at(2), 1, 3), ("question", at(1), at(2), 2, 3)]


@pytest.mark.parametrize(
    "after",
    [
        answer("note"),
        answer(refused="too late"),
        ENDED,
        (events.DesiredSet, {"desired": "running"}),
    ],
)
def test_other_events_do_not_end_safe_mode(after):
    assert ("safe", at(0), None, 1, 1) in spans(SAFE, question(), after)


def test_a_start_accepts_changed_settings():
    """Unlike other reasons for safe mode."""
    paused = (events.SafeModeEntered, {"why": "settings"})
    found = spans(paused, question("settings"), (events.DesiredSet, {"desired": "running"}))
    assert found == [("safe", at(0), at(2), 1, 3), ("question", at(1), at(2), 2, 3)]


def test_a_start_withdraws_the_question_of_a_finished_run():
    ended = (events.RunEnded, {"why": "budget"})
    found = spans(ended, question("budget"), (events.DesiredSet, {"desired": "running"}))
    assert found == [("question", at(1), at(2), 2, 3)]


@pytest.mark.parametrize("stop", [(events.DesiredSet, {"desired": "stopped"}), answer("stop")])
def test_a_stop_closes_the_question_and_leaves_safe_mode(stop):
    found = spans(SAFE, question(), stop)
    assert found == [("safe", at(0), None, 1, 1), ("question", at(1), at(2), 2, 3)]


def test_a_question_about_a_permission_stays_open_until_its_answer():
    asked = question("permission")
    assert spans(asked, STARTED)[0] == ("question", at(0), None, 1, 1)
    assert spans(asked, STARTED, answer("note"))[0] == ("question", at(0), at(2), 1, 3)
    assert spans(asked, answer("note", "a-2"))[0] == ("question", at(0), None, 1, 1)


def test_a_question_has_its_text_and_id_and_safe_mode_its_reason():
    safe, asked = find_spans(log(SAFE, question()), at(9))
    assert (safe.why, safe.text) == ("auth", "not logged in")
    assert (asked.question, asked.text) == ("a-1", "What now?")


def test_events_of_unknown_kinds_are_ignored():
    assert find_spans([UnknownEvent("later.kind", at(0))], at(0) + timedelta(1)) == []
