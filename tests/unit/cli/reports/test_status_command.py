"""`rekindle status` as text: obstacles of an agent, and its spending."""

import json
import os
import re
import shutil
import sys
from contextlib import nullcontext
from datetime import timedelta

import pytest

import worktrees
from desk import Desk
from rekindle import config
from rekindle.cli import main
from rekindle.cli.reports.status_details import FileRowReader
from rekindle.documents import events
from rekindle.policy.operator import questions
from rekindle.policy.projection.projection import Projection
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.policy.supervision import price_table
from rekindle.stores.files import FileStore
from rekindle.system import (
    clock,
    host,
)
from rekindle.system.processes import launch_processes
from rekindle.wiring.agent_workspaces import AgentWorkspace
from rekindle.wiring.open_store import open_store

MANIFEST = "version: 1\nagents:\n  trades:\n    harness: claude-code\n"
MOMENT = r"(\d{4}-\d{2}-\d{2} )?\d{2}:\d{2}"
CAPS = "    budget: {usd: 5, tokens: 2000000, hours: 8}\n"


@pytest.fixture
def status(tmp_path, monkeypatch, capfd):
    """Return the output of `status` after a launch that ended, and further events."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TZ", "UTC")
    store = FileStore(
        tmp_path, host=host.identify_host(), settings=Settings(), clock=clock.read_clock
    )

    def after(*more, ended="crash", supervised=False, caps="", **last):
        (tmp_path / "rekindle.yaml").write_text(MANIFEST + caps)
        now = clock.read_clock()
        happened = [
            events.DesiredSet(ts=now, desired="running"),
            events.RunStarted(ts=now - timedelta(hours=2)),
            events.CycleStarted(ts=now, cycle=1),
            events.LaunchStarted(
                ts=now, launch="l1", cycle=1, session="s", harness="claude-code", boot="b", uptime=1
            ),
        ]
        if ended:
            happened.append(
                events.LaunchEnded(
                    ts=now, launch="l1", cycle=1, session="s", exit=ended, **{"words": "", **last}
                )
            )
        with store.writer("trades") as writer:
            writer.append(*happened, *more)
        with store.supervising("trades") if supervised else nullcontext():
            assert main.run(["status"]) == 0
            out = capfd.readouterr().out
            assert main.run(["status", "--json"]) == 0
            [row] = json.loads(capfd.readouterr().out)["agents"]
        return {line.split(":")[0].strip(): line for line in out.splitlines()}, row

    return after


def test_safe_mode_says_why_and_what_continues(status):
    """It is the same with and without a supervisor."""
    safe = events.SafeModeEntered(ts=clock.read_clock(), why="auth", words="not logged in")
    lines, row = status(safe, ended="auth", supervised=True)
    assert lines["state"] == "  state:  needs you: not logged in"
    assert "→ rekindle restart trades" in lines
    assert lines["cycle"] == "  cycle:  1, 0 done"
    assert (row["state"], row["reason"]) == ("needs you", "not logged in")
    assert row["command"] == "rekindle restart trades"


def test_safe_mode_after_crashes_shows_how_many_and_the_last_cause(status):
    now = clock.read_clock()
    again = {"launch": "l2", "cycle": 1, "session": "s"}
    more = (
        events.LaunchStarted(ts=now, harness="claude-code", boot="b", uptime=1, **again),
        events.LaunchEnded(ts=now, exit="hang", words="no output", **again),
        events.SafeModeEntered(ts=now, why="crash", words="failed with exit code 3: boom"),
    )
    lines, _ = status(*more)
    assert lines["state"] == (
        "  state:  needs you: crashed 2 times in cycle 1, the last time:"
        " failed with exit code 3: boom"
    )


def test_safe_mode_after_one_crash_says_so(status):
    lines, _ = status(events.SafeModeEntered(ts=clock.read_clock(), why="crash"))
    assert lines["state"] == "  state:  needs you: crashed once in cycle 1"


def test_safe_mode_without_a_supervisor_is_shown(status):
    """The supervisor was killed, and the agent stays in safe mode."""
    lines, _ = status(events.SafeModeEntered(ts=clock.read_clock(), why="billing"), ended="billing")
    assert lines["state"] == "  state:  needs you: payment is required"
    assert lines["cycle"] == "  cycle:  1, 0 done; no supervisor is running"


def test_a_restart_ends_safe_mode(status):
    """The operator's command comes after it."""
    now = clock.read_clock()
    safe = events.SafeModeEntered(ts=now, why="auth")
    lines, row = status(safe, events.RestartRequested(ts=now), ended="auth", supervised=True)
    assert (row["state"], row["command"]) == ("running", "")
    assert "1, 0 done; its process started" in lines["cycle"]


