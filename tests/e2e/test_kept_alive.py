"""Real agents are kept alive: after any kill exactly one comes back, in the same session."""

import json
import shlex
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from e2e.kept import EVERY_SECONDS, Kept, at
from loopback import anthropic, openai
from loopback.place import Place
from loopback.script import Fail, Forever, Hang, Text, Usage

pytestmark = pytest.mark.timeout(300)

REFUSED = {"claude-code": anthropic.UNAUTHORIZED, "codex": openai.UNAUTHORIZED}
LIMITS = {"claude-code": anthropic.RATE_LIMITED, "codex": openai.RATE_LIMITED}
CLIS = ("claude-code", "codex")
QUIET_START_SECONDS = 0.5
_FIXTURES = {"claude-code": ("claude", "model"), "codex": ("codex", "openai_model")}


@pytest.fixture
def kept(request, place) -> Kept:
    sandbox, scripted = map(request.getfixturevalue, _FIXTURES[request.param])
    return Kept(request.param, sandbox, scripted, place)


both = pytest.mark.parametrize("kept", CLIS, indirect=True)
timed = pytest.mark.parametrize(
    "kept", [pytest.param("claude-code", marks=pytest.mark.bench), "codex"], indirect=True
)
"""Both CLIs; the first is a bench test, which asserts the time limits."""


@pytest.fixture
def hold_bar(request, kept):
    """Assert a time limit, in proportion to the start of a command, if this is a bench test."""

    def hold(seconds: float, most: float, interval: float = 0.0) -> None:
        bar = interval + most * slowness(kept)
        print(f"\n{request.node.name}: {seconds:.2f} s, bar {bar:.1f} s")
        if request.node.get_closest_marker("bench"):
            assert seconds <= bar

    return hold


def unit(kept: Kept) -> tuple[list[str], dict[str, str]]:
    """Return the command of the service and its environment."""
    lines = kept("service", "install", "--kind", "systemd", "--print").splitlines()
    said = [line.partition("=") for line in lines]
    (argv,) = [shlex.split(value) for key, _, value in said if key == "ExecStart"]
    words = [word for key, _, value in said if key == "Environment" for word in shlex.split(value)]
    return argv, dict(word.split("=", 1) for word in words)


def slowness(kept: Kept) -> float:
    """Return how much longer our program takes to start than on a quiet host; at least 1."""
    began = time.monotonic()
    kept("status")
    return max(1.0, (time.monotonic() - began) / QUIET_START_SECONDS)


def in_a_tool_call(kept: Kept) -> tuple[Hang, int]:
    """Return the process id and the next request of a background agent during its tool call."""
    resumed = Hang(Text("all done"))
    kept.model.play(kept.long_call(), resumed)
    kept("up")
    return resumed, kept.works()


def the_supervisor(kept: Kept) -> int:
    """Return its process id; a fresh fork has the same command line until it executes."""
    kept.place.wait_for(lambda: len(kept.supervisors()) == 1)
    (found,) = kept.supervisors()
    return found


def back_in_the_same_session(kept: Kept, resumed: Hang, killed: datetime, ended: str) -> float:
    """Check that exactly one came back and finishes; return the seconds until its start."""
    kept.asked(resumed)
    kept.is_alone()
    resumed.release.set()
    kept.is_over()
    first, again = kept.log("launch.started")
    assert (first.get("resumes", False), again["resumes"]) == (False, True)
    assert len(set(kept.sessions())) == 1
    assert kept.exits() == [ended, "clean"]
    return (at(again) - killed).total_seconds()


@timed
def test_an_agent_that_is_killed_comes_back(kept, hold_bar):
    """Its supervisor starts it again within 5 s; the watchdog does nothing."""
    daemon = kept.start("daemon")
    resumed, pid = in_a_tool_call(kept)
    supervisor = the_supervisor(kept)
    killed = kept.kill(pid)
    took = back_in_the_same_session(kept, resumed, killed, "crash")
    (ended, _) = kept.log("launch.ended")
    found = (at(ended) - killed).total_seconds()
    print(f"\n{kept.cli.name}, agent killed: found after {found:.2f} s, started after {took:.2f} s")
    hold_bar(found, 5)
    assert supervisor not in kept.supervisors()
    assert "✓" not in daemon.out, "it has started nothing"


@timed
@pytest.mark.parametrize("victims", ["supervisor", "both"])
def test_a_supervisor_that_is_killed_comes_back(kept, victims, hold_bar):
    """The daemon starts another one within its interval and 2 s, also if its agent is killed."""
    daemon = kept.start("daemon")
    resumed, pid = in_a_tool_call(kept)
    supervisor = the_supervisor(kept)
    killed = kept.kill(supervisor, *([pid] if victims == "both" else []))
    took = back_in_the_same_session(kept, resumed, killed, "lost")
    hold_bar(took, 2, interval=EVERY_SECONDS)
    assert "started: its supervisor is gone" in daemon.out
    assert len(kept.daemons()) == 1


