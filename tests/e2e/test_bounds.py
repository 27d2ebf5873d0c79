"""Bounds on work without progress, with real programs and a real git."""

import json
import shutil
import signal
import subprocess
import sys
from datetime import datetime

import pytest

from e2e.sandbox import TASK, Rekindle
from e2e.test_command import Program

pytestmark = pytest.mark.timeout(300)

APPENDS = "open('notes.txt', 'a').write('again\\n')"
CHAPTER = "import glob; open(f'chapter-{len(glob.glob(\"chapter-*\")) + 1}.md', 'w').write('text')"
REFUSED = "import sys; sys.exit('Error: connect ECONNREFUSED 127.0.0.1:5432')"
"""The output of a program whose database is down."""


@pytest.fixture
def rekindle(place, tmp_path):
    """Create a project in git, with a program as its agent and a bound of five launches."""
    found = Rekindle(Program(tmp_path / "command"), place)
    (found.project / "PROMPT.md").write_text(TASK)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for arguments in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *arguments], cwd=found.project, check=True)
    return found


LASTS_SECONDS = 0.5
LASTS = f"""\
import time
begun = time.monotonic()
while time.monotonic() - begun < {LASTS_SECONDS}:
    time.sleep(0.01)
raise SystemExit(3)
"""
"""A program that crashes just after it counts as healthy."""
WAITS = """\
import os, signal
open("pid.tmp", "w").write(str(os.getpid()))
os.rename("pid.tmp", "pid")
signal.pause()
"""
"""A program that writes its process id, then waits for a signal."""


def has_agent(rekindle, code, more="", restart="cooldown: 0s", launches=5):
    (rekindle.project / "agent.py").write_text(code)
    command = f"[{sys.executable}, agent.py]"
    entry = f"    harness: command\n    command: {command}\n{more}"
    bounds = f"runtime:\n  progress: {{max_launches: {launches}}}\n  restart: {{{restart}}}\n"
    bounds += "  stall: {pause: false}\n"
    manifest = f"version: 1\nagents:\n  trades:\n{entry}{bounds}"
    (rekindle.project / "rekindle.yaml").write_text(manifest)


def ended(rekindle, *options, code=0):
    run = rekindle.start("run", *options)
    assert run.wait() == code, run.err
    return run


@pytest.mark.parametrize("has_git", [True, False], ids=["git", "no git"])
def test_endless_cycles_that_only_append_to_a_file_are_paused(rekindle, has_git):
    """Without a bound this made 170 cycles in 25 seconds."""
    if not has_git:
        shutil.rmtree(rekindle.project / ".git")
    has_agent(rekindle, APPENDS, more="    cycles: 0\n")
    run = ended(rekindle, "--once", code=21)
    assert "5 launches in a row without progress" in run.err
    launches = rekindle.events("launch.ended")
    assert {one["exit"] for one in launches} == {"clean"}
    assert 5 <= len(launches) <= 8
    assert launches[-1]["signs"]["artefacts"] == ["notes.txt"]
    words = rekindle.events("cycle.ended")[-1]["words"]
    assert "it changed only files that every cycle changes, such as notes.txt" in words


@pytest.mark.parametrize("has_git", [True, False], ids=["git", "no git"])
def test_a_new_numbered_file_in_every_cycle_is_progress(rekindle, has_git):
    if not has_git:
        shutil.rmtree(rekindle.project / ".git")
    has_agent(rekindle, CHAPTER, more="    cycles: 7\n")
    ended(rekindle, "--once", code=24)
    assert (rekindle.project / "chapter-7.md").exists()
    verdicts = [one.get("verdict", "") for one in rekindle.events("cycle.ended")]
    assert verdicts == ["progress"] * 7


def test_a_service_of_this_host_that_is_down_is_a_crash(rekindle):
    """A refused connection on this host is not a network outage, so retries are bounded."""
    has_agent(rekindle, REFUSED)
    rekindle("run", "--once", code=21)
    assert {one["exit"] for one in rekindle.events("launch.ended")} == {"crash"}
    assert len(rekindle.events("launch.ended")) == 5


SPENT = "Your fortnightly allotment of thoughts is spent."
RECEIVER = """\
import http.server, os

class Received(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with open("notified", "ab") as file:
            file.write(body)
        self.send_response(200)
        self.end_headers()

server = http.server.HTTPServer(("127.0.0.1", 0), Received)
with open("port.tmp", "w") as file:
    file.write(str(server.server_port))
os.rename("port.tmp", "port")
server.serve_forever()
"""
"""A service that keeps the notifications it receives."""