def test_a_wait_says_until_when_and_for_what(status):
    """The time is in the person's own zone."""
    until = clock.read_clock() + timedelta(hours=3)
    wait = events.WaitStarted(ts=clock.read_clock(), why="limit", until=until)
    lines, row = status(wait, ended="limit", supervised=True)
    assert re.fullmatch(rf"  state:  waiting: until {MOMENT}: a usage limit", lines["state"])
    assert f"{until.astimezone():%H:%M}" in lines["state"]
    assert row["run"]["waits"]["kind"] == "limit"


def test_a_wait_for_nothing_in_particular_says_only_until_when(status):
    until = clock.read_clock() + timedelta(hours=3)
    lines, _ = status(
        events.WaitStarted(ts=clock.read_clock(), why="", until=until), supervised=True
    )
    assert re.fullmatch(rf"  state:  waiting: until {MOMENT}", lines["state"])


def test_a_wait_after_a_crash_tells_the_exit_and_the_retry(status):
    until = clock.read_clock() + timedelta(minutes=3)
    wait = events.WaitStarted(ts=clock.read_clock(), why="crash", until=until)
    lines, _ = status(wait, ended="crash", words="exit code 3", supervised=True)
    assert lines["state"].endswith(", then retried: it crashed, exit code 3")


def test_a_process_that_gave_no_sign_yet_is_active_since_it_began(status):
    lines, row = status(ended="", supervised=True)
    assert "never" not in lines["active"]
    assert row["last_active"] == row["run"]["began"]


@pytest.mark.parametrize(
    ("why", "outcome", "command"),
    [
        ("done", "done", ""),
        ("cycles", "out-of-cycles", "rekindle run trades"),
        ("budget", "out-of-budget", "rekindle restart trades && rekindle run trades"),
    ],
)
def test_a_stop_after_the_end_of_a_run_keeps_its_outcome(status, capfd, why, outcome, command):
    ended = events.CycleEnded(ts=clock.read_clock(), cycle=1)
    status(
        ended,
        events.RunEnded(ts=clock.read_clock(), why=why, words="as it ended"),
        ended="clean",
    )
    assert main.run(["stop", "trades"]) == 0
    capfd.readouterr()
    assert main.run(["status", "--json"]) == 0
    [row] = json.loads(capfd.readouterr().out)["agents"]
    assert (row["outcome"], row["reason"], row["command"]) == (outcome, "as it ended", command)


def test_unpushed_work_on_one_host_is_reported(status, capfd):
    """The report disappears after a push."""
    now = clock.read_clock()
    moved = events.OwnerChanged(ts=now, host="a", previous="")
    kept = events.WorkspacePushFailed(ts=now, words="git push: no\nroom")
    lines, _ = status(moved, kept)
    said = "! its work could not be pushed, and exists only on host a"
    assert lines[said] == f"  {said}: git push: no room"
    assert main.run(["status", "--json"]) == 0
    [row] = json.loads(capfd.readouterr().out)["agents"]
    assert (row["unpushed"]["host"], row["unpushed"]["reason"]) == ("a", "git push: no\nroom")
    pushed = events.WorkspacePushed(ts=now, revision="1" * 40, head="", branch="main")
    assert said not in status(pushed)[0]


def test_a_wait_without_a_supervisor_is_not_shown(status):
    """Without a supervisor nothing will happen at that time by itself."""
    until = clock.read_clock() + timedelta(hours=3)
    wait = events.WaitStarted(ts=clock.read_clock(), why="limit", until=until)
    lines, _ = status(wait, ended="limit")
    assert lines["state"] == "  state:  stopped: in cycle 1: a usage limit"
    assert "→ rekindle run trades" in lines


def test_stopped_by_the_operator(status):
    """The operator's command counts, not the exit of the last process."""
    stopped = events.DesiredSet(ts=clock.read_clock() + timedelta(seconds=1), desired="stopped")
    lines, row = status(stopped, ended="interrupted")
    assert lines["state"] == "  state:  stopped: by you"
    assert (row["command"], row["run"]["desired"]) == ("rekindle run trades", "stopped")


