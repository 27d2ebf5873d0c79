"""A schedule starts a run of a pipeline once, and only as the operator has accepted it."""

import subprocess
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from rekindle import config
from rekindle.documents.pipelines.pipeline_events import PipelineEnded
from rekindle.policy.schedules.decide_run import STILL_RUNNING
from rekindle.policy.schedules.schedule_record import PendingRun
from rekindle.stores.folders import private_files
from rekindle.stores.folders.schedule_files import ScheduleFiles
from rekindle.stores.pipelines.run_folder import list_runs
from rekindle.system import clock
from rekindle.wiring.access import trust_checks
from rekindle.wiring.open_store import open_store
from rekindle.wiring.pipelines import start_run
from rekindle.wiring.schedules.project_schedules import start_due_runs

MANIFEST = """\
version: 1
pipelines:
  audit:
    every: 1h
    steps: [{id: data, run: "true"}]
"""
HOUR = timedelta(hours=1)
NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)


class ScheduledPipeline:
    def __init__(self, folder, monkeypatch):
        self.folder, self.now = folder, NOON + timedelta(minutes=5)
        self.coordinated = []
        monkeypatch.setattr(clock, "read_clock", lambda: self.now)
        monkeypatch.setattr(
            start_run, "start_coordinator", lambda _, run: self.coordinated.append(run.run)
        )
        (folder / "rekindle.yaml").write_text(MANIFEST)
        git = ["git", "-C", str(folder), "-c", "user.name=T", "-c", "user.email=t@example.org"]
        for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "Begin"]):
            subprocess.run([*git, *words], check=True)
        trust_checks.accept_folder(folder)
        self.private = private_files.find_private_project(folder)
        self.files = ScheduleFiles(self.private)

    def look(self):
        project = config.load_project(self.folder)
        return [report.words for report in start_due_runs(project, open_store(project))]

    @property
    def runs(self):
        return list_runs(self.private, "audit")

    def list_due(self):
        return [next(iter(run.read_events())).due for run in self.runs]


@pytest.fixture
def scheduled(tmp_path, monkeypatch):
    made = ScheduledPipeline(tmp_path, monkeypatch)
    made.look()
    made.now = NOON + HOUR
    yield made
    trust_checks.forget_folder(tmp_path)


def test_a_run_starts_at_its_due_time(scheduled):
    (words,) = scheduled.look()
    assert "was started" in words
    assert scheduled.coordinated == [1]
    assert scheduled.list_due() == [NOON + HOUR]
    assert scheduled.look() == []


def test_the_next_run_waits_for_the_end_of_the_previous_one(scheduled):
    scheduled.look()
    scheduled.now += HOUR
    (words,) = scheduled.look()
    assert STILL_RUNNING in words
    scheduled.runs[0].append(PipelineEnded(ts=scheduled.now, outcome="done", commit="0" * 40))
    scheduled.now += HOUR
    scheduled.look()
    assert scheduled.list_due() == [NOON + HOUR, NOON + 3 * HOUR]


@pytest.mark.parametrize("end", [b"", b"damaged\n"])
def test_a_damaged_log_does_not_block_the_schedule(scheduled, end):
    scheduled.look()
    run = scheduled.runs[0]
    run.log.write_bytes(b"damaged\n" + run.log.read_bytes() + end)
    scheduled.now += HOUR
    with run.hold():
        assert STILL_RUNNING in scheduled.look()[0]
    scheduled.now += HOUR
    (words,) = scheduled.look()
    assert "was started" in words
    assert len(scheduled.runs) == 2


def test_a_kill_around_the_start_neither_loses_nor_repeats_the_run(scheduled):
    record = scheduled.files.read("pipelines", "audit")
    pending = msgspec.structs.replace(
        record, handled=scheduled.now, pending=PendingRun(scheduled.now)
    )
    scheduled.files.write("pipelines", "audit", pending)
    scheduled.look()
    assert scheduled.list_due() == [NOON + HOUR]
    # Killed after the run was created, before its settings were accepted.
    scheduled.runs[0].settings.unlink()
    scheduled.files.write("pipelines", "audit", pending)
    scheduled.look()
    assert scheduled.list_due() == [NOON + HOUR]
    assert scheduled.runs[0].settings.exists()
    (outcome,) = scheduled.files.read("pipelines", "audit").history
    assert outcome.kind == "started"


@pytest.mark.parametrize(
    "text",
    [
        MANIFEST.replace('run: "true"', 'run: "exfiltrate"'),
        MANIFEST.replace("1h", "1m"),
        "version: 1\nagents: {}\n",
    ],
)
def test_settings_that_an_agent_changed_start_nothing(scheduled, text):
    (scheduled.folder / "rekindle.yaml").write_text(text)
    (words,) = scheduled.look()
    assert "changed without a command from you" in words or "does not contain" in words
    assert scheduled.runs == []
    assert scheduled.coordinated == []


def test_a_pipeline_that_cannot_start_is_skipped_with_the_reason(scheduled):
    manifest = scheduled.folder / "rekindle.yaml"
    manifest.write_text(MANIFEST.replace('run: "true"', "run: no-such-program"))
    trust_checks.accept_folder(scheduled.folder)
    scheduled.now += HOUR
    words = scheduled.look()[-1]
    assert "no-such-program" in words
    assert scheduled.runs == []
