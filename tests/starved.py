"""Tests on a virtual machine whose host gives the processor to others.

Such a host stops our processes at any moment, so that a ratio of two times says nothing about our
code, and a deadline may pass before a program has started. The kernel counts the time that was
taken as "steal".

- A failed measurement is repeated. If the host took too much again, it is skipped and says so.
- A few other failed tests are repeated once, alone, and must pass; more of them only if the host
  took too much. The summary names them, because a test that needs this has a race.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

STOLEN = 0.1
"""The share of the processor time wanted that the host may keep; idle time does not count."""
_BEFORE = pytest.StashKey[dict[Path, tuple[int, int]]]()
"""The processor times before the first test of each file, whose fixtures may do the work."""
_STARTED = pytest.StashKey[tuple[int, int]]()
_STOLEN_KEY = "rekindle/stolen"
"""Where pytest's cache has the share that the host took during the last run."""
REPEATED, REPEATED_STARVED = 5, 40
"""If more tests fail, the cause is neither chance nor the host."""


def read_processor_times(stat: Path = Path("/proc/stat")) -> tuple[int, int]:
    """Return the time that all programs got, and the time that the host took from them."""
    try:
        numbers = [int(word) for word in stat.read_text().splitlines()[0].split()[1:]]
    except (OSError, IndexError, ValueError):
        return 0, 0
    user, nice, system, _idle, _iowait, irq, softirq, steal, *_ = [*numbers, *[0] * 8]
    return user + nice + system + irq + softirq, steal


def stolen_share(before: tuple[int, int], after: tuple[int, int]) -> float:
    got, stolen = (end - start for start, end in zip(before, after, strict=True))
    return stolen / (got + stolen) if stolen > 0 else 0.0


def is_timing(item: pytest.Item) -> bool:
    is_invariant = item.get_closest_marker("invariant") and not item.get_closest_marker("timing")
    return item.get_closest_marker("bench") is not None and not is_invariant


def _find_cache(session: pytest.Session) -> pytest.Cache | None:
    """Return pytest's cache, or None if it is turned off."""
    return getattr(session.config, "cache", None)


def pytest_sessionstart(session: pytest.Session) -> None:
    session.stash[_STARTED] = read_processor_times()


def pytest_sessionfinish(session: pytest.Session) -> None:
    cache = _find_cache(session)
    if "PYTEST_XDIST_WORKER" not in os.environ and cache is not None:
        stolen = stolen_share(session.stash[_STARTED], read_processor_times())
        cache.set(_STOLEN_KEY, stolen)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Refuse to repeat many tests that are not measurements."""
    cache = _find_cache(session)
    if not os.environ.get("REKINDLE_REPEATS_FAILED") or cache is None:
        return
    stolen = cache.get(_STOLEN_KEY, 0.0)
    failed, most = len(session.items), REPEATED_STARVED if stolen > STOLEN else REPEATED
    told = f"{failed} tests failed, and the host took {stolen:.0%} of the processor time"
    if failed > most:
        pytest.exit(f"{told}: they are not repeated", returncode=1)
    names = "".join(f"\n  {item.nodeid}" for item in session.items)
    session.config.get_terminal_writer().line(f"{told}. They are repeated alone:{names}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    before = item.session.stash.setdefault(_BEFORE, {})
    before.setdefault(item.path, read_processor_times())
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[pytest.TestReport]:
    report = yield
    if report.when == "call" and report.failed and is_timing(item):
        stolen = stolen_share(item.session.stash[_BEFORE][item.path], read_processor_times())
        report.sections.append(("Host", f"took {stolen:.0%} of the processor time"))
        if stolen > STOLEN and os.environ.get("REKINDLE_MEASURES_AGAIN"):
            path, line, _ = item.location
            reason = f"the host took {stolen:.0%} of the processor time: no ratio can be measured"
            report.outcome, report.longrepr = "skipped", (path, line or 0, f"Skipped: {reason}")
    return report