def test_a_supervisor_that_is_gone(status):
    """Its launch has no end yet."""
    lines, _ = status(ended="")
    assert lines["state"] == "  state:  stopped: in cycle 1: its supervisor is gone"


@pytest.mark.parametrize(
    ("why", "state", "outcome", "words", "command"),
    [
        ("done", "done", "done", "done and verified", ""),
        ("claimed", "done", "done-unverified", "done but unverified", ""),
        ("waiting", "needs you", "needs-person", "needs you", 'rekindle answer trades "TEXT"'),
        ("stalled", "needs you", "stalled", "stalled", "rekindle run trades"),
        ("cycles", "stopped", "out-of-cycles", "out of cycles", "rekindle run trades"),
        (
            "budget",
            "stopped",
            "out-of-budget",
            "out of budget",
            "rekindle restart trades && rekindle run trades",
        ),
        ("limit", "waiting", "waiting", "waiting", "rekindle run trades"),
    ],
)
def test_a_run_that_is_over_shows_its_outcome_and_the_next_command(  # noqa: PLR0917 - a row
    status, why, state, outcome, words, command
):
    """Each outcome has its own words, and its own name for programs."""
    over = (
        events.CycleEnded(ts=clock.read_clock(), cycle=1),
        events.RunEnded(ts=clock.read_clock(), why=why, words="Ann has to say"),
    )
    lines, row = status(*over, ended="clean")
    assert lines["state"] == f"  state:  {words}: Ann has to say"
    assert ("next" in lines) is (state != "done")
    assert (row["state"], row["outcome"], row["command"]) == (state, outcome, command)
    assert row["label"] == words
    assert "words" not in row
    assert row["run"]["ended"] == {"kind": why, "reason": "Ann has to say"}


@pytest.mark.parametrize(("outcome", "is_advised"), [("cycles", True), ("claimed", False)])
def test_the_size_of_steps_is_not_advised_on_once_the_work_is_done(status, outcome, is_advised):
    now = clock.read_clock()
    cycles = [events.CycleEnded(ts=now, cycle=number, seconds=1.0) for number in (1, 2, 3)]
    lines, _ = status(*cycles, events.RunEnded(ts=now, why=outcome), ended="clean")
    assert ("! its cycles take less than a minute" in lines) is is_advised


def test_spending_is_shown_beside_the_budget(status):
    """The status shows money, tokens, hours, and how much of the spending is unknown."""
    told = {"tokens": 50_000, "known": "reported"}
    lines, row = status(caps=CAPS, run_usd=1.234, run_tokens=1_234_567, unpriced=2, **told)
    assert lines["spent"] == (
        "  spent:  ~$1.23 of $5, 1,234,567 of 2,000,000 tokens, 2.0 of 8 hours,"
        f" and 2 launches of unknown cost (from tokens, with list prices of {price_table.DATE})"
    )
    assert row["spend"] == {
        "usd": {"value": 1.234, "source": "estimated"},
        "tokens": {"value": 1_234_567, "source": "reported"},
        "unpriced": 2,
        "usd_cap": 5.0,
        "tokens_cap": 2_000_000,
    }


def test_money_that_the_cli_reported_is_not_marked_as_estimated(status):
    lines, row = status(caps=CAPS, usd=1.5, run_usd=1.5, run_tokens=10)
    assert lines["spent"].startswith("  spent:  $1.50 of $5, ")
    assert "list prices" not in lines["spent"]
    assert row["spend"]["usd"] == {"value": 1.5, "source": "reported"}


def test_money_that_is_unknown_is_not_shown_as_zero(status):
    lines, row = status(caps=CAPS, run_tokens=10, unpriced=1)
    assert lines["spent"].startswith("  spent:  unknown cost of $5, ~10 of ")
    assert row["spend"]["usd"] == {"value": None, "source": "unknown"}


def test_how_full_the_window_is_and_how_that_is_known(status):
    lines, row = status(tokens=50_000, window=200_000, known="reported")
    assert lines["window"].startswith("  window: 25 % of 200,000 tokens full (reported), ")
    assert row["window"]["percent"] == {"value": 25.0, "source": "reported"}


def test_a_window_of_unknown_size_has_no_percentage(status):
    lines, row = status(tokens=50_000, known="unknown")
    assert lines["window"] == "  window: 50,000 tokens used; the size of the window is unknown"
    assert row["window"]["percent"] == {"value": None, "source": "unknown"}


