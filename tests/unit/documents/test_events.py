"""Events: one line each, a closed union, and room for what a later release writes."""

import json
import re
import types
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Literal, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rekindle.documents import events
from rekindle.documents.events import (
    EVENT_KINDS,
    AnyEvent,
    BriefedPosition,
    DocumentCommitted,
    Event,
    Heartbeat,
    LoopAdded,
    LoopCorrection,
    StateAdopted,
    UnknownEvent,
    WorkSigns,
)
from rekindle.documents.state import OpenLoop, Resolution
from rekindle.errors import DocumentError, NewerSchemaError, RekindleError
from sampling import examples

NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
ZONES = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
MOMENTS = st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1), timezones=ZONES)  # noqa: DTZ001 - hypothesis adds the zone
EXTRA = st.dictionaries(
    TEXT, st.none() | st.booleans() | st.integers() | TEXT | st.lists(TEXT, max_size=2), max_size=2
)
VALUES = {
    str: TEXT,
    int: st.integers(0, 2**60),
    bool: st.booleans(),
    bool | None: st.none() | st.booleans(),
    WorkSigns | None: st.none()
    | st.builds(
        WorkSigns,
        commits=st.integers(0, 9),
        artefacts=st.lists(TEXT, max_size=2).map(tuple),
        resolved=st.integers(0, 9),
        decisions=st.integers(0, 9),
        asks_else=st.booleans(),
    ),
    int | None: st.none() | st.integers(0, 2**60),
    float: st.floats(0, 1e9),
    float | None: st.none() | st.floats(0, 1e9),
    events.AnswerEffect: st.sampled_from(get_args(events.AnswerEffect)),
    events.Proposal: st.sampled_from(get_args(events.Proposal)),
    dict[str, float]: st.dictionaries(TEXT, st.floats(0, 1e9), max_size=2),
    Literal["running", "stopped"]: st.sampled_from(["running", "stopped"]),
    datetime: MOMENTS,
    datetime | None: st.none() | MOMENTS,
    dict[str, str]: st.dictionaries(TEXT, TEXT, max_size=2),
    dict[str, BriefedPosition]: st.dictionaries(
        TEXT, st.builds(BriefedPosition, st.integers(0, 9), st.integers(0, 9), TEXT), max_size=2
    ),
    tuple[OpenLoop, ...]: st.lists(
        st.builds(OpenLoop, TEXT, TEXT, TEXT, st.booleans(), EXTRA), max_size=2
    ).map(tuple),
    tuple[Resolution, ...]: st.lists(
        st.builds(Resolution, TEXT, TEXT, TEXT, EXTRA), max_size=2
    ).map(tuple),
    tuple[LoopCorrection, ...]: st.lists(
        st.builds(
            LoopCorrection,
            MOMENTS,
            TEXT,
            TEXT,
            closes=st.booleans(),
            added=TEXT,
            extra=st.none() | EXTRA,
        ),
        max_size=2,
    ).map(tuple),
    tuple[str, ...]: st.lists(TEXT, max_size=2).map(tuple),
}


def events_of(kind: type[Event]) -> st.SearchStrategy[Event]:
    given_values = {
        field.name: VALUES.get(field.type, EXTRA)
        for field in msgspec.structs.fields(kind)
        if field.name != "v"
    }
    return st.builds(kind, **given_values)


EVENTS = st.one_of(*(events_of(kind) for kind in EVENT_KINDS))


def line(**fields: object) -> bytes:
    return json.dumps({"v": 1, "ts": "2026-04-09T12:00:00Z", **fields}).encode()


@given(EVENTS)
@settings(max_examples=examples(300))
def test_every_kind_reads_back_as_it_was_written(written):
    """Nothing is lost, and the whole event is one line."""
    data = events.render(written)
    assert b"\n" not in data
    assert b"\r" not in data
    assert events.parse(data) == msgspec.structs.replace(written, more={})
    again = events.parse_untrusted(data)
    assert again == msgspec.structs.replace(written, seq=0, gen=0, at="", more=again.more)


@pytest.mark.parametrize("kind", EVENT_KINDS)
def test_the_fields_of_every_line_stand_first(kind):
    """A line of the log opens with schema, sequence, generation, time and kind."""
    required = {
        field.name: NOW if field.type is datetime else 7 if field.type is int else "x"
        for field in msgspec.structs.fields(kind)
        if field.required
    }
    written = events.render(kind(**required | {"seq": 412, "gen": 3}))
    assert list(json.loads(written))[:5] == ["v", "seq", "gen", "ts", "kind"]
    assert written.startswith(b'{"v":1,"seq":412,"gen":3,"ts":"2026-04-09T12:00:00Z","kind":"')


def test_an_inbox_line_has_neither_sequence_nor_generation():
    """The log gives them."""
    assert events.render(Heartbeat(ts=NOW)) == (
        b'{"v":1,"ts":"2026-04-09T12:00:00Z","kind":"heartbeat"}'
    )


