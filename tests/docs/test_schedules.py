"""The guide for schedules, run from top to bottom."""

import shlex
import sys
from pathlib import Path

import pytest

from documented import blocks, difference, steps
from rekindle.documents import manifest
from rekindle.policy.schedules.schedule_checks import list_schedules, require_valid_schedules
from rekindle.system.clock import find_zone
from rekindle.thresholds.schedule_limits import SCHEDULE_GRACE_SECONDS, SCHEDULE_HISTORY
from rekindle.wiring.access.trust_checks import forget_folder

GUIDE = Path(__file__).parents[2] / "docs/guides/schedules.md"


@pytest.fixture
def project(tmp_path):
    for kind, words, body in blocks(GUIDE.read_text()):
        if kind == "yaml" and words:
            (tmp_path / words[0]).write_text(body)
    (tmp_path / "PROMPT.md").write_text("Count the open tasks.\n")
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
        assert not (found := difference(shown, started.out.splitlines())), found


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
