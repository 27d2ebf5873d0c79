"""A night has what happened between two times."""

from datetime import timedelta

import pytest

from night_events import at, log
from rekindle.documents import events
from rekindle.documents.manifest_keys import Budget
from rekindle.documents.screens.agent_night import WindowPoint
from rekindle.policy.night.build_night import NightInputs, build_night, shows_activity
from rekindle.thresholds.screens import NIGHT_HOURS, NIGHT_POINTS

NOW = at(60)
LAUNCH = {"launch": "l1", "cycle": 2, "session": "s1"}
HAPPENED = log(
    (events.RunStarted, {}),
    (events.LaunchStarted, {**LAUNCH, "harness": "codex"}),
    (events.HangDetected, {"launch": "l1", "words": "silent"}),
    (events.SpendRecorded, {"launch": "l1", "tokens": 5, "usd": 0.5}),
    (events.LaunchEnded, {**LAUNCH, "exit": "crash", "tokens": 60, "window": 100, "run_usd": 1.0}),
    (events.HangDetected, {"launch": "l2", "words": "later"}),
)


def build(since, until, now=NOW, **fields):
    around = NightInputs(now=now, since=since, until=until, **fields)
    return build_night("trades", HAPPENED, around, [WindowPoint(at(3.5), 40, "s1")])


def test_a_night_has_what_happened_in_it():
    night = build(at(2), at(4))
    assert (night.agent, night.since, night.until, night.seq) == ("trades", at(2), at(4), 6)
    assert [span.launch for span in night.spans] == ["l1"]
    assert [(mark.kind, mark.at) for mark in night.marks] == [("hang", at(2)), ("crash", at(4))]
    assert [line.kind for line in night.lines] == ["hang", "crash", "cycle"]
    assert [point.percent for point in night.window] == [40.0, 60.0]
    assert [point.usd for point in night.spend] == [0.5, 1.0]
    assert night.window_size == 100


def test_a_period_before_or_after_the_night_is_not_in_it():
    assert build(at(4), at(9)).spans
    assert not build(at(4) + timedelta(seconds=1), at(9)).spans
    assert build(at(-9), at(1)).spans
    assert not build(at(-9), at(1) - timedelta(seconds=1)).spans


def test_a_night_ends_now_and_has_a_default_length():
    night = build(None, None, now=at(4))
    assert (night.since, night.until) == (at(4) - timedelta(hours=NIGHT_HOURS), at(4))
    assert build(None, at(99), now=at(4)).until == at(4)
    assert build(None, at(3)).since == at(3) - timedelta(hours=NIGHT_HOURS)


def test_a_night_has_the_caps_of_the_agent():
    night = build(None, None, budget=Budget(usd=10.0, tokens=7), handoff_percent=70)
    assert (night.usd_cap, night.tokens_cap, night.handoff_percent) == (10.0, 7, 70)
    night = build(None, None)
    assert (night.usd_cap, night.tokens_cap, night.handoff_percent) == (None, None, None)


def test_curves_are_bounded():
    happened = log(
        *[(events.SpendRecorded, {"launch": "l", "tokens": n, "ts": at(0)}) for n in range(5_000)]
    )
    turns = [WindowPoint(at(0), n, "s") for n in range(5_000)]
    night = build_night("a", happened, NightInputs(now=at(9)), turns)
    assert len(night.spend) == len(night.window) == NIGHT_POINTS


def test_silent_events_count_only_for_the_position():
    happened = log((events.Heartbeat, {}), (events.LoopAdded, {"id": "a", "text": "b"}))
    night = build_night("a", happened, NightInputs(now=at(9)))
    assert (night.seq, night.lines, night.marks, night.spans) == (2, (), (), ())


def test_a_night_without_events_is_empty():
    night = build_night("a", [], NightInputs(now=at(9)))
    assert (night.seq, night.spans, night.marks, night.lines) == (0, (), (), ())
    assert (night.window, night.spend, night.window_size) == ((), (), None)


@pytest.mark.parametrize(
    ("kind", "fields", "shows"),
    [
        (events.LaunchStarted, {**LAUNCH, "harness": "codex"}, True),
        (events.WaitStarted, {"why": "limit", "until": at(1)}, True),
        (events.SessionStarted, {"session": "s", "harness": "codex"}, True),
        (events.SessionStarted, {"session": "s", "harness": "codex", "launch": "l1"}, False),
        (events.SessionStarted, {"session": "s", "harness": "codex", "visitor": True}, False),
        (events.Heartbeat, {}, False),
    ],
)
def test_which_events_show_what_the_agent_was_doing(kind, fields, shows):
    (event,) = log((kind, fields))
    assert shows_activity(event) is shows
