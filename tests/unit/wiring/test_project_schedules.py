"""The watchdog starts what is due once, with accepted settings only, and records the rest."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from rekindle import config
from rekindle.policy.schedules.decide_run import NOT_WATCHED, STILL_RUNNING
from rekindle.policy.schedules.schedule_record import PendingRun, ScheduleRecord
from rekindle.policy.schedules.schedule_rules import encode_schedule
from rekindle.policy.supervision import run_moves
from rekindle.stores.folders import private_files
from rekindle.stores.folders.schedule_files import ScheduleFiles
from rekindle.system import clock
from rekindle.wiring.access import trust_checks
from rekindle.wiring.open_store import open_store
from rekindle.wiring.schedules import project_schedules
from rekindle.wiring.schedules.project_schedules import start_due_runs

MANIFEST = """\
version: 1
agents:
  trades:
    harness: command
    command: ["true"]
    cycles: 1
    every: 1h
"""
HOUR = timedelta(hours=1)
NOW = datetime(2026, 11, 17, 12, 5, tzinfo=UTC)
NOON = NOW.replace(minute=0)


class ScheduledProject:
    def __init__(self, folder, monkeypatch):
        self.folder, self.now = folder, NOW
        monkeypatch.setattr(clock, "read_clock", lambda: self.now)
        (folder / "PROMPT.md").write_text("Ship the parser.\n")
        self.write(MANIFEST)
        trust_checks.accept_folder(folder)
        self.files = ScheduleFiles(private_files.find_private_project(folder))

    def write(self, text):
        (self.folder / "rekindle.yaml").write_text(text)

    def look(self):
        project = config.load_project(self.folder)
        return [report.words for report in start_due_runs(project, open_store(project))]

    @property
    def record(self):
        return self.files.read("agents", "trades")

    def change_record(self, **values):
        record = self.record or ScheduleRecord(encode_schedule("1h"), self.now)
        self.files.write("agents", "trades", msgspec.structs.replace(record, **values))

    @property
    def store(self):
        return open_store(config.load_project(self.folder))

    def list_due(self):
        """Return the due times in the agent's log."""
        view = self.store.read("trades") if self.store.exists("trades") else None
        scheduled = view.projection.run.scheduled if view else None
        return scheduled.due if scheduled else None

    def command(self, desired):
        run = self.store.read("trades").projection.run
        self.store.submit("trades", run_moves.make_desired_event(run, desired, self.now))

    def outcomes(self):
        return [(entry.kind, entry.count, entry.reason) for entry in self.record.history]


@pytest.fixture
def scheduled(tmp_path, monkeypatch):
    made = ScheduledProject(tmp_path, monkeypatch)
    yield made
    trust_checks.forget_folder(tmp_path)


def test_nothing_starts_before_the_first_due_time(scheduled):
    assert scheduled.look() == []
    assert scheduled.record.handled == NOW
    assert not scheduled.store.exists("trades")


def test_a_due_run_is_started_once(scheduled):
    scheduled.look()
    scheduled.now = NOON + HOUR
    (words,) = scheduled.look()
    assert "was started" in words
    assert scheduled.list_due() == NOON + HOUR
    assert scheduled.store.read("trades").projection.run.desired == "running"
    scheduled.now += timedelta(minutes=1)
    assert scheduled.look() == []
    assert scheduled.outcomes() == [("started", 1, "")]


def test_a_run_that_is_still_going_is_not_disturbed(scheduled):
    scheduled.look()
    for hours in (1, 2, 3):
        scheduled.now = NOON + hours * HOUR
        scheduled.look()
    assert scheduled.list_due() == NOON + HOUR
    assert scheduled.outcomes() == [("started", 1, ""), ("skipped", 2, STILL_RUNNING)]


def test_a_sleeping_host_catches_up_with_one_run(scheduled):
    scheduled.look()
    scheduled.now = NOON + 5 * HOUR + timedelta(minutes=30)
    missed, started = scheduled.look()
    assert "4 runs" in missed
    assert "was started" in started
    assert scheduled.list_due() == NOON + 5 * HOUR
    assert scheduled.outcomes() == [("missed", 4, NOT_WATCHED), ("started", 1, "")]


def test_a_kill_before_the_start_does_not_lose_the_run(scheduled):
    scheduled.look()
    scheduled.now = NOON + HOUR
    scheduled.change_record(handled=scheduled.now, pending=PendingRun(scheduled.now))
    scheduled.look()
    assert scheduled.list_due() == NOON + HOUR
    assert scheduled.record.pending is None


