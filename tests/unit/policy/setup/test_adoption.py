"""The documents of another loop that can be adopted."""

import json
from datetime import UTC, datetime

import pytest

from rekindle.documents.state import OpenLoop, Resolution, State
from rekindle.errors import CheckFailedError, DocumentError, NewerSchemaError
from rekindle.policy.settings.runtime_settings import ADOPT_DEPTH
from rekindle.policy.setup.adoption import (
    ResolvedLine,
    collect_resolutions,
    parse_resolved_lines,
    plan_adoption,
    select_open_loops,
)

NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)
RELAY = b"## Next Action\nPort the parser\n"
EMPTY = b"# Notes\n"
BRIEF = b"# Brief: trades, 2026-04-09\n\n**Changed**\n- x\n"


def planned(**documents):
    given = dict.fromkeys(("relay", "brief", "state", "resolved"))
    return plan_adoption(10_000, **given | documents)


def test_nothing_is_taken_from_nothing():
    assert planned() == plan_adoption(1, relay=None, brief=None, state=None, resolved=None)
    assert planned().left == ()


def test_a_relay_is_adopted():
    """A byte order mark is accepted."""
    for data in (RELAY, b"\xef\xbb\xbf" + RELAY):
        assert planned(relay=data).relay.next_action == "Port the parser"


def test_a_relay_without_a_directive_is_refused_alone_and_left_out_with_others():
    with pytest.raises(CheckFailedError, match="this relay cannot be used: "):
        planned(relay=EMPTY)
    for others in ({"state": b"{}"}, {"resolved": b""}, {"brief": b"x"}):
        found = planned(relay=EMPTY, **others)
        assert found.relay is None
        assert found.left[0].startswith("the relay: ")


def test_a_brief_that_cannot_be_read_is_left_out():
    found = planned(brief=b"\xff")
    assert found.brief is None
    assert [words.partition(": ")[0] for words in found.left] == ["the brief"]


@pytest.mark.parametrize("name", ["brief", "state"])
def test_a_newer_schema_is_refused(name):
    newer = {"brief": b"<!-- rekindle: brief 99 -->\n# Brief\n", "state": b'{"v": 99}'}
    with pytest.raises(NewerSchemaError):
        planned(**{name: newer[name]})


def nested(depth):
    return b'{"a":' * depth + b"1" + b"}" * depth


def test_a_state_that_cannot_be_read_is_refused():
    for data, reason in ((b"[", "state"), (nested(ADOPT_DEPTH + 1), "nested too deeply")):
        with pytest.raises(DocumentError, match=reason) as caught:
            planned(state=data)
        assert "adopt only the relay" in caught.value.hint
    assert planned(state=nested(ADOPT_DEPTH)).state is not None
    lists = b'{"a":' + b"[" * ADOPT_DEPTH + b"]" * ADOPT_DEPTH + b"}"
    with pytest.raises(DocumentError, match="nested too deeply"):
        planned(state=lists)


def lines(*rows):
    return "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows).encode()


def test_the_lines_of_a_resolution_log():
    """The last line of a loop counts; lines that say nothing are counted."""
    data = lines(
        {"id": "a", "reason": "done", "ts": "2026-04-01T10:00:00Z"},
        {"id": "b", "resolved_date": "2026-04-02"},
        "no JSON",
        "",
        "[]",
        {"id": 3, "reason": ["x"]},
        {"reason": "only a reason"},
        {"id": "a", "reason": "done again"},
    )
    found, spoiled = parse_resolved_lines(data)
    assert spoiled == 3
    assert [(one.id, one.reason) for one in found[:2]] == [("a", "done again"), ("b", "resolved")]
    assert found[0].when is None
    assert found[1].when.date().isoformat() == "2026-04-02"
    assert found[2].reason == "only a reason"
    assert found[2].id
    left = planned(resolved=data).left
    assert left == ("resolved.jsonl has unreadable lines: 3",)
    assert planned(resolved=lines({"id": "a"})).left == ()


def closing(identity, day="2026-04-05", reason="done"):
    when = datetime.fromisoformat(f"{day}T10:00:00+00:00") if day else None
    return ResolvedLine(identity, reason, when)


@pytest.mark.parametrize(
    ("day", "added", "is_open"),
    [
        ("2026-04-06", "2026-04-05", False),
        ("2026-04-05", "2026-04-05", True),
        ("2026-04-04", "2026-04-05", True),
        ("", "2026-04-05", True),
        ("2026-04-06", "", True),
    ],
)
def test_a_loop_that_was_resolved_on_a_later_day_is_closed(day, added, is_open):
    state = State(agent="trades", open_loops=(OpenLoop("a", "text", added=added),))
    found = select_open_loops(state, {"a": closing("a", day)})
    assert [loop.id for loop in found] == (["a"] if is_open else [])
    assert select_open_loops(state, {}) == state.open_loops


class Known:
    def __init__(self, is_open):
        self.is_open = is_open


def test_what_was_resolved_there():
    """New loops become events of their own time; open loops of ours are resolved; others stay."""
    state = State(
        agent="trades",
        open_loops=(OpenLoop("still", "text", added="2026-04-08"),),
        resolved=(Resolution("a", "from the state", "2026-04-02"), Resolution("b", "b", "")),
    )
    closings = {
        "a": closing("a", "2026-04-03", "from the log"),
        "still": closing("still"),
        "future": closing("future", "2027-01-01"),
        "old": closing("old", "1960-01-01"),
        "ours": closing("ours"),
        "shut": closing("shut"),
    }
    known = {"ours": Known(is_open=True), "shut": Known(is_open=False)}
    past, ours = collect_resolutions(state, closings, known, NOW)
    assert {(event.id, event.reason, event.ts.date().isoformat()) for event in past} == {
        ("a", "from the log", "2026-04-03"),
        ("b", "b", "2026-04-09"),
        ("future", "done", "2026-04-09"),
        ("old", "done", "2026-04-09"),
    }
    assert [(one.id, one.reason) for one in ours] == [("ours", "done")]
