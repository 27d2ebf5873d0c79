"""The events of a night that are marked on a timeline."""

import pytest

from night_events import at, log
from rekindle.documents import events
from rekindle.documents.events import UnknownEvent
from rekindle.documents.screens.agent_night import NightMark
from rekindle.policy.night.night_marks import find_marks

LAUNCH = {"launch": "l1", "cycle": 2, "session": "s1"}
ASKED = {"number": 1, "choices": ("allow", "deny"), "default": "deny"}


@pytest.mark.parametrize(
    ("kind", "fields", "mark"),
    [
        (events.LaunchEnded, {**LAUNCH, "exit": "crash", "words": "exit 1"}, ("crash", "exit 1")),
        (events.LaunchEnded, {**LAUNCH, "exit": "lost"}, ("crash", "its supervisor is gone")),
        (events.LaunchEnded, {**LAUNCH, "exit": "limit"}, ("limit", "a usage limit")),
        (events.HangDetected, {"launch": "l", "words": "silent"}, ("hang", "silent")),
        (events.RepetitionDetected,
         {"launch": "l", "pattern": "call", "count": 6, "words": "x 6", "action": "told"},
         ("repeat", "x 6")),
        (events.SessionCompacted, {"session": "s", "trigger": "auto"}, ("compaction", "auto")),
        (events.CallRefused, {"launch": "l", "cycle": 1, "tool": "Write", "of_run": 1},
         ("refused", "Write")),
    ],
)  # fmt: skip
def test_each_kind_has_a_mark_with_its_text(kind, fields, mark):
    assert find_marks(log((kind, fields))) == [NightMark(at(0), 1, mark[0], text=mark[1])]


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (events.LaunchEnded, {**LAUNCH, "exit": "clean"}),
        (events.LaunchEnded, {**LAUNCH, "exit": "handoff"}),
        (events.SessionCompacted, {"session": "s", "visitor": True}),
        (events.QuestionAnswered, {"question": "a-1", "effect": "note", "refused": "late"}),
        (events.Heartbeat, {}),
    ],
)
def test_other_events_have_none(kind, fields):
    assert find_marks(log((kind, fields))) == []
    assert find_marks([UnknownEvent("later.kind", at(0))]) == []


@pytest.mark.parametrize(
    ("tokens", "window", "percent"),
    [
        (142_000, 200_000, 71.0),
        (142_600, 200_000, 71.3),
        (142_000, None, None),
        (None, 200_000, None),
    ],
)
def test_a_handoff_has_the_usage_of_the_window(tokens, window, percent):
    fill = {**LAUNCH, "tokens": tokens, "window": window}
    triggered = (events.HandoffTriggered, {**fill, "by": "person"})
    full = (events.LaunchEnded, {**fill, "exit": "context-full"})
    assert find_marks(log(triggered, full)) == [
        NightMark(at(0), 1, "handoff", percent=percent, by="person"),
        NightMark(at(1), 2, "handoff", percent=percent, by="cli"),
    ]


def test_a_relay_has_its_revision_headline_and_author():
    relay = {"sha256": "a", "path": "p", "by": "agent", "headline": "Ship it", "seq": 31}
    assert find_marks(log((events.RelayCommitted, relay))) == [
        NightMark(at(0), 31, "relay", text="Ship it", by="agent")
    ]


@pytest.mark.parametrize(
    ("fields", "text"), [({}, "cycle 3"), ({"words": "unchanged"}, "cycle 3: unchanged")]
)
def test_a_cycle_has_its_verdict(fields, text):
    ended = {"cycle": 3, "verdict": "stalled", **fields}
    assert find_marks(log((events.CycleEnded, ended))) == [
        NightMark(at(0), 1, "cycle", text=text, verdict="stalled")
    ]


def test_a_question_and_its_answer_have_the_same_id():
    marks = find_marks(
        log(
            (events.QuestionAsked, {"question": "a-1", "about": "x", "text": "May I?", **ASKED}),
            (events.QuestionAnswered, {"question": "a-1", "effect": "note", "choice": "allow",
                                       "by": "ann"}),
            (events.QuestionAnswered, {"question": "a-2", "effect": "note", "text": "no",
                                       "origin": "deadline"}),
        )
    )  # fmt: skip
    assert marks == [
        NightMark(at(0), 1, "question", text="May I?", question="a-1"),
        NightMark(at(1), 2, "answer", text="allow", by="ann", question="a-1"),
        NightMark(at(2), 3, "answer", text="no", by="deadline", question="a-2"),
    ]


def test_marks_are_ordered_by_time():
    late, early = log(
        (events.HangDetected, {"launch": "l", "words": "late", "ts": at(9)}),
        (events.HangDetected, {"launch": "l", "words": "early"}),
    )
    assert [mark.text for mark in find_marks([late, early])] == ["early", "late"]
