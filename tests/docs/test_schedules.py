"""The guide for schedules, run from top to bottom."""

import shlex
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from documented import blocks, difference, steps
from rekindle.config import load_project
from rekindle.documents import manifest
from rekindle.policy.schedules.schedule_checks import list_schedules, require_valid_schedules
from rekindle.policy.schedules.schedule_record import ScheduleRecord
from rekindle.policy.schedules.schedule_rules import encode_schedule
from rekindle.stores.folders import private_files
from rekindle.stores.folders.schedule_files import ScheduleFiles
from rekindle.system.clock import find_zone
from rekindle.thresholds.schedule_limits import SCHEDULE_GRACE_SECONDS, SCHEDULE_HISTORY
from rekindle.wiring.access.trust_checks import forget_folder

GUIDE = Path(__file__).parents[2] / "docs/guides/schedules.md"


@pytest.fixture
def project(tmp_path):
    for kind, words, body in blocks(GUIDE.read_text()):
        if kind != "console" and words:
            (tmp_path / words[0]).write_text(body)
    yield tmp_path
    forget_folder(tmp_path)


def test_its_commands_print_what_it_shows(place, project):
    commands = [
        step
        for kind, _, body in blocks(GUIDE.read_text())
        if kind == "console"
        for step in steps(body)
    ]
    assert len(commands) == 4
    for line, shown in commands:
        printed = call(place, project, line)
        assert not (found := difference(shown, printed.splitlines())), found


def test_its_agent_starts_when_it_is_due(place, project):
    """The record says that the host has slept for a week."""
    call(place, project, "rekindle schedules --accept")
    every = load_project(project).manifest.agents["report"].every
    files = ScheduleFiles(private_files.find_private_project(project))
    asleep_since = datetime.now(UTC) - timedelta(days=7)
    files.write("agents", "report", ScheduleRecord(encode_schedule(every), asleep_since))
    call(place, project, "rekindle watch --once")
    history = files.read("agents", "report").history
    assert history[-1].kind == "started", history
    place.wait_for(lambda: "done" in call(place, project, "rekindle status report"))
    assert (project / "report.txt").read_text() == "2\n"


def call(place, project, line):
    program, *words = shlex.split(line)
    assert program == "rekindle"
    started = place.start(
        [sys.executable, "-I", "-m", "rekindle", *words],
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(project),
            "LC_ALL": "C.UTF-8",
            "REKINDLE_TRUST": "1",
        },
        cwd=project,
    )
    assert started.wait() == 0, f"$ {line}\n{started.out}{started.err}"
    return started.out


def test_its_schedules_are_valid():
    [body] = [
        body for kind, words, body in blocks(GUIDE.read_text()) if kind == "yaml" and not words
    ]
    parsed, marked = manifest.read_manifest(f"version: 1\n{body}")
    require_valid_schedules(parsed, marked, find_zone)
    assert len(list_schedules(parsed)) == 3


def test_its_numbers_are_those_of_the_code():
    text = " ".join(GUIDE.read_text().split())
    assert SCHEDULE_GRACE_SECONDS == 10 * 60
    assert "more than ten minutes late" in text
    assert f"lists the last {SCHEDULE_HISTORY} results" in text