def test_tokens_of_a_program_that_reports_none_are_estimated(status):
    _, row = status(tokens=50, known="estimated", run_tokens=50)
    assert row["spend"]["tokens"] == row["window"]["tokens"]
    assert row["spend"]["tokens"] == {"value": 50, "source": "estimated"}


def test_without_a_budget_the_spending_is_shown(status):
    """The line appears once there is spending."""
    assert status(run_tokens=5)[0]["spent"] == "  spent:  ~5 tokens"


def test_without_spending_nothing_is_shown(status):
    """There is no line without a budget and without tokens."""
    assert "spent" not in status()[0]


def test_the_state_of_a_copied_folder_is_shown_once(status, tmp_path, monkeypatch, capfd):
    """It is beside the state, with the command that helps, and not repeated in a warning."""
    status()
    copy = tmp_path.with_name("copy")
    shutil.copytree(tmp_path, copy)
    monkeypatch.chdir(copy)
    assert main.run(["status"]) == 0
    out = capfd.readouterr().out
    assert out.count("it was copied, cloned or moved here") == 1
    assert "          → rekindle doctor" in out.splitlines()


def test_a_window_whose_size_is_estimated_is_shown(status):
    lines, row = status(tokens=50_000, window=200_000, known="estimated")
    assert lines["window"].startswith("  window: 25 % of 200,000 tokens full (estimated), ")
    assert row["window"]["tokens"] == {"value": 50_000, "source": "reported"}


@pytest.mark.parametrize(
    ("needed", "reason", "command"),
    [
        (
            events.SafeModeEntered(ts=clock.read_clock(), why="auth", words="not logged in"),
            "by you, in safe mode: not logged in",
            "rekindle restart trades && rekindle run trades",
        ),
        (
            events.RunEnded(ts=clock.read_clock(), why="waiting", words="Ann has to say"),
            "by you",
            "rekindle run trades",
        ),
    ],
)
def test_a_stop_settles_the_open_question(status, capfd, needed, reason, command):
    """No person is asked to answer it any more; the command says how the agent continues."""
    now = clock.read_clock()
    asking = questions.QuestionTerms(now, 3600.0)
    asked = questions.add_questions(Projection("trades"), [needed], asking)
    over = (events.CycleEnded(ts=now, cycle=1), *asked)
    _, row = status(*over, ended="clean")
    assert (row["state"], row["command"].startswith("rekindle answer trades-1")) == (
        "needs you",
        True,
    )
    assert main.run(["stop", "trades"]) == 0
    capfd.readouterr()
    assert main.run(["status", "--json"]) == 0
    [row] = json.loads(capfd.readouterr().out)["agents"]
    assert (row["state"], row["reason"], row["command"]) == ("stopped", reason, command)
    assert main.run(["questions"]) == 0
    assert capfd.readouterr().out == "No open questions.\n"


