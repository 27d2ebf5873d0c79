"""Counters come from the log: a scrape reads what is new, and a restart resets nothing."""

import pytest

from rekindle.documents import events
from rekindle.flows.operator.read_metrics import MetricsReader
from rekindle.flows.operator.read_rows import RowReader
from rekindle.policy.operator.count_events import NOTHING_COUNTED, count_events
from rekindle.policy.settings.runtime_settings import RuntimeSettings


@pytest.fixture
def make_reader(store, clock):
    def made(*agents):
        rows = RowReader(store, {}, RuntimeSettings(), clock)
        return MetricsReader("shop", store, rows, agents or ("trades",))

    return made


@pytest.fixture
def offsets(store, monkeypatch):
    """The offsets from which the log was read."""
    found = []
    read = store.entries_since
    monkeypatch.setattr(
        store, "entries_since", lambda agent, offset: (found.append(offset), read(agent, offset))[1]
    )
    return found


def append(store, clock, number):
    """Append cycle `number` with a launch that used as many tokens."""
    with store.writer("trades") as writer:
        writer.append(
            events.RunStarted(ts=clock()),
            events.LaunchEnded(
                ts=clock(), launch="l", cycle=1, session="s", exit="crash", run_tokens=number
            ),
            events.CycleEnded(ts=clock(), cycle=number, verdict="progress"),
        )


def fold_whole(store):
    return count_events(NOTHING_COUNTED, store.events_since("trades", 0).events)


def test_only_new_entries_are_read_and_the_counts_equal_a_whole_fold(
    store, clock, make_reader, offsets
):
    reader = make_reader()
    for number in range(1, 6):
        append(store, clock, number)
        end = store.read("trades").end
        counts = reader.read().counts["trades"]
        assert counts == fold_whole(store)
        assert counts.launches["crash"] == counts.cycles["progress"] == number
        assert counts.tokens == sum(range(number + 1))
        assert reader.read().counts["trades"] == counts
        assert len(offsets) == number
        assert offsets[-1] < end
    assert offsets == sorted(set(offsets))
    assert offsets[0] == 0
    assert make_reader().read().counts["trades"] == counts


def test_a_log_that_was_replaced_is_counted_again_when_it_is_accepted(
    store, clock, make_reader, offsets
):
    """Until then it has no counters, because an agent may have written its entries."""
    append(store, clock, 1)
    backup = store.folder("trades").log.read_bytes()
    append(store, clock, 2)
    reader = make_reader()
    assert reader.read().counts["trades"].launches["crash"] == 2
    store.folder("trades").log.write_bytes(backup)
    assert reader.read().counts == {}
    assert store.accept_log("trades")
    assert reader.read().counts["trades"] == fold_whole(store)
    assert reader.read().counts["trades"].launches["crash"] == 1
    assert offsets == [0, 0]


def test_an_interrupted_append_is_not_counted(store, clock, make_reader, monkeypatch):
    """Bytes after the end of the view may be removed by the next writer."""
    append(store, clock, 1)
    reader = make_reader()
    view = store.read("trades")
    append(store, clock, 2)
    monkeypatch.setattr(store, "read", lambda _: view)
    assert reader.read().counts["trades"].launches["crash"] == 1


def test_an_agent_that_cannot_be_read_has_no_counters_and_hides_no_other(store, make_reader):
    store.create("other")
    store.folder("trades").log.unlink()
    store.folder("trades").log.mkdir()
    metrics = make_reader("trades", "other", "never").read()
    assert [row.state for row in metrics.rows] == ["broken", "stopped", "stopped"]
    assert set(metrics.counts) == {"other"}


def test_the_text_names_the_project(make_reader):
    text = make_reader().render()
    assert 'rekindle_agent_state{project="shop",agent="trades",state="stopped"} 1\n' in text
