"""State: files of Phoenix tools are read, unknown fields survive, edits are noticed."""

import json
from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rekindle.documents import state
from rekindle.documents.state import OpenLoop, Resolution, State
from rekindle.errors import DocumentError, NewerSchemaError, RekindleError
from rekindle.formats import identifiers
from rekindle.thresholds.texts import LINE_LIMIT
from sampling import examples

PHOENIX = {
    "agent": "trades",
    "last_active": "2026-02-17T02:12:53Z",
    "open_loops": [
        {"id": "schwab-oauth", "text": "OAuth not set up", "added": "2026-02-01", "stale": True},
        {"id": "ruling", "text": "Ruling ~Feb 20 — binary", "added": "2026-02-14", "stale": False},
    ],
    "resolved": [
        {"id": "snapshot-failure", "reason": "Fixed cron", "resolved_date": "2026-02-16"},
    ],
    "numbers": {"nav": "$266,691", "mtd_pnl": "-$3,846", "active_crons": "4"},
}

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LINE = TEXT.map(identifiers.to_one_line)
ID = LINE.filter(bool)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)


def extras(known: set[str]) -> st.SearchStrategy[dict[str, object]]:
    return st.dictionaries(TEXT.filter(lambda key: key not in known), JSON, max_size=3)


STATES = st.builds(
    State,
    agent=TEXT,
    last_active=st.none() | st.datetimes(timezones=st.just(UTC)),
    open_loops=st.lists(
        st.builds(
            OpenLoop,
            id=ID,
            text=LINE,
            added=st.dates().map(str),
            stale=st.booleans(),
            extra=extras({"id", "text", "added", "stale"}),
        ),
        max_size=3,
    ).map(tuple),
    resolved=st.lists(
        st.builds(
            Resolution,
            id=ID,
            reason=LINE,
            resolved_date=st.dates().map(str),
            extra=extras({"id", "reason", "resolved_date"}),
        ),
        max_size=3,
    ).map(tuple),
    numbers=st.dictionaries(TEXT, TEXT, max_size=3),
    extra=extras({"v", "agent", "last_active", "open_loops", "resolved", "numbers", "check"}),
)


def read(**fields: object) -> State:
    return state.parse(json.dumps(fields).encode())


def test_the_phoenix_example_is_read():
    """A file that never heard of us is a state."""
    found = state.parse(json.dumps(PHOENIX).encode())
    assert found.agent == "trades"
    assert found.last_active == datetime(2026, 2, 17, 2, 12, 53, tzinfo=UTC)
    assert [loop.id for loop in found.open_loops] == ["schwab-oauth", "ruling"]
    assert found.open_loops[0] == OpenLoop(
        "schwab-oauth", "OAuth not set up", "2026-02-01", stale=True
    )
    assert found.resolved == (Resolution("snapshot-failure", "Fixed cron", "2026-02-16"),)
    assert found.numbers == PHOENIX["numbers"]


def test_a_phoenix_tool_reads_what_we_write():
    """Every field is in the place of the specification, beside a schema and a check."""
    written = json.loads(state.render(state.parse(json.dumps(PHOENIX).encode())))
    assert {key: written[key] for key in PHOENIX} == PHOENIX
    assert set(written) - set(PHOENIX) == {"v", "seq", "check"}


@given(STATES)
@settings(max_examples=examples(150))
def test_a_state_reads_back_as_it_was_written(value):
    """Nothing is lost, unknown fields of the file, its loops and its resolutions included."""
    written = state.render(value)
    assert state.parse(written) == value
    assert state.render(state.parse(written)) == written
    assert state.is_unedited(written)


def test_unknown_fields_survive_everywhere():
    """At the top, in a loop and in a resolution."""
    raw = {
        **PHOENIX,
        "status": {"working": [1, None]},
        "open_loops": [{"id": "a", "text": "b", "added": "2026-01-01", "owner": "ann"}],
        "resolved": [{"id": "c", "reason": "d", "resolved_date": "2026-01-01", "by": ["bob"]}],
    }
    written = json.loads(state.render(state.parse(json.dumps(raw).encode())))
    assert written["status"] == {"working": [1, None]}
    assert written["open_loops"][0]["owner"] == "ann"
    assert written["resolved"][0]["by"] == ["bob"]


