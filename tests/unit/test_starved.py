"""A timing that failed on a starved machine is skipped, and nothing else is."""

import types

import pytest

import starved

STAT = "cpu  100 10 50 9000 7 3 2 {steal} 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n"
IS_AGAIN = "REKINDLE_MEASURES_AGAIN"


def make_item(*names):
    marks = {name: object() for name in names}
    return types.SimpleNamespace(
        session=types.SimpleNamespace(stash={starved._BEFORE: {"test_it.py": (0, 0)}}),
        path="test_it.py",
        location=("tests/bench/test_it.py", 7, "test_it"),
        get_closest_marker=marks.get,
    )


def make_report(item, outcome="failed"):
    report = types.SimpleNamespace(
        when="call", failed=outcome == "failed", outcome=outcome, longrepr="", sections=[]
    )
    hook = starved.pytest_runtest_makereport(item)
    next(hook)
    with pytest.raises(StopIteration):
        hook.send(report)
    return report


def test_reads_the_time_that_the_host_took(tmp_path):
    stat = tmp_path / "stat"
    stat.write_text(STAT.format(steal=0))
    before = starved.read_processor_times(stat)
    stat.write_text(STAT.format(steal=55))
    after = starved.read_processor_times(stat)
    assert (before, after) == ((165, 0), (165, 55))
    assert starved.stolen_share((0, 0), after) == 0.25
    assert starved.stolen_share(before, before) == 0


def test_a_system_without_such_a_file_takes_nothing(tmp_path):
    assert starved.read_processor_times(tmp_path / "missing") == (0, 0)


@pytest.mark.parametrize(
    ("marks", "is_again", "stolen", "outcome"),
    [
        (["bench"], True, 60, "skipped"),
        (["bench"], True, 5, "failed"),
        (["bench"], False, 60, "failed"),
        ([], True, 60, "failed"),
        (["bench", "invariant"], True, 60, "failed"),
        (["bench", "invariant", "timing"], True, 60, "skipped"),
    ],
)
def test_only_a_repeated_timing_is_skipped(monkeypatch, marks, is_again, stolen, outcome):
    monkeypatch.setattr(starved, "read_processor_times", lambda: (100 - stolen, stolen))
    monkeypatch.delenv(IS_AGAIN, raising=False)
    if is_again:
        monkeypatch.setenv(IS_AGAIN, "1")
    assert make_report(make_item(*marks)).outcome == outcome


def test_the_reason_names_the_share(monkeypatch):
    monkeypatch.setattr(starved, "read_processor_times", lambda: (40, 60))
    monkeypatch.setenv(IS_AGAIN, "1")
    assert "the host took 60% of the processor time" in make_report(make_item("bench")).longrepr[2]


def test_a_timing_that_passes_passes(monkeypatch):
    monkeypatch.setattr(starved, "read_processor_times", lambda: (0, 100))
    monkeypatch.setenv(IS_AGAIN, "1")
    assert make_report(make_item("bench"), "passed").outcome == "passed"


class Cache(dict):
    def set(self, key, value):
        self[key] = value


def make_session(cache, items=3):
    lines = []
    writer = types.SimpleNamespace(line=lines.append)
    config = types.SimpleNamespace(cache=cache, get_terminal_writer=lambda: writer)
    tests = [types.SimpleNamespace(nodeid=f"test_it.py::test_{number}") for number in range(items)]
    return types.SimpleNamespace(config=config, items=tests, stash={}, lines=lines)


def run_session(monkeypatch, stolen):
    """Return the cache after a run during which the host took a share of the processor time."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    session = make_session(Cache())
    monkeypatch.setattr(starved, "read_processor_times", lambda: (0, 0))
    starved.pytest_sessionstart(session)
    monkeypatch.setattr(starved, "read_processor_times", lambda: (100 - stolen, stolen))
    starved.pytest_sessionfinish(session)
    return session.config.cache


@pytest.mark.parametrize(
    ("stolen", "most"), [(30, starved.REPEATED_STARVED), (5, starved.REPEATED)]
)
def test_few_failed_tests_are_repeated_and_named(monkeypatch, stolen, most):
    monkeypatch.setenv("REKINDLE_REPEATS_FAILED", "1")
    cache = run_session(monkeypatch, stolen)
    session = make_session(cache, most)
    starved.pytest_collection_finish(session)
    assert f"the host took {stolen}%" in session.lines[0]
    assert f"test_it.py::test_{most - 1}" in session.lines[0]
    with pytest.raises(pytest.exit.Exception, match="not repeated"):
        starved.pytest_collection_finish(make_session(cache, most + 1))


def test_a_usual_run_is_not_refused(monkeypatch):
    monkeypatch.delenv("REKINDLE_REPEATS_FAILED", raising=False)
    session = make_session(Cache())
    starved.pytest_collection_finish(session)
    assert session.lines == []
