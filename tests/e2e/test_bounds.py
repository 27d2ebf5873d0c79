"""Bounds on work without progress, with real programs and a real git."""

import shutil
import subprocess
import sys

import pytest

from e2e.sandbox import TASK, Rekindle
from e2e.test_command import Program

pytestmark = pytest.mark.timeout(60)

APPENDS = "open('notes.txt', 'a').write('again\\n')"
CHAPTER = "import glob; open(f'chapter-{len(glob.glob(\"chapter-*\")) + 1}.md', 'w').write('text')"
REFUSED = "import sys; sys.exit('Error: connect ECONNREFUSED 127.0.0.1:5432')"
"""What a program says whose database is down."""


@pytest.fixture
def rekindle(place, tmp_path):
    """A project in git, with a program as its agent and a bound of five launches."""
    found = Rekindle(Program(tmp_path / "command"), place)
    (found.project / "PROMPT.md").write_text(TASK)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for arguments in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *arguments], cwd=found.project, check=True)
    return found


def has_agent(rekindle, code, more=""):
    (rekindle.project / "agent.py").write_text(code)
    command = f"[{sys.executable}, agent.py]"
    entry = f"    harness: command\n    command: {command}\n{more}"
    bounds = "runtime:\n  progress: {max_launches: 5}\n  restart: {cooldown: 0s}\n"
    bounds += "  stall: {pause: false}\n"
    manifest = f"version: 1\nagents:\n  trades:\n{entry}{bounds}"
    (rekindle.project / "rekindle.yaml").write_text(manifest)


def ended(rekindle, *options, code=0):
    run = rekindle.start("run", *options)
    assert run.wait() == code, run.err
    return run


@pytest.mark.parametrize("has_git", [True, False], ids=["git", "no git"])
def test_cycles_without_end_that_only_append_to_a_file_are_paused(rekindle, has_git):
    """Without a bound this had 170 cycles in 25 seconds."""
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
    assert "it changed nothing but what every cycle changes, such as notes.txt" in words


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
    """It is no outage of the network, which would be retried for ever."""
    has_agent(rekindle, REFUSED)
    rekindle("run", "--once", code=21)
    assert {one["exit"] for one in rekindle.events("launch.ended")} == {"crash"}
    assert len(rekindle.events("launch.ended")) == 5


def test_run_prints_its_bounds_and_keeps_the_operator_s_word(rekindle):
    has_agent(
        rekindle,
        "print('done')",
        more="    cycles: 1\n    until: ['true']\n    budget: {hours: 8}\n",
    )
    run = ended(rekindle)
    assert "ends after 8 hours; without progress, waits 15 to 60 minutes between" in run.err
    assert "and pauses after 5 launches or 12 hours of work" in run.err
    run = ended(rekindle, "--budget", "none")
    assert "and continues, as `--budget none` says" in run.err
    said = [one.get("unbounded") for one in rekindle.events("desired.said")]
    assert said == [False, True]