# Omissions of people and tools.


def test_an_empty_object_is_a_state():
    """Every field may be missing or null."""
    assert state.parse(b"{}") == State(agent="")
    nothing = dict.fromkeys(("agent", "last_active", "open_loops", "resolved", "numbers"))
    assert read(**nothing) == State(agent="")


def test_a_plain_sentence_is_an_open_loop():
    """Its id is made from its words."""
    assert read(open_loops=["Call Ann\nback"]).open_loops == (
        OpenLoop(identifiers.derive_id("Call Ann back"), "Call Ann back", ""),
    )


def test_a_loop_without_an_id_gets_one_from_its_words():
    """A loop without a day has none, and only true is stale."""
    (loop,) = read(open_loops=[{"text": "Call Ann", "stale": "yes"}]).open_loops
    assert loop == OpenLoop(identifiers.derive_id("Call Ann"), "Call Ann", "")


def test_text_of_a_loop_is_one_line():
    """Control characters and line breaks cannot forge a second line."""
    (loop,) = read(open_loops=[{"id": "a\nb", "text": "c\x1b[2K\u2028d" + "x" * 5000}]).open_loops
    assert loop.id == "a b"
    assert loop.text.startswith("c [2K d")
    assert len(loop.text) == LINE_LIMIT


def test_a_time_beside_a_day_is_cut_off():
    """Days are ten characters."""
    (loop,) = read(open_loops=[{"id": "a", "added": "2026-02-01T10:00:00Z"}]).open_loops
    (done,) = read(resolved=[{"resolved_date": "2026-02-01 10:00"}]).resolved
    assert loop.added == "2026-02-01"
    assert done == Resolution(identifiers.derive_id(""), "", "2026-02-01")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (4, "4"),
        (-2.5, "-2.5"),
        (True, "true"),
        (None, "null"),
        ("$1,000", "$1,000"),
        ([1, "a"], '[1,"a"]'),
        (10**30, "1" + "0" * 30),
    ],
)
def test_numbers_are_strings(value, text):
    """Whatever a tool puts there is kept as it would be written."""
    assert read(numbers={"n": value}).numbers == {"n": text}


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("2026-02-17T02:12:53Z", datetime(2026, 2, 17, 2, 12, 53, tzinfo=UTC)),
        ("2026-02-17T02:12:53+02:00", datetime(2026, 2, 17, 0, 12, 53, tzinfo=UTC)),
        ("2026-02-17T02:12:53", datetime(2026, 2, 17, 2, 12, 53, tzinfo=UTC)),
        ("2026-02-17", datetime(2026, 2, 17, tzinfo=UTC)),
        ("99999-01-01", None),
        ("0001-01-01T00:00:00+14:00", None),
        ("yesterday", None),
        ("", None),
        (1771294373, None),
        (None, None),
    ],
)
def test_a_point_in_time_is_utc_or_unknown(value, found):
    """A time without a zone is UTC; text that is not a time is None."""
    assert state.parse_time(value) == found


def test_a_time_of_another_zone_is_written_as_the_same_instant():
    """The instant counts, not the zone."""
    east = datetime(2026, 2, 17, 2, 0, tzinfo=timezone(timedelta(hours=2)))
    assert state.parse(state.render(State(agent="a", last_active=east))).last_active == east


# Refused states.


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"open_loops": {"a": 1}}, "open_loops is not a list"),
        ({"open_loops": "a"}, "open_loops is not a list"),
        ({"resolved": {"a": 1}}, "resolved is not a list"),
        ({"numbers": ["a"]}, "numbers is not an object"),
        ({"open_loops": [1]}, "open_loops contains an item that is not an object"),
        ({"resolved": ["a"]}, "resolved contains an item that is not an object"),
    ],
)
def test_a_field_of_another_shape_is_refused(fields, reason):
    """Guessing would drop what is in it."""
    with pytest.raises(DocumentError, match=reason):
        read(**fields)


def test_a_newer_state_is_refused_by_its_versions():
    """Reading and checking refuse it."""
    for reader in (state.parse, state.is_unedited):
        with pytest.raises(NewerSchemaError, match=r"state\.json: has schema 2, .* up to 1"):
            reader(b'{"v": 2, "agent": "a"}')