def test_an_unknown_limit_sentence_is_probed_and_notified(rekindle, tmp_path):
    """No rule knows the sentence: the night must not end in safe mode after five crashes."""
    receiver = [sys.executable, "-c", RECEIVER]
    listening = rekindle.place.start(receiver, env={"PATH": "/usr/bin:/bin"}, cwd=tmp_path)
    rekindle.place.wait_for((tmp_path / "port").exists)
    has_agent(rekindle, f"import sys; sys.exit({SPENT!r})", launches=40)
    with (rekindle.project / "rekindle.yaml").open("a") as manifest:
        manifest.write(f"notify: ['json://127.0.0.1:{(tmp_path / 'port').read_text()}/']\n")
    run = rekindle.start("run")

    def find_probe():
        waits = rekindle.events("wait.started")
        return next((one for one in waits if find_seconds(one) > 10 * 60), None)

    probe = rekindle.place.wait_for(find_probe)
    assert find_seconds(probe) <= 60 * 60
    launches = rekindle.events("launch.ended")
    assert [(one["exit"], one["code"]) for one in launches] == [("crash", 1)] * 5
    rekindle.place.wait_for((tmp_path / "notified").exists)
    assert SPENT in json.dumps(json.loads((tmp_path / "notified").read_text()))
    rekindle("stop")
    assert run.wait() == 130, run.err
    assert rekindle.events("safe_mode.entered") == []
    assert len(rekindle.events("launch.started")) == 5
    rekindle.place.signal(listening.pid, signal.SIGTERM)
    listening.wait()


def find_seconds(wait):
    begun, until = (datetime.fromisoformat(wait[key]) for key in ("ts", "until"))
    return (until - begun).total_seconds()


def test_an_agent_that_crashes_whenever_it_counts_as_healthy_is_paused(rekindle):
    """Each such crash counts as the first one, so that `max_crashes` never ends them."""
    healthy = f"cooldown: 0s, max_crashes: 2, healthy_after: {LASTS_SECONDS}s"
    has_agent(rekindle, LASTS, restart=healthy)
    run = ended(rekindle, "--once", code=21)
    launches = rekindle.events("launch.ended")
    assert [(one["exit"], one["code"]) for one in launches] == [("crash", 3)] * 5
    assert min(one["seconds"] for one in launches) >= LASTS_SECONDS
    assert "5 launches in a row without progress" in run.err
    [paused] = rekindle.events("safe_mode.entered")
    assert paused["why"] == "no-progress"


def test_an_agent_that_crashes_before_it_counts_as_healthy_is_ended_by_max_crashes(rekindle):
    has_agent(rekindle, LASTS, restart="cooldown: 0s, max_crashes: 2, healthy_after: 600s")
    ended(rekindle, "--once", code=22)
    assert len(rekindle.events("launch.ended")) == 2
    [paused] = rekindle.events("safe_mode.entered")
    assert paused["why"] == "crash"


def test_an_agent_that_is_sent_sigterm_every_time_is_paused(rekindle):
    """A tool such as earlyoom sends it to the largest process of a host."""
    has_agent(rekindle, WAITS)
    run = rekindle.start("run")
    pids, file = [], rekindle.project / "pid"
    for _ in range(5):
        rekindle.place.wait_for(file.exists)
        pids.append(int(file.read_text()))
        file.unlink()
        rekindle.place.signal(pids[-1], signal.SIGTERM)
    [paused] = rekindle.place.wait_for(lambda: rekindle.events("safe_mode.entered") or None)
    assert paused["why"] == "no-progress"
    assert "5 launches in a row without progress" in paused["words"]
    assert len(set(pids)) == 5
    ends = [(one["exit"], one["code"]) for one in rekindle.events("launch.ended")]
    assert ends == [("interrupted", -signal.SIGTERM)] * 5
    rekindle("stop")
    assert run.wait() == 130, run.err
    assert len(rekindle.events("launch.started")) == 5


def test_run_prints_its_bounds_and_keeps_the_operator_s_word(rekindle):
    has_agent(
        rekindle,
        "print('done')",
        more="    cycles: 1\n    until: ['true']\n    budget: {hours: 8}\n",
    )
    run = ended(rekindle)
    assert "ends after 8 hours; without progress, each launch after the" in run.err
    assert "and Rekindle pauses the agent after 5 launches or 12 hours of work" in run.err
    run = ended(rekindle, "--budget", "none")
    assert "and Rekindle never pauses the agent (`--budget none`)" in run.err
    said = [one.get("unbounded") for one in rekindle.events("desired.set")]
    assert said == [False, True]
