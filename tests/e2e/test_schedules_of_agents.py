"""The real daemon starts an agent whose schedule is due, once, as `up` would."""

import json
import signal
import sys
from datetime import UTC, datetime, timedelta

import pytest

from e2e.sandbox import TASK, Rekindle
from e2e.test_command import Program
from rekindle.policy.schedules.schedule_record import ScheduleRecord
from rekindle.policy.schedules.schedule_rules import encode_schedule
from rekindle.stores.folders import private_files
from rekindle.stores.folders.schedule_files import ScheduleFiles

pytestmark = pytest.mark.timeout(300)

AGENT = """\
import pathlib
number = len(list(pathlib.Path(".").glob("work-*")))
pathlib.Path(f"work-{number}").touch()
print("all done")
"""


@pytest.fixture
def rekindle(place, tmp_path):
    project = Rekindle(Program(tmp_path / "scheduled"), place)
    agent = {
        "harness": "command",
        "cycles": 1,
        "until": ["true"],
        "command": [sys.executable, "agent.py"],
        "every": "1h",
    }
    manifest = {
        "version": 1,
        "agents": {"trades": agent},
        "runtime": {"watch": {"every": "1s"}},
    }
    (project.project / "rekindle.yaml").write_text(json.dumps(manifest))
    (project.project / "agent.py").write_text(AGENT)
    (project.project / "PROMPT.md").write_text(TASK)
    return project


def test_the_daemon_catches_up_with_one_run(rekindle):
    """The record says that the host has slept for three due times."""
    rekindle("run", "trades")
    files = ScheduleFiles(private_files.find_private_project(rekindle.project))
    asleep_since = datetime.now(UTC) - timedelta(hours=3)
    files.write("agents", "trades", ScheduleRecord(encode_schedule("1h"), asleep_since))
    daemon = rekindle.start("daemon")
    try:
        rekindle.place.wait_for((rekindle.project / "work-1").exists)
        rekindle.place.wait_for(lambda: len(rekindle.events("run.ended")) == 2)
    finally:
        daemon.signal(signal.SIGTERM)
        daemon.wait()
    by_hand, scheduled = rekindle.events("desired.set")
    assert by_hand.get("due") is None
    record = files.read("agents", "trades")
    missed, started = record.history
    assert (missed.kind, missed.count, started.kind) == ("missed", 2, "started")
    assert scheduled["due"] == started.last.isoformat().replace("+00:00", "Z")
    assert started.last.minute == 0
    assert record.pending is None
    assert len(list(rekindle.project.glob("work-*"))) == 2
    assert "2 runs" in daemon.out
    assert "its schedule started it" in rekindle("logs", "trades")


def test_an_agent_that_changes_its_schedule_is_not_started(rekindle):
    rekindle("run", "trades")
    files = ScheduleFiles(private_files.find_private_project(rekindle.project))
    asleep_since = datetime.now(UTC) - timedelta(hours=1)
    files.write("agents", "trades", ScheduleRecord(encode_schedule("1h"), asleep_since))
    manifest = rekindle.project / "rekindle.yaml"
    manifest.write_text(manifest.read_text().replace('"1h"', '"1m"'))
    rekindle("watch", "--once")
    (skipped,) = files.read("agents", "trades").history
    assert skipped.kind == "skipped"
    assert "changed without a command from you" in skipped.reason
    assert len(list(rekindle.project.glob("work-*"))) == 1