def test_a_session_started_by_hand_is_shown_as_running(tmp_path, monkeypatch, capfd):
    """Its process is checked, as on the morning page."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rekindle.yaml").write_text(MANIFEST)
    store = FileStore(
        tmp_path, host=host.identify_host(), settings=Settings(), clock=clock.read_clock
    )
    with store.writer("trades") as writer:
        writer.append(
            events.SessionStarted(
                ts=clock.read_clock(),
                session="s",
                harness="claude-code",
                process=launch_processes.identify(os.getpid()),
            )
        )
    assert main.run(["status", "--json"]) == 0
    [row] = json.loads(capfd.readouterr().out)["agents"]
    assert (row["state"], row["reason"]) == ("running", "your own session")


def eleven(folder):
    names = [f"agent-{number}" for number in range(10)]
    entries = "".join(f"  {name}:\n    harness: claude-code\n" for name in names)
    (folder / "rekindle.yaml").write_text(MANIFEST + entries)
    return ["trades", *names]


def test_eleven_agents_have_one_line_each_and_those_that_need_a_person_come_first(
    status, tmp_path, monkeypatch, capfd
):
    """The lines fit into the columns that the environment names."""
    safe = events.SafeModeEntered(ts=clock.read_clock(), why="auth", words="not logged in")
    status(safe, ended="auth")
    names = eleven(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    assert main.run(["status"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) <= 14
    assert max(map(len, lines)) <= 100
    assert lines[0] == "11 agents: 1 needs you, 10 stopped"
    assert lines[2].split()[:6] == ["trades", "needs", "you", "not", "logged", "in"]
    assert [line.split()[0] for line in lines[2:13]] == names
    assert lines[-1] == "→ rekindle restart trades && rekindle run trades"


def test_one_agents_details_have_the_cycles_that_are_left(status):
    now = clock.read_clock()
    run = events.RunStarted(ts=now)
    said = events.DesiredSet(ts=now, desired="running", cycles=3)
    lines, _ = status(said, run, ended="clean")
    assert lines["cycle"] == "  cycle:  1, 0 of 3 done, 3 left"


def test_a_watched_status_is_repainted_when_an_agent_changes_and_ends_with_ctrl_c(
    status, tmp_path, monkeypatch
):
    """In a terminal the same lines of the screen have the new state."""
    status()
    eleven(tmp_path)
    argv = [sys.executable, "-m", "rekindle", "status", "--watch"]
    env = {**os.environ, "LINES": "40", "COLUMNS": "100"}
    with Desk(argv, env=env, cwd=tmp_path, size=(100, 40)) as desk:
        desk.wait_for("11 agents: 11 stopped")
        store = FileStore(
            tmp_path, host=host.identify_host(), settings=Settings(), clock=clock.read_clock
        )
        with store.writer("trades") as writer:
            writer.append(
                events.SafeModeEntered(ts=clock.read_clock(), why="auth", words="not logged in")
            )
        desk.wait_for("11 agents: 1 needs you, 10 stopped")
        assert desk.shown.count(b"\x1b[2J") == 1
        desk.type("\x03")
        assert desk.hear()["code"] == 130


def test_watching_reads_only_what_changed(status, tmp_path, monkeypatch):
    """Agents that did not change cause no read of a log."""
    status()
    project = config.load_project(tmp_path)
    store = open_store(project)
    files = FileRowReader(project, store)
    (before,) = files.read(["trades"])
    monkeypatch.setattr(store, "read", lambda _agent: pytest.fail("the log was read again"))
    assert files.read(["trades"]) == [before]


def test_a_watched_status_does_not_print_json(status, capfd):
    status()
    assert main.run(["status", "--watch", "--json"]) == 2
    assert "cannot be used together" in capfd.readouterr().err


@pytest.mark.parametrize("kind", ["clone", "worktree"])
def test_the_folder_and_the_branch_of_an_agent_with_its_own_checkout_are_shown(
    status, tmp_path, kind
):
    worktrees.git(tmp_path, "init", "-q")
    worktrees.git(tmp_path, "commit", "-q", "--allow-empty", "-m", "one")
    workspace = AgentWorkspace(tmp_path, tmp_path, "trades", kind)
    lines, row = status(caps=f"    workspace: {kind}\n")
    assert lines["folder"] == f"  folder: {workspace.folder} (not created yet)"
    workspace.open((), lambda: None, updates=True)
    lines, row = status(caps=f"    workspace: {kind}\n")
    assert lines["folder"] == f"  folder: {workspace.folder}"
    assert lines["branch"] == "  branch: rekindle/trades/work"
    assert row["workspace"] == {
        "kind": kind,
        "folder": str(workspace.folder),
        "branch": "rekindle/trades/work",
        "is_complete": True,
    }


@pytest.mark.parametrize("caps", ["", "    workspace: here\n"])
def test_the_folder_of_an_agent_in_the_user_s_checkout_is_not_shown(status, caps):
    lines, row = status(caps=caps)
    assert "folder" not in lines
    assert row["workspace"] is None


def test_refused_hosts_are_shown_with_the_line_that_allows_them(status):
    now = clock.read_clock()
    hosts = ("files.example.org:443", "db.local:5432", "files.example.org:443")
    refused = [events.HostRefused(ts=now, launch="l1", host=host) for host in hosts]
    lines, row = status(*refused)
    allowed = "sandbox: {network: [files.example.org]}"
    assert lines["refused"] == (
        f"  refused: files.example.org:443, by the sandbox; to allow it: {allowed}"
    )
    assert row["refused_hosts"] == [
        {"host": "db.local:5432", "allow": "sandbox: {network: ['db.local:5432']}"},
        {"host": "files.example.org:443", "allow": allowed},
    ]


def test_hosts_that_an_earlier_run_was_refused_are_not_shown(status):
    now = clock.read_clock()
    refused = events.HostRefused(ts=now, launch="l1", host="files.example.org:443")
    lines, row = status(refused, events.RunStarted(ts=now))
    assert "refused" not in lines
    assert row["refused_hosts"] == []