def test_the_union_is_closed_and_every_kind_says_what_it_is():
    """The table of kinds is the union, no tag occurs twice, and each has a sentence."""
    assert get_args(AnyEvent) == EVENT_KINDS
    assert len({kind.__struct_config__.tag for kind in EVENT_KINDS}) == len(EVENT_KINDS)
    assert all(kind.summary.endswith(".") for kind in EVENT_KINDS)
    documents = {kind.document for kind in EVENT_KINDS if issubclass(kind, DocumentCommitted)}
    assert documents == {"relay", "checkpoint", "brief"}


# Events of later releases.


@pytest.mark.parametrize(
    ("earlier", "fields", "kind"),
    [
        ("desired.said", {"desired": "stopped"}, events.DesiredSet),
        ("handoff.asked", {}, events.HandoffRequested),
        ("hang.noticed", {"launch": "1:1", "words": "silent"}, events.HangDetected),
        ("restart.asked", {}, events.RestartRequested),
        ("spend.noted", {"launch": "1:1", "tokens": 3}, events.SpendRecorded),
        (
            "window.learnt",
            {"harness": "codex", "model": "m", "window": 9},
            events.WindowSizeReported,
        ),
        ("workspace.kept", {"words": "no remote"}, events.WorkspacePushFailed),
    ],
)
def test_a_kind_is_read_by_its_earlier_name(earlier, fields, kind):
    """A log from before the rename still says that the agent was stopped."""
    line = msgspec.json.encode({"v": 1, "ts": NOW, "kind": earlier, **fields})
    found = events.parse(line)
    assert type(found) is kind
    assert {name: getattr(found, name) for name in fields} == fields


def test_a_reason_for_the_end_is_read_by_its_earlier_name():
    """Logs from before the rename have it as `outcome`."""
    earlier = line(kind="run.ended", outcome="claimed", words="so it says")
    assert events.parse(earlier) == events.RunEnded(ts=NOW, why="claimed", words="so it says")
    with pytest.raises(DocumentError, match="is not valid for its kind"):
        events.parse(line(kind="run.ended", words="so it says"))


def test_the_positions_of_a_brief_are_read_by_their_earlier_name():
    """Logs from before the rename have them as `told`; otherwise a brief would repeat them."""
    earlier = line(kind="brief.made", morning="2026-04-09", told={"told": {"at": 7, "turn": 2}})
    found = events.parse(earlier)
    assert found.covered == {"told": events.BriefedPosition(7, 2)}
    assert events.parse(events.render(found)) == found


def test_unknown_fields_are_ignored():
    """A later release may say more about a kind that we know."""
    found = events.parse(line(kind="heartbeat", tool="Read", mood="good"))
    assert found == Heartbeat(ts=NOW, tool="Read")


@pytest.mark.parametrize("kind", ["heartbeat", "loop.added", "cycle.paused"])
@pytest.mark.parametrize("version", [2, 10**30])
def test_a_newer_event_is_refused_by_its_versions(kind, version):
    """This holds even if its fields no longer fit the known kind."""
    with pytest.raises(NewerSchemaError, match=f"event: has schema {version}, .* up to 1"):
        events.parse(line(v=version, kind=kind))


# Refused events.


@pytest.mark.parametrize("kind", ["heartbeat", "cycle.paused"])
@pytest.mark.parametrize(
    "ts", ["2026-04-09T12:00:00", "yesterday", "", 5, None, "99999-01-01T00:00:00Z"]
)
def test_a_time_without_a_zone_is_refused(kind, ts):
    """An event without an instant is refused."""
    with pytest.raises(DocumentError, match="event: "):
        events.parse(line(kind=kind, ts=ts))


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "loop.added", "id": 5, "text": "a"},
        {"kind": "loop.added", "id": "a"},
        {"kind": "inbox.rejected", "bytes": "many", "reason": "a"},
        {"kind": "state.adopted", "open_loops": {}},
        {"kind": "heartbeat", "seq": "1"},
        {"kind": "cycle.paused", "seq": "1"},
        {"kind": None},
        {"kind": 5},
        {},
    ],
)
def test_what_does_not_fit_its_kind_is_refused(fields):
    """A wrong or missing field is named, not guessed."""
    with pytest.raises(DocumentError, match="is not valid for its kind"):
        events.parse(line(**fields))


def test_a_lone_surrogate_is_refused_when_it_is_written():
    """Python can hold text that no line can."""
    for bad in (
        LoopAdded(ts=NOW, id="a", text="\ud800"),
        StateAdopted(ts=NOW, extra={"\ud800": 1}),
    ):
        with pytest.raises(DocumentError, match="event: cannot be written as JSON"):
            events.render(bad)


