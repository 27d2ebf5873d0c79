"""The next day's brief costs only the day: bytes read, as the kernel counts them."""

import os
import sys
from pathlib import Path

import pytest

from days import Shop
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.stores.files import FileStore
from sampling import WHOLE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells it on Linux")

YOUNG, OLD, STEPS = (15, 35, 30) if WHOLE else (13, 28, 10)
SESSIONS, WORDS = 4, "many words about one more step of a long piece of work " * 20


def read_so_far():
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"])


def after(days, folder, clock):
    """Return the bytes that a brief reads after this many days, and the bytes that exist."""
    folder.mkdir()
    store = FileStore(folder, host="here", settings=Settings(), clock=clock)
    store.create("trades")
    shop, seen = Shop(store, clock, folder), set()
    for _ in range(days + 1):
        clock.forward(days=1)
        for _ in range(SESSIONS):
            session = shop.session()
            for step in range(STEPS):
                session.says(f"{step}: {WORDS}")
            session.ends()
        with store.writer("trades") as writer:
            writer.snapshot()  # the time since the last one is random
        before = read_so_far()
        written = shop.brief({})
        cost = read_so_far() - before
        # The disk's clock is the test's: what was written on a day is of that day.
        for path in set(store.folder("trades").transcripts.iterdir()) - seen:
            os.utime(path, (clock().timestamp(),) * 2)
            seen.add(path)
    return cost, written.read_bytes, sum(path.stat().st_size for path in folder.glob("*.jsonl"))


def test_the_next_day_reads_the_day_whatever_was_before(tmp_path, clock):
    """Beside the day: the log since its snapshot, and the notes of the last fifty sessions."""
    cost, archive, sources = after(YOUNG, tmp_path / "young", clock)
    cost_later, archive_later, sources_later = after(OLD, tmp_path / "old", clock)
    print(
        f"\nafter {YOUNG} days: {cost:,} bytes read, of {sources:,}; "
        f"after {OLD}: {cost_later:,}, of {sources_later:,}"
    )
    assert sources_later > 2 * sources
    assert archive_later == pytest.approx(archive, rel=0.1)
    assert cost_later < 1.1 * cost
    assert cost_later < 0.2 * sources_later