@timed
@pytest.mark.parametrize("how", ["killed", "rebooted"])
def test_everything_that_is_dead_comes_back_with_the_service(
    kept, how, network, tmp_path, hold_bar
):
    """After a kill of every process, even the daemon, or a reboot, the service restarts it."""
    argv, environment = unit(kept)
    kept.start_as(argv, environment)
    resumed, _ = in_a_tool_call(kept)
    assert len(kept.daemons()) == 1
    if how == "killed":
        kept.kill(*kept.place.living())
        # A process that a CLI started just before may take a moment to exit.
        kept.place.wait_for(lambda: kept.place.living() == {})
        hold_bar(came_back(kept, resumed, argv, environment), 5)
        return
    kept.place.close()
    with Place(network, tmp_path / "rebooted") as place:
        boot = tmp_path / "boot_id"
        boot.write_text("00000000-feed-4bed-8bad-000000000000\n")
        mount = ["mount", "--bind", str(boot), "/proc/sys/kernel/random/boot_id"]
        assert place.start(mount, env={"PATH": "/usr/bin:/bin:/sbin"}, cwd=tmp_path).wait() == 0
        kept.moved(place)
        hold_bar(came_back(kept, resumed, argv, environment), 5)
        boots = [one["boot"] for one in kept.log("launch.started")]
        assert boots[0] != boots[1] == "00000000"


def came_back(kept: Kept, resumed: Hang, argv: list[str], environment: dict[str, str]) -> float:
    """Start the service; return the seconds until the agent was started."""
    began = datetime.now(UTC)
    kept.start_as(argv, environment)
    took = back_in_the_same_session(kept, resumed, began, "lost")
    assert len(kept.daemons()) == 1
    return took


# Commands of the operator


@both
def test_a_stopped_agent_stays_stopped_and_restarts_on_command(kept):
    """It is stopped in a tool call, under a daemon and a watchdog; then restarted, and afresh."""
    daemon = kept.start("daemon")
    resumed, fresh = Hang(Text("never said")), Hang(Text("all done"))
    kept.model.play(kept.long_call(), resumed, fresh)
    kept("up")
    kept.works()
    kept("stop")
    kept.wait_for(lambda: not kept.supervisors())
    assert kept.rekindle.agents() == kept.rekindle.tools() == []
    assert kept.exits() == ["interrupted"]
    kept.wait_for(lambda: "stopped by the operator" in daemon.out)
    (looked,) = json.loads(kept("watch", "--once", "--json"))["agents"]
    assert looked == {
        "agent": "trades",
        "started": False,
        "words": "stopped by the operator",
        "failed": False,
    }
    assert len(kept.log("launch.started")) == 1
    kept("up")
    kept.asked(resumed)
    kept.is_alone()
    kept("restart", "--fresh")
    asked = kept.asked(fresh)
    kept.is_alone()
    fresh.release.set()
    kept.is_over()
    assert [one.get("resumes", False) for one in kept.log("launch.started")] == [False, True, False]
    first, again, last = kept.sessions()
    assert first == again != last
    assert kept.exits() == ["interrupted", "interrupted", "clean"]
    assert "process was interrupted" not in asked.text
    assert not (kept.folder / "run/.fresh").exists()


@both
def test_however_many_start_it_one_supervisor_does(kept):
    """Two watchdogs and a supervisor at the same moment start the agent once."""
    resumed, pid = in_a_tool_call(kept)
    killed = kept.kill(*kept.supervisors(), pid)
    racing = [
        kept.start("watch", "--once"),
        kept.start("run", "--for-watchdog"),
        kept.start("watch", "--once"),
    ]
    kept.asked(resumed)
    codes = [one.wait() for one in racing[::2]]
    assert codes == [0, 0]
    back_in_the_same_session(kept, resumed, killed, "lost")


# Waits


def replaced(kept: Kept, words: str) -> None:
    """Kill its supervisor; the watchdog starts another one, which reports the same."""
    supervisor = the_supervisor(kept)
    kept.kill(supervisor)
    said = kept.output().count(words)
    assert "started: its supervisor is gone" in kept("watch", "--once")
    kept.wait_for(lambda: kept.output().count(words) > said)
    assert len(kept.supervisors()) == 1


LIMIT_SECONDS = 12