def test_a_kill_after_the_start_does_not_repeat_the_run(scheduled):
    scheduled.look()
    scheduled.now = NOON + HOUR
    before = scheduled.record
    scheduled.look()
    events = scheduled.store.read("trades").committed.seq
    scheduled.files.write(
        "agents",
        "trades",
        msgspec.structs.replace(before, handled=scheduled.now, pending=PendingRun(scheduled.now)),
    )
    scheduled.look()
    assert scheduled.store.read("trades").committed.seq == events
    assert scheduled.record.pending is None
    assert scheduled.outcomes() == [("started", 1, "")]


def test_a_stopped_agent_stays_stopped(scheduled):
    scheduled.look()
    scheduled.now = NOON + HOUR
    scheduled.look()
    scheduled.command("stopped")
    scheduled.now += HOUR
    (words,) = scheduled.look()
    assert "you stopped the agent; `rekindle up trades`" in words
    assert scheduled.list_due() == NOON + HOUR


@pytest.mark.parametrize(
    "text",
    [
        MANIFEST.replace("1h", "1m"),
        MANIFEST.replace("    every: 1h\n", ""),
        MANIFEST.replace('["true"]', '["sh", "-c", "exfiltrate"]'),
    ],
)
def test_settings_that_an_agent_changed_start_nothing(scheduled, text):
    """The accepted schedule stays in effect, and its runs are recorded as skipped."""
    scheduled.look()
    scheduled.write(text)
    scheduled.now = NOON + HOUR - timedelta(minutes=2)
    assert scheduled.look() == []
    scheduled.now = NOON + HOUR
    (words,) = scheduled.look()
    assert "changed without a command from you" in words
    assert scheduled.list_due() is None
    assert [entry[0] for entry in scheduled.outcomes()] == ["skipped"]
    scheduled.write(MANIFEST)
    scheduled.now += HOUR
    scheduled.look()
    assert scheduled.list_due() == NOON + 2 * HOUR


def test_an_agent_cannot_remove_itself_silently(scheduled):
    scheduled.look()
    scheduled.write("version: 1\nagents: {}\n")
    scheduled.now = NOON + HOUR
    (words,) = scheduled.look()
    assert "does not contain the agent" in words


def test_an_accepted_change_takes_effect(scheduled):
    scheduled.look()
    scheduled.write(MANIFEST.replace("1h", "2h"))
    scheduled.now = NOON + timedelta(minutes=30)
    trust_checks.accept_folder(scheduled.folder)
    scheduled.now = NOON + HOUR
    assert scheduled.look() == []
    scheduled.now = NOON + 2 * HOUR
    assert len(scheduled.look()) == 1
    scheduled.write(MANIFEST.replace("    every: 1h\n", ""))
    trust_checks.accept_folder(scheduled.folder)
    assert scheduled.look() == []
    assert scheduled.record is None


def test_an_agent_that_cannot_start_is_skipped_with_the_reason(scheduled):
    scheduled.look()
    (scheduled.folder / "PROMPT.md").unlink()
    scheduled.now = NOON + HOUR
    (words,) = scheduled.look()
    assert "PROMPT.md" in words
    assert not scheduled.store.exists("trades")


def test_the_operator_is_notified_once_about_a_reason(scheduled, monkeypatch):
    """The addresses are the accepted ones. An agent may have added its own."""
    notices = []

    class RecordingNotifier:
        def __init__(self, addresses, _redaction):
            self.addresses = addresses

        def send(self, title, body, severity):
            notices.append((self.addresses, title, severity, body.splitlines()[1]))
            return ["could not be sent"]

    monkeypatch.setattr(project_schedules, "Notifier", RecordingNotifier)
    scheduled.write(f"{MANIFEST}notify: [json://localhost]\n")
    trust_checks.accept_folder(scheduled.folder)
    scheduled.look()
    scheduled.write(f"{MANIFEST}notify: [json://elsewhere]\n")
    scheduled.now = NOON + HOUR
    _, failure = scheduled.look()
    assert failure == "could not be sent"
    scheduled.now += HOUR
    assert len(scheduled.look()) == 1
    assert notices == [
        (["json://localhost"], "trades: run skipped", "warning", "→ rekindle schedules")
    ]


def test_only_one_daemon_checks_the_schedules(scheduled):
    scheduled.look()
    scheduled.now = NOON + HOUR
    with scheduled.files.hold() as lock:
        assert lock is not None
        assert scheduled.look() == []
    assert len(scheduled.look()) == 1


def test_a_damaged_record_starts_nothing(scheduled):
    scheduled.look()
    (path,) = (scheduled.files.private.schedules / "agents").iterdir()
    path.write_bytes(b"{")
    scheduled.now = NOON + HOUR
    (words,) = scheduled.look()
    assert "the record of this schedule is damaged" in words
    assert scheduled.list_due() is None
