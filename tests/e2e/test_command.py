"""Any program works as an agent: without hooks or resume, its work still continues."""

import signal
import sys

import pytest

from e2e.sandbox import BANNER, RELAY, TASK, WORK, Rekindle
from loopback.sandbox import Folders

pytestmark = pytest.mark.timeout(300)

AGENT = f"""\
import os, pathlib, subprocess, sys
prompt = sys.stdin.read()
number = len(list(pathlib.Path(".").glob("prompt-*")))
pathlib.Path(f"prompt-{{number}}").write_text(prompt)
print("working on it", flush=True)
if number == 0:
    subprocess.Popen([sys.executable, "-c", {WORK!r}], start_new_session=True)
    while not os.path.exists("working"):
        pass
    pathlib.Path("hooked.tmp").write_text(str(os.getpid()))
    os.rename("hooked.tmp", "hooked")
    import time; time.sleep(600)
print("all done")
"""


class Program(Folders):
    """A home and a project without any configuration."""

    program = sys.executable

    def environment(self, **more):
        return super().environment() | more


@pytest.fixture
def rekindle(place, tmp_path):
    """Create a project with a program as its agent, its task and its relay."""
    found = Rekindle(Program(tmp_path / "command"), place)
    (found.project / "agent.py").write_text(AGENT)
    command = f"[{sys.executable}, agent.py]"
    entry = f"    harness: command\n    cycles: 1\n    until: ['true']\n    command: {command}\n"
    manifest = f"version: 1\nagents:\n  trades:\n{entry}"
    (found.project / "rekindle.yaml").write_text(manifest)
    (found.project / "PROMPT.md").write_text(TASK)
    (found.project / "relay.md").write_text(RELAY)
    found("relay", "set", "relay.md")
    return found


def test_a_program_that_is_killed_is_replaced_by_a_fresh_one(rekindle):
    """Its leftover processes are ended, and the next one starts with the recovery notice."""
    running = rekindle.start("run")
    pid = rekindle.wait_until_hooked()
    assert len(rekindle.tools()) == 1
    rekindle.place.signal(pid, signal.SIGKILL)
    assert running.wait() == 0, running.err
    assert rekindle.tools() == []
    first, second = (rekindle.project / f"prompt-{number}" for number in range(2))
    assert BANNER not in first.read_text()
    assert second.read_text().startswith(BANNER)
    assert RELAY.strip() in second.read_text()
    crashed, ended = rekindle.events("launch.ended")
    assert (crashed["exit"], crashed["words"]) == ("crash", "ended by SIGKILL")
    assert crashed["swept"] == 1
    assert (ended["exit"], ended["tokens"] > 20, "window" in ended) == ("clean", True, False)
    assert "working on it" in running.out


def test_a_supervisor_that_is_killed_takes_the_program_along(rekindle):
    """The next run ends what was left behind, and its prompt says that the work was interrupted."""
    running = rekindle.start("run")
    rekindle.wait_until_hooked()
    running.signal(signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL
    rekindle("run")
    assert rekindle.tools() == []
    assert (rekindle.project / "prompt-1").read_text().startswith(BANNER)
    assert [one["exit"] for one in rekindle.events("launch.ended")] == ["lost", "clean"]


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ("echo 'error: you exceeded your current quota' >&2; exit 1", "limit"),
        ("kill -TERM $$", "interrupted"),
        ("exit 0", "clean"),
    ],
    ids=["limit", "interrupted", "clean"],
)
def test_the_exit_of_a_program_is_classified(rekindle, script, kind):
    """Its exit code decides, and its last output if it failed."""
    manifest = rekindle.project / "rekindle.yaml"
    text = manifest.read_text().replace(f"{sys.executable}, agent.py", f'sh, -c, "{script}"')
    manifest.write_text(text)
    assert (rekindle.start("run", "--once").wait() == 0) is (kind == "clean")
    assert [one["exit"] for one in rekindle.events("launch.ended")] == [kind]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("    command: [", "    # command: ["), "rekindle.yaml:3: agent trades: there is no"),
        (("version: 1\n", "version: 1\npersonas: {default: {temperature: 0}}\n"), "`temperature:`"),
    ],
    ids=["no-command", "persona"],
)
def test_an_impossible_entry_is_refused(rekindle, change, told):
    """An entry without a program, or with a persona that cannot be enforced, starts nothing."""
    manifest = rekindle.project / "rekindle.yaml"
    manifest.write_text(manifest.read_text().replace(*change))
    started = rekindle.start("run")
    assert started.wait() != 0
    assert told in started.err
    manifest.write_text(manifest.read_text().replace(*reversed(change)))
    assert rekindle.events("launch.started") == []


def test_a_limit_on_standard_output_is_recognised(rekindle):
    """The run waits for its end, and nothing counts as a crash."""
    said = 'print("Rate limit exceeded.\\nPlease try again in 5 minutes."); raise SystemExit(1)\n'
    (rekindle.project / "agent.py").write_text(said)
    running = rekindle.start("run")
    (ended,) = rekindle.place.wait_for(lambda: rekindle.events("launch.ended") or None)
    running.signal(signal.SIGTERM)
    assert running.wait() == 130, running.err
    assert ended["exit"] == "limit"
    assert "try again in 5 minutes" in ended["words"]
