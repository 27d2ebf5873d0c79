"""The hub sends each change once, and all rows after a gap."""

import asyncio
import json

import pytest

from rekindle.web import row_hub
from rekindle.web.row_hub import ALIVE, RowHub


class Source:
    """Rows that the test sets, read in one or more batches."""

    def __init__(self, *batches):
        self.batches = batches
        self.reads = 0

    def read(self):
        self.reads += 1
        yield from [
            {key: json.dumps(value).encode() for key, value in one.items()} for one in self.batches
        ]


def parse(event):
    lines = dict(line.split(": ", 1) for line in event.decode().splitlines() if line)
    assert lines["event"] == "rows"
    return lines["id"], json.loads(lines["data"])


async def read_event(events):
    return parse(await asyncio.wait_for(anext(events), 120))


def run(test, hub):
    async def together():
        checking = asyncio.create_task(hub.check())
        try:
            await test()
        finally:
            checking.cancel()

    asyncio.run(together())


def test_a_page_gets_all_rows_then_only_changes():
    source = Source({"a": 1, "b": 2})
    hub = RowHub(source, "run")

    async def test():
        events = hub.stream()
        _, first = await read_event(events)
        while not first["complete"]:
            _, first = await read_event(events)
        source.batches = ({"a": 1, "b": 3, "c": 4},)
        hub.check_soon()
        _, change = await read_event(events)
        assert (change["whole"], change["rows"]) == (False, [3, 4])
        source.batches = ({"b": 3},)
        hub.check_soon()
        _, change = await read_event(events)
        assert (change["rows"], sorted(change["gone"])) == ([], ["a", "c"])

    run(test, hub)


async def read_complete(events):
    while True:
        cursor, rows = await read_event(events)
        if rows["complete"]:
            return cursor, rows


def test_a_new_page_gets_the_rows_at_once():
    hub = RowHub(Source({"a": 1}, {"b": 2}), "run")

    async def test():
        await read_complete(hub.stream())
        _, second = await read_event(hub.stream())
        assert second["whole"]
        assert second["rows"] == [1, 2]

    run(test, hub)


@pytest.mark.parametrize("cursor", ["", "other-3", "run-x", "run-1"])
def test_an_unknown_position_or_a_gap_leads_to_all_rows(cursor):
    source = Source({"a": 1})
    hub = RowHub(source, "run")

    async def test():
        events = hub.stream()
        await read_complete(events)
        for value in (2, 3):
            source.batches = ({"a": value},)
            hub.check_soon()
            await read_event(events)
        _, rows = await read_event(hub.stream(cursor))
        assert rows["whole"]
        assert rows["rows"] == [3]

    run(test, hub)


def test_a_page_that_reconnects_gets_only_the_last_change():
    source = Source({"a": 1, "b": 1})
    hub = RowHub(source, "run")

    async def test():
        events = hub.stream()
        cursor, _ = await read_complete(events)
        source.batches = ({"a": 1, "b": 2},)
        hub.check_soon()
        await read_event(events)
        _, rows = await read_event(hub.stream(cursor))
        assert (rows["whole"], rows["rows"]) == (False, [2])

    run(test, hub)


def test_a_slow_page_skips_to_the_newest_rows():
    source = Source({"a": 1})
    hub = RowHub(source, "run")

    async def test():
        slow, quick = hub.stream(), hub.stream()
        await read_complete(slow)
        await read_complete(quick)
        for value in range(2, 6):
            source.batches = ({"a": value},)
            hub.check_soon()
            await read_event(quick)
        _, rows = await read_event(slow)
        assert (rows["whole"], rows["rows"]) == (True, [5])

    run(test, hub)


def test_an_event_is_encoded_once_for_all_pages():
    source = Source({"a": 1})
    hub = RowHub(source, "run")

    async def test():
        pages = [hub.stream() for _ in range(3)]
        for page in pages:
            await read_complete(page)
        source.batches = ({"a": 2},)
        hub.check_soon()
        events = [await asyncio.wait_for(anext(page), 120) for page in pages]
        assert len({id(event) for event in events}) == 1

    run(test, hub)


def test_a_stream_without_changes_says_that_it_is_alive(monkeypatch):
    monkeypatch.setattr(row_hub, "UI_ALIVE_SECONDS", 0.01)
    hub = RowHub(Source({"a": 1}), "run")
    stream = hub.stream()

    async def test():
        events = [await asyncio.wait_for(anext(stream), 120) for _ in range(9)]
        assert ALIVE in events

    run(test, hub)


def test_nothing_is_read_while_there_are_no_pages(monkeypatch):
    monkeypatch.setattr(row_hub, "UI_CHECK_SECONDS", 0.0)
    monkeypatch.setattr(row_hub, "UI_CHECK_SHARE", 1.0)
    source = Source({"a": 1})
    hub = RowHub(source, "run")

    async def test():
        events = hub.stream()
        await read_complete(events)
        await events.aclose()
        hub.check_soon()
        for _ in range(100):
            await asyncio.sleep(0)
        reads = source.reads
        for _ in range(100):
            await asyncio.sleep(0.001)
        assert source.reads <= reads + 1

    run(test, hub)


class FailingSource(Source):
    """Rows that cannot be read the first time."""

    def read(self):
        if not self.reads:
            self.reads += 1
            raise OSError
        yield from super().read()


def test_a_failed_check_is_repeated_and_there_is_no_sign_of_life_before(monkeypatch):
    monkeypatch.setattr(row_hub, "UI_ALIVE_SECONDS", 0.001)
    monkeypatch.setattr(row_hub, "UI_CHECK_SECONDS", 0.1)
    source = FailingSource({"a": 1})
    hub = RowHub(source, "run")

    async def test():
        _, event = await read_event(hub.stream())
        assert (event["rows"], source.reads) == ([1], 2)

    run(test, hub)
