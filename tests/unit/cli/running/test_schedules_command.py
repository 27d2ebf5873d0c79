"""`schedules`, `status` and `doctor` show the next run, and why a run did not start."""

import json
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest

from rekindle.policy.schedules.schedule_record import ScheduleOutcome, ScheduleRecord
from rekindle.policy.schedules.schedule_rules import encode_schedule
from rekindle.stores.folders import private_files
from rekindle.stores.folders.schedule_files import ScheduleFiles
from rekindle.system import clock

MANIFEST = """\
version: 1
agents:
  trades: {harness: command, command: ["true"], every: 1h}
  words: {harness: command, command: ["true"]}
"""
PIPELINE = """\
version: 1
pipelines: {audit: {every: 1h, steps: [{id: look, run: no-such-program}]}}
"""
NOW = datetime(2026, 11, 17, 12, 5, tzinfo=UTC)
NOON = NOW.replace(minute=0)
HOUR = timedelta(hours=1)


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setattr(clock, "read_clock", lambda: NOW)
    (tmp_path / "rekindle.yaml").write_text(MANIFEST)
    (tmp_path / "PROMPT.md").write_text("Ship the parser.\n")
    return tmp_path


class Printed(NamedTuple):
    exit_code: int
    output: str


@pytest.fixture
def call(rekindle):
    def run(*arguments):
        code, out, err = rekindle(*arguments)
        return Printed(code, out if "--json" in arguments else out + err)

    return run


@pytest.fixture
def files(project):
    return ScheduleFiles(private_files.find_private_project(project))


def test_a_schedule_takes_effect_when_it_is_accepted(project, call):
    before = call("schedules")
    assert "trades  (agent): 1h; not in effect" in before.output
    assert "`rekindle schedules --accept` accepts it" in before.output
    accepted = call("schedules", "--accept", "--trust")
    assert accepted.exit_code == 0, accepted.output
    assert "next run Tue 2026-11-17 13:00 UTC" in accepted.output
    assert "not accepted" not in accepted.output
    assert "no daemon is checking its schedule" in accepted.output


def test_a_change_is_shown_until_it_is_accepted(project, call):
    call("schedules", "--accept", "--trust")
    (project / "rekindle.yaml").write_text(MANIFEST.replace("1h", "2h"))
    changed = call("schedules")
    assert "trades  (agent): 1h;" in changed.output
    assert "`every:` in rekindle.yaml is not accepted yet" in changed.output
    assert "trades  (agent): 2h;" in call("schedules", "--accept").output


def test_a_removed_schedule_is_called_removed(project, call):
    call("schedules", "--accept", "--trust")
    (project / "rekindle.yaml").write_text(MANIFEST.replace(", every: 1h", ""))
    shown = call("schedules").output
    assert "does not contain its `every:` any more" in shown
    assert "`every:` in rekindle.yaml is not accepted" not in shown
    assert "There are no schedules" in call("schedules", "--accept").output


def test_accepting_a_schedule_tells_what_keeps_a_run_from_starting(project, call):
    (project / "PROMPT.md").unlink()
    accepted = call("schedules", "--accept", "--trust")
    assert accepted.exit_code == 0
    assert "! its runs are skipped for now: PROMPT.md: cannot be read" in accepted.output
    assert "→ create it, or correct `prompt:`" in accepted.output
    (project / "PROMPT.md").write_text("Ship the parser.\n")
    assert "skipped" not in call("schedules", "--accept").output


def test_accepting_the_schedule_of_a_pipeline_tells_it_too(project, call):
    (project / "rekindle.yaml").write_text(PIPELINE)
    accepted = call("schedules", "--accept", "--trust")
    assert accepted.exit_code == 0
    assert "audit  (pipeline): 1h; next run" in accepted.output
    assert "! its runs are skipped for now: " in accepted.output


def test_an_agent_that_was_removed_loses_its_schedule(project, call):
    call("schedules", "--accept", "--trust")
    (project / "rekindle.yaml").write_text(MANIFEST.replace("trades", "quotes").replace("1h", "3h"))
    assert "trades" in call("schedules").output
    assert "trades" not in call("schedules", "--accept").output


def test_skipped_and_missed_runs_are_visible(project, call, files):
    call("schedules", "--accept", "--trust")
    missed = ScheduleOutcome("missed", NOON - 3 * HOUR, NOON - HOUR, NOON, 3, "the host was asleep")
    started = ScheduleOutcome("started", NOON, NOON, NOON)
    record = ScheduleRecord(encode_schedule("1h"), NOON, history=(missed, started))
    files.write("agents", "trades", record)
    with files.hold():
        files.note_check(NOW)
    shown = call("schedules", "trades")
    assert "no daemon" not in shown.output
    words = "3 runs from Tue 2026-11-17 09:00 UTC to Tue 2026-11-17 11:00 UTC were missed"
    assert shown.output.count(words) == 2
    assert "the run for Tue 2026-11-17 12:00 UTC was started" in shown.output
    status = call("status", "trades")
    assert "every:  1h; next run Tue 2026-11-17 13:00 UTC" in status.output
    assert words in status.output
    assert words in call("doctor").output
    listed = json.loads(call("schedules", "--json").output)["schedules"]
    assert [entry["kind"] for entry in listed[0]["history"]] == ["missed", "started"]
    assert listed[0]["watched"] is True
    agent = json.loads(call("status", "trades", "--json").output)["agents"][0]
    assert agent["schedule"]["next"] == "2026-11-17T13:00:00Z"


def test_doctor_says_that_nothing_checks_the_schedule(project, call):
    call("schedules", "--accept", "--trust")
    checked = call("doctor")
    assert "no daemon is checking its schedule" in checked.output
    assert "rekindle service install" in checked.output


def test_a_name_without_a_schedule_is_an_error(project, call):
    refused = call("schedules", "words")
    assert refused.exit_code == 2
    assert "words has no schedule" in refused.output


def test_a_project_without_schedules(project, call):
    (project / "rekindle.yaml").write_text(MANIFEST.replace(", every: 1h", ""))
    assert "There are no schedules" in call("schedules").output
    assert json.loads(call("schedules", "--json").output)["schedules"] == []