def limited(kept: Kept) -> list[Fail]:
    """Return a usage limit that ends in some seconds, in the words of each API."""
    if kept.cli.name == "codex":
        config = kept.cli.folder / "config.toml"
        retries = "stream_max_retries = {}"
        assert retries.format(1) in config.read_text()
        config.write_text(config.read_text().replace(retries.format(1), retries.format(0)))
        words = f"Rate limit reached for this model. Please try again in {LIMIT_SECONDS}s."
        return [replace(openai.RATE_LIMITED, status=openai.IN_STREAM, message=words)]
    words = f"Claude usage limit reached|{int(time.time() + LIMIT_SECONDS)}"
    return 2 * [replace(anthropic.RATE_LIMITED, message=words)]  # it retries once by itself


@timed
def test_a_limit_is_waited_out_also_by_another_supervisor(kept, hold_bar):
    """If the supervisor is killed during the wait, its successor wakes at exactly the same time."""
    done = Hang(Text("all done"))
    kept.model.play(*limited(kept), done)
    kept("up")
    waits = kept.until("wait.started")
    resets_at = kept.log("launch.ended")[0]["resets_at"]
    assert datetime.fromisoformat(waits["until"]).timestamp() == resets_at
    replaced(kept, ": a usage limit")
    assert time.time() < resets_at, "too slow to have been killed during the wait"
    kept.asked(done)
    kept.is_alone()
    done.release.set()
    kept.is_over()
    again = kept.log("launch.started")[1]
    late = at(again).timestamp() - resets_at
    assert late >= 0
    hold_bar(late, 2)
    assert kept.exits() == ["limit", "clean"]
    assert len(set(kept.sessions())) == 1


@both
def test_a_run_without_waiting_ends_at_a_limit(kept):
    """It has its own exit code and a hint, and no watchdog starts it again."""
    kept.configure("runtime:\n  limits: {wait: false}\n")
    kept.model.play(Forever(LIMITS[kept.cli.name]))
    running = kept.start("run")
    assert running.wait() == 23
    assert "`rekindle run trades` continues" in running.err
    assert kept.exits() == ["limit"]
    assert kept.log("run.ended")[-1]["why"] == "limit"
    assert "its run is over" in kept("watch", "--once")
    assert len(kept.log("launch.started")) == 1


@both
def test_an_agent_that_is_not_logged_in_waits_for_a_person(kept):
    """In safe mode nothing is retried, by any supervisor; `restart` resumes."""
    kept.model.play(Forever(REFUSED[kept.cli.name]))
    kept("up")
    kept.until("safe_mode.entered")
    asked = len(kept.model.log.main)
    for _ in range(2):
        replaced(kept, "in safe mode")
    assert len(kept.log("launch.started")) == 1
    assert len(kept.model.log.main) == asked
    assert kept.exits() == ["auth"]
    assert "state:  needs you: " in kept("status")
    kept.model.play(Text("all done"))
    kept("restart")
    kept.is_over()
    assert kept.exits() == ["auth", "clean"]


@both
def test_what_was_spent_stays_spent(kept):
    """A cap on tokens is overshot by one turn at most, even after kills."""
    turn = Usage(input=400, output=10)
    cap = 1_000
    kept.configure(budget={"tokens": cap})
    call = kept.shell("true", usage=turn)
    third = Hang(call)
    kept.model.play(call, call, third, Forever(call))
    kept("up")
    kept.asked(third)
    two = 2 * turn.input
    kept.wait_for(lambda: any(one["tokens"] > two for one in kept.log("spend.recorded")))
    kept.kill(*kept.supervisors())
    assert "started" in kept("watch", "--once")
    kept.until("run.ended")
    kept.wait_for(lambda: not kept.supervisors())
    ended = kept.log("run.ended")[-1]
    assert ended["why"] == "budget"
    spent = json.loads(kept("status", "--json"))["agents"][0]["spend"]["tokens"]["value"]
    print(f"\n{kept.cli.name}: {spent} of {cap} tokens, {turn.input + turn.output} a turn")
    assert cap <= spent <= cap + turn.input + turn.output
    # Two requests, the killed one, the one that spent it; another was sent while it was ended.
    assert len(kept.model.log.main) <= 5
    assert "its run is over" in kept("watch", "--once")
    assert kept.rekindle.agents() == []


@both
def test_cron_restarts_a_cli_that_only_the_operator_s_path_has(kept):
    """The environment is bare, and the CLI is on the operator's PATH alone."""
    resumed, pid = in_a_tool_call(kept)
    killed = kept.kill(*kept.supervisors(), pid)
    bare = ["env", "-i", "HOME=/nonexistent", "PATH=/usr/bin:/bin"]
    assert not any(
        (Path(folder) / kept.cli.name.split("-")[0]).exists() for folder in ("/usr/bin", "/bin")
    )
    cron = kept.start_as(
        [*bare, sys.executable, "-I", "-m", "rekindle", "watch", "--once"],
        {"PATH": "/usr/bin:/bin"},
    )
    assert cron.wait() == 0, cron.err
    assert "started: its supervisor is gone" in cron.out
    back_in_the_same_session(kept, resumed, killed, "lost")
