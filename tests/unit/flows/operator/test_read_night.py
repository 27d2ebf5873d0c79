"""A night is read from the log and, if there is one, from the archive of transcripts."""

from datetime import timedelta

import pytest

from rekindle.documents import events
from rekindle.documents.manifest_keys import Budget
from rekindle.documents.transcripts.turns import Turn
from rekindle.flows.operator.read_night import read_night
from rekindle.policy.night.build_night import NightInputs
from rekindle.stores.files.transcript_archive import ArchivedTranscript, TranscriptArchive

LAUNCH = {"launch": "l1", "cycle": 1, "session": "s1"}


@pytest.fixture
def began(store, clock):
    """A launch that started two days ago and still runs; its first heartbeat was then, too."""
    began = clock() - timedelta(days=2)
    with store.writer("trades") as writer:
        writer.append(
            events.RunStarted(ts=began),
            events.LaunchStarted(ts=began, harness="claude-code", **LAUNCH),
            events.Heartbeat(ts=began, session="s1"),
            events.WindowMeasured(ts=clock(), launch="l1", tokens=50_000, window=200_000),
        )
    return began


@pytest.fixture
def archive(store, clock, began):
    """An archive with a turn of each kind."""
    archive = TranscriptArchive(store.folder("trades").transcripts)

    def at(**before):
        return (clock() - timedelta(**before)).isoformat(timespec="milliseconds")

    turns = [
        Turn(number=1, who="agent", at=at(days=1), read=1),
        Turn(number=2, who="person", at=at(hours=2), text="go"),
        Turn(number=3, who="agent", at=at(hours=2), read=20_000),
        Turn(number=4, who="agent", at=at(hours=1), read=9_000, thread="helper"),
        Turn(number=5, who="agent", at="", read=30_000),
        Turn(number=6, who="agent", at="yesterday", read=31_000),
        Turn(number=7, who="agent", at=at(hours=1).partition("+")[0], read=35_000),
        Turn(number=8, who="agent", at=at(hours=1), read=40_000),
    ]
    archive.add(ArchivedTranscript(session="s1"), turns, lambda note: note)
    return archive


def test_a_launch_that_started_long_before_the_night_is_in_it(store, clock, began):
    night = read_night(store, "trades", NightInputs(now=clock()))
    (span,) = night.spans
    assert (span.launch, span.start, span.end) == ("l1", began, None)
    assert [point.percent for point in night.window] == [25.0]


def test_only_as_much_of_the_log_is_read_as_needed(store, clock, began, monkeypatch):
    seen, newest = [], store.newest_entries
    watch = (entry for entry in newest("trades") if seen.append(entry.event.kind) is None)
    monkeypatch.setattr(store, "newest_entries", lambda _agent: watch)
    read_night(store, "trades", NightInputs(now=clock()))
    assert seen == ["window.measured", "heartbeat", "launch.started"]


def test_window_points_come_from_the_turns_of_the_main_thread(store, clock, archive):
    night = read_night(store, "trades", NightInputs(now=clock()), archive)
    assert [(point.tokens, point.session, point.percent) for point in night.window] == [
        (20_000, "s1", 10.0),
        (35_000, "s1", 17.5),
        (40_000, "s1", 20.0),
        (50_000, "s1", 25.0),
    ]


def test_a_damaged_or_missing_archive_costs_only_its_points(store, clock, archive):
    (path,) = store.folder("trades").transcripts.glob("*.gz")
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    night = read_night(store, "trades", NightInputs(now=clock()), archive)
    assert night.spans
    assert night.window[-1].tokens == 50_000
    nowhere = TranscriptArchive(store.folder("trades").transcripts / "missing")
    assert len(read_night(store, "trades", NightInputs(now=clock()), nowhere).window) == 1


def test_a_cap_that_the_operator_raised_counts(store, clock, began):
    around = NightInputs(now=clock(), budget=Budget(usd=10.0))
    assert read_night(store, "trades", around).usd_cap == 10.0
    with store.writer("trades") as writer:
        writer.append(
            events.QuestionAnswered(
                ts=clock(), question="trades-1", effect="restart", budget={"usd": 25.0}
            )
        )
    assert read_night(store, "trades", around).usd_cap == 25.0


def test_an_agent_that_was_never_started_has_an_empty_night(store, clock):
    night = read_night(store, "unknown", NightInputs(now=clock()))
    assert (night.agent, night.seq, night.lines) == ("unknown", 0, ())
