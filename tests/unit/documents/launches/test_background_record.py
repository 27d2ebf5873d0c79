"""The record of processes that an agent left in the background."""

from datetime import UTC, datetime

import pytest

from rekindle.documents.launches.background_record import (
    BackgroundRecord,
    RecordedProcess,
    parse,
    render,
    render_ended_list,
    render_ended_notice,
)

AT = datetime(2026, 4, 9, tzinfo=UTC)
ENDED = RecordedProcess("12.345.boot.ns", "npm start", AT, is_kept=False)
KEPT = RecordedProcess("13.345.boot.ns", "postgres", AT, is_kept=True)


def test_a_record_reads_back():
    record = BackgroundRecord("l1", "11.1.b.n", (ENDED, KEPT), may_control=True)
    assert parse(render(record)) == record
    assert record.kept == (KEPT,)
    assert (ENDED.pid, KEPT.pid) == (12, 13)


@pytest.mark.parametrize("data", [None, b"", b"{", b'{"launch": 3}'])
def test_a_record_that_cannot_be_read_is_empty(data):
    """An empty record permits nothing."""
    assert parse(data) == BackgroundRecord(launch="", program="", processes=(), may_control=False)


def test_the_next_session_is_told_what_ended():
    assert render_ended_notice([]) == ""
    told = render_ended_notice(["npm start", "make watch"])
    assert told.splitlines()[1:] == render_ended_list(["npm start", "make watch"]).splitlines()
    assert [line.startswith("- ") for line in told.splitlines()] == [False, True, True]
    assert "npm start" in told.splitlines()[1]