HOSTILE = [
    b"",
    b"\x00",
    b"\xff\xfe{}",
    b"[]",
    b"null",
    b"NaN",
    b'{"v": NaN}',
    b'{"v": 1e400}',
    b'{"v": "2"}',
    b'{"v": true}',
    b'{"v": -1}',
    b'{"v": null}',
    b'{"v": 2.5}',
    b'{"v": [2]}',
    b'{"v": ' + b"9" * 5_000 + b"}",
    b'{"v": ' + b"9" * 4_000 + b"}",
    b'{"x": ' + b"9" * 4_000 + b"}",
    b'{"agent": ' + b"9" * 4_000 + b"}",
    b'{"numbers": {"n": ' + b"9" * 4_000 + b"}}",
    b'{"agent": "a", "agent": "b"}',
    b'{"agent": "\\ud800"}',
    b'{"agent": "\\u0000"}',
    b'{"\\udfff": 1}',
    b"[" * 100_000,
    b'{"x":' * 100_000,
    *(b'{"x":' + b"[" * depth + b"]" * depth + b"}" for depth in (200, 900, 1_000, 5_000)),
    b'{"open_loops": [{"id": {"a": []}, "text": [1], "added": 20260101}]}',
    b'{"last_active": "9999-12-31T23:59:59-14:00"}',
]


@given(st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()))
@settings(max_examples=examples(200))
def test_any_bytes_are_a_state_or_refused(data):
    """Nothing but our own errors comes out, and what was read can be written."""
    try:
        written = state.render(state.parse(data))
    except RekindleError:
        return
    assert state.is_unedited(written)


@pytest.mark.parametrize("data", HOSTILE, ids=lambda data: repr(data[:24]))
def test_hostile_bytes_are_a_state_or_refused(data):
    """Deep, huge, broken and doubled input ends in our own errors."""
    try:
        written = state.render(state.parse(data))
        assert state.is_unedited(data) in {True, False}
    except RekindleError:
        return
    assert state.is_unedited(written)


@pytest.mark.parametrize(
    "value",
    [
        State(agent="\ud800"),
        State(agent="a", numbers={"\udfff": "1"}),
        State(agent="a", open_loops=(OpenLoop("a", "\ud800", ""),)),
        State(agent="a", extra={"x": {"\ud800": 1}}),
    ],
)
def test_a_lone_surrogate_is_refused_when_it_is_written(value):
    """Python can hold text that no file can."""
    with pytest.raises(DocumentError, match="cannot be written as JSON"):
        state.render(value)


# The author of the bytes.


@given(STATES, st.data())
def test_an_edit_is_noticed(value, data):
    """Any changed value marks the file as edited by another program."""
    raw = msgspec.json.decode(state.render(value))
    key = data.draw(st.sampled_from(sorted(raw)))
    other = data.draw(
        JSON.filter(lambda new: msgspec.json.encode(new) != msgspec.json.encode(raw[key]))
    )
    edited = {**raw, key: 1 if key == "v" else other}
    if edited != raw:
        assert not state.is_unedited(msgspec.json.encode(edited))
    removed = {name: raw[name] for name in raw if name != key}
    assert not state.is_unedited(msgspec.json.encode(removed))
    assert not state.is_unedited(msgspec.json.encode({**raw, "another key": other}))


@example(b"{}")
@example(json.dumps(PHOENIX).encode())
@given(JSON.map(lambda value: json.dumps({"x": value}).encode()))
def test_what_others_write_is_not_ours(data):
    """A file without a check was not written by us."""
    assert not state.is_unedited(data)


def test_another_layout_says_the_same():
    """A tool that only reformats the file is noticed, and has changed nothing."""
    written = state.render(state.parse(json.dumps(PHOENIX).encode()))
    assert written.startswith(b'{\n  "v": 1,\n')
    assert written.endswith(b"}\n")
    laid_out = json.dumps(json.loads(written), sort_keys=True).encode()
    assert not state.is_unedited(laid_out)
    assert state.parse(laid_out) == state.parse(written)
