"""The real daemon starts a pipeline whose schedule is due, once, and a real coordinator runs it."""

import signal
from datetime import UTC, datetime, timedelta

import pytest

from e2e.pipeline_project import PipelineProject, PipelineRun
from rekindle.policy.schedules.schedule_record import ScheduleRecord
from rekindle.policy.schedules.schedule_rules import encode_schedule
from rekindle.stores.folders import private_files
from rekindle.stores.folders.schedule_files import ScheduleFiles
from rekindle.stores.pipelines.run_folder import list_runs

pytestmark = pytest.mark.timeout(400)

PIPELINE = """\
  audit:
    every: 1h
    steps:
      - id: look
        prompt: |
          $ touch began.log
          $ while ! test -e GATE; do sleep 0.1; done
          $ echo looked > looked.txt
runtime: {watch: {every: 1s}}
"""


def test_the_daemon_starts_a_run_and_its_killed_coordinator(place, tmp_path):
    """The record says that the host has slept for three due times."""
    project = PipelineProject(place, tmp_path / "pipelines")
    gate = tmp_path / "gate"
    project.write(PIPELINE.replace("GATE", str(gate)))
    private = private_files.find_private_project(project.path)
    files = ScheduleFiles(private)
    project.rekindle("schedules", "--accept", "--trust")
    asleep_since = datetime.now(UTC) - timedelta(hours=3)
    files.write("pipelines", "audit", ScheduleRecord(encode_schedule("1h"), asleep_since))
    daemon = project.rekindle.start("daemon")
    try:
        [folder] = place.wait_for(lambda: list_runs(private) or None)
        run = PipelineRun(project, folder)
        place.wait_for(lambda: run.has_file("audit-1-look", "began.log"))
        [pid] = project.list_coordinators()
        place.signal(pid, signal.SIGKILL)
        place.wait_for(lambda: bool(project.list_coordinators().keys() - {pid}))
        gate.touch()
        run.wait("done")
    finally:
        daemon.signal(signal.SIGTERM)
        daemon.wait()
    assert run.list_files() == {"looked.txt": "looked\n"}
    missed, started = files.read("pipelines", "audit").history
    assert (missed.kind, missed.count, started.kind) == ("missed", 2, "started")
    [began] = run.list_events("pipeline.started")
    assert began["due"] == started.last.isoformat().replace("+00:00", "Z")
    assert len(run.list_events("worker.began")) == 1
    assert "its coordinator was gone" in daemon.out
    assert len(list_runs(private)) == 1
