"""The base of events: a kind is its tag, and an unknown kind is kept."""

import json
from datetime import UTC, datetime

from event_lines import LINES
from rekindle.documents import events
from rekindle.documents.events import EVENT_KINDS, Heartbeat
from rekindle.documents.events.event import UnknownEvent

NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)


def test_the_kind_of_an_event_is_its_tag():
    assert Heartbeat(ts=NOW).kind == "heartbeat"


def test_every_kind_has_a_line_of_the_log():
    assert set(LINES) == {kind.__struct_config__.tag for kind in EVENT_KINDS}


def test_an_unknown_kind_keeps_its_place_in_the_log():
    line = {"v": 1, "seq": 4, "gen": 2, "ts": "2026-04-09T12:00:00Z", "kind": "cycle.paused"}
    event = events.parse(json.dumps(line | {"at": "1:9", "anything": [1]}).encode())
    assert event == UnknownEvent("cycle.paused", NOW, 4, 2, "1:9")


def test_an_unknown_event_that_is_not_in_the_log_yet_has_no_place():
    event = events.parse(b'{"v": 1, "ts": "2026-04-09T12:00:00Z", "kind": "cycle.paused"}')
    assert event == UnknownEvent("cycle.paused", NOW, seq=0, gen=0, at="")