HEAD = b'{"ts": "2026-04-09T12:00:00Z", "kind": "state.adopted", '


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"\x00",
        b"\xff",
        b"null",
        b"[]",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        HEAD + b'"v": NaN}',
        HEAD + b'"v": 1e400}',
        HEAD + b'"v": ' + b"9" * 5_000 + b"}",
        HEAD + b'"v": -' + b"9" * 4_000 + b"}",
        HEAD + b'"seq": ' + b"9" * 4_000 + b"}",
        HEAD + b'"v": 1, "v": 2}',
        HEAD + b'"extra": {"x": "\\ud800"}}',
        HEAD + b'"extra": {"x": ' + b"9" * 4_000 + b"}}",
        *(HEAD + b'"extra": {"x": ' + b"[" * n + b"]" * n + b"}}" for n in (900, 995, 5_000)),
        HEAD + b'"last_active": "0000-00-00T00:00:00Z"}',
    ],
    ids=lambda data: repr(data[-24:]),
)
def test_hostile_bytes_are_an_event_or_refused(data):
    """Deep, huge, broken and doubled input ends in our own errors, read or written."""
    try:
        found = events.parse(data)
        assert isinstance(found, EVENT_KINDS)
        assert events.parse(events.render(found)) == found
    except RekindleError:
        return


@given(
    st.binary(max_size=60)
    | EVENTS.map(events.render).flatmap(
        lambda data: st.integers(0, len(data)).map(lambda cut: data[:cut])
    )
)
@settings(max_examples=examples(200))
def test_any_bytes_are_an_event_or_refused(data):
    """A torn line is refused with our own error."""
    try:
        found = events.parse(data)
    except RekindleError:
        return
    assert isinstance(found, (*EVENT_KINDS, UnknownEvent))


@pytest.mark.parametrize("version", ["1", True, None, 1.0, []])
def test_a_version_that_is_not_a_number_is_refused(version):
    """An unreadable schema is not taken for ours."""
    with pytest.raises(DocumentError, match=r"schema version|does not fit"):
        events.parse(line(kind="heartbeat", v=version))


def test_unknown_fields_of_a_record_are_kept_beside_the_known():
    """Additions of a later Rekindle are read from the inbox and written to the log."""
    found = events.parse_untrusted(line(kind="heartbeat", prio=3, seq=9, gen=9, at="x:1"))
    assert (found.more, found.seq, found.gen, found.at) == ({"prio": 3}, 0, 0, "")
    assert b'"prio":3' in events.render(found)


FOLDER = Path(events.__file__).parent
MODULES = [FOLDER / "event.py", *FOLDER.glob("*_events.py"), FOLDER / "__init__.py"]
SOURCE = re.sub(
    r"^from rekindle\.documents\.events\.\w+ import (?:\([^)]*\)|.*)\n",
    "",
    "".join(module.read_text(encoding="utf-8") for module in MODULES),
    flags=re.MULTILINE,
)
"""All modules of events as one, without their imports of each other."""
NEW_KIND = """
class MoonRisen(Event, frozen=True, kw_only=True{tag}):
{body}


EVENT_KINDS: """


def load(source: str) -> types.ModuleType:
    """Import a changed copy of the module, as if its file had been edited."""
    module = types.ModuleType("changed")
    exec(compile(source, "event.py", "exec"), vars(module))  # noqa: S102 - our own source
    return module


@pytest.mark.parametrize(
    ("tag", "body", "is_listed", "refused"),
    [
        (', tag="moon.risen"', '    summary = "The moon rose."', True, ""),
        ("", '    summary = "The moon rose."', True, "MoonRisen: needs its own `tag=`"),
        (', tag="moon.risen"', "    phase: str", True, "MoonRisen: needs"),
        (', tag="moon.risen"', '    summary = "The moon rose."', False, "MoonRisen: not in"),
    ],
)
def test_a_kind_without_its_row_cannot_be_imported(tag, body, is_listed, refused):
    """A tag for programs, a summary for the reference, and a place in the union."""
    changed = SOURCE.replace("\nEVENT_KINDS: ", NEW_KIND.format(tag=tag, body=body), 1)
    if is_listed:
        changed = changed.replace("get_args(AnyEvent)", "get_args(AnyEvent | MoonRisen)")
    if refused:
        with pytest.raises(TypeError, match=refused):
            load(changed)
    else:
        assert "moon.risen" in {one.__struct_config__.tag for one in load(changed).EVENT_KINDS}


def test_a_renamed_class_changes_no_line():
    """Tags are explicit: all classes get other names, and the log's lines stay the same."""
    names = [kind.__name__ for kind in EVENT_KINDS]
    renamed = load(re.sub(rf"\b({'|'.join(names)})\b", r"Renamed\1", SOURCE))
    assert [kind.__name__ for kind in renamed.EVENT_KINDS] == [f"Renamed{name}" for name in names]
    for before, after in zip(EVENT_KINDS, renamed.EVENT_KINDS, strict=True):
        required = [one for one in msgspec.structs.fields(before) if one.required]
        values = {one.name: NOW if one.type is datetime else one.name for one in required}
        assert events.render(before(**values)) == renamed.render(after(**values))
