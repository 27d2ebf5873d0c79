"""A process is matched to a session only if that is certain."""

from rekindle.policy.keeping.session_match import CliProcess, SessionProcesses, match_processes

TUI = CliProcess(pid=3, born=30, started=100.0)
SERVER = CliProcess(pid=9, born=90, started=50.0, sessions=("a",), is_server=True)


def process(pid, *sessions, **more):
    return CliProcess(pid=pid, born=pid * 10, sessions=sessions, started=100.0, **more)


def test_a_process_that_names_its_session_is_its_own():
    matched, doubtful = match_processes(
        ["a", "b"], [process(3, "b", status="idle"), process(4, "elsewhere")], {}
    )
    assert matched == {"b": SessionProcesses(own=((3, 30),), status="idle")}
    assert doubtful == ()


def test_the_only_process_runs_the_only_session_that_changed_since_its_start():
    matched, doubtful = match_processes(["a", "b"], [TUI], {"a": 99.0, "b": 101.0})
    assert matched == {"b": SessionProcesses(own=((3, 30),))}
    assert doubtful == ()


def test_a_process_and_its_child_are_one():
    """Gemini CLI starts itself again, and its parent ignores signals."""
    child = CliProcess(pid=4, born=40, parent=3, started=101.0)
    matched, doubtful = match_processes(["a"], [TUI, child], {"a": 102.0})
    assert matched["a"].own == ((3, 30), (4, 40))
    assert doubtful == ()


def test_two_possible_sessions_or_processes_are_doubtful():
    changed = {"a": 101.0, "b": 101.0}
    assert match_processes(["a", "b"], [TUI], changed) == ({}, ((3, 30),))
    others = [TUI, process(5)]
    assert match_processes(["a"], others, changed) == ({}, ((3, 30), (5, 50)))
    assert match_processes(["a"], [TUI], {"a": 99.0}) == ({}, ((3, 30),))


def test_a_server_runs_the_session_of_the_only_terminal():
    matched, doubtful = match_processes(["a", "b"], [TUI, SERVER], {"a": 1.0, "b": 200.0})
    assert matched == {"a": SessionProcesses(own=((3, 30),), server=(9, 90))}
    assert doubtful == ()


def test_a_server_tells_its_other_sessions():
    shared = process(9, "a", "b", "elsewhere", is_server=True)
    matched, doubtful = match_processes(["a", "b"], [TUI, shared], {})
    assert matched["a"].others == ("b", "elsewhere")
    assert matched["a"].own == ()
    assert doubtful == ((3, 30),)
