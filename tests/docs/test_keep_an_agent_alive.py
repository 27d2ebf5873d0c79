"""The guide for keeping agents alive, run from top to bottom with a scripted CLI."""

import re
import shlex
import shutil
import signal
import stat
import sys
from pathlib import Path

import pytest

import prerequisites
from documented import blocks, difference, steps
from rekindle.documents import manifest
from rekindle.policy.settings import runtime_settings

GUIDE = Path(__file__).parents[2] / "docs/guides/keep-an-agent-alive.md"
PATIENCE_SECONDS = 30
CLAUDE = """\
#!{python} -IS
import json, os, signal, sys, time
session = next(one.partition("=")[2] for one in sys.argv if one.startswith(("--sess", "--resume")))
def say(**record):
    print(json.dumps(record), flush=True)
def speak(text):
    say(type="assistant", message={{"model": "m", "content": [{{"type": "text", "text": text}}]}})
def done(text, ok=True):
    say(type="result", subtype="success", is_error=not ok, result=text, session_id=session,
        terminal_reason="completed", total_cost_usd=0.5)
say(type="system", subtype="init", session_id=session, model="m")
act = open("act").read()
if act == "crash" and not os.path.exists("crashed"):
    open("crashed", "w").close()
    speak("reading the code")
    os.kill(os.getpid(), signal.SIGKILL)
if act == "auth":
    done("Not logged in", ok=False)
    sys.exit(1)
if act == "work":
    open("working-" + os.environ["REKINDLE_AGENT"], "w").close()
    time.sleep(600)
speak("all done")
done("all done")
"""


class Reader:
    """A person who types the commands of the guide, in a folder of their own."""

    def __init__(self, place, folder):
        self.place, self.path = place, folder / "project"
        self.programs, self.home = folder / "programs", folder / "home"
        for made in (self.path, self.programs, self.home):
            made.mkdir()
        program = self.programs / "claude"
        program.write_text(CLAUDE.format(python=sys.executable))
        program.chmod(stat.S_IRWXU)
        (self.path / "PROMPT.md").write_text("Ship it.\n")

    def start(self, argv, **more):
        return self.place.start(
            argv,
            env={
                "PATH": f"{self.programs}:/usr/bin:/bin",
                "HOME": str(self.home),
                "LC_ALL": "C.UTF-8",
                "TMUX_TMPDIR": str(self.home),
                **more,
            },
            cwd=self.path,
        )

    def rekindle(self, *arguments):
        return self.start([sys.executable, "-I", "-m", "rekindle", *arguments])

    def supervisors(self):
        """Return the process ids of all supervisors."""
        found = self.place._ask(do="list")["processes"]
        return [one["pid"] for one in found if one["argv"][3:5] == ["rekindle", "run"]]

    def is_kept(self):
        """Return whether the supervisor that was just started has its lock."""
        started = self.rekindle("status", "trades")
        return started.wait() == 0 and "state:  running" in started.out

    def type(self, line, shown):
        """Run a command once; repeat `status` until it shows the text."""
        words = shlex.split(line)
        assert words[0] == "rekindle"
        if words[1] == "daemon":
            return self.look_at_daemon(words, shown)

        def told():
            started = self.rekindle(*words[1:])
            code = started.wait()
            assert code == 0, f"$ {line}\n{started.out}{started.err}"
            return difference(shown, started.out.splitlines())

        def is_shown():
            return not told()

        if words[1] == "status":
            return self.place.wait_for(is_shown, PATIENCE_SECONDS)
        assert not (found := told()), f"$ {line}\n{found}"
        return None

    def look_at_daemon(self, words, shown):
        """Wait until the daemon prints the shown lines; then stop it, while agents keep running."""
        started = self.rekindle(*words[1:])
        self.place.wait_for(
            lambda: not difference(shown, started.out.splitlines()), PATIENCE_SECONDS
        )
        started.signal(signal.SIGINT)
        started.wait()

    def act(self, words):
        """Do what the block's first word names."""
        if "killed" in words:
            [pid] = self.supervisors()
            self.place.signal(pid, signal.SIGKILL)
            self.place.wait_for(lambda: not self.supervisors())
        elif "daemon" in words:
            self.place.wait_for(self.is_kept, PATIENCE_SECONDS)
        else:
            (self.path / "act").write_text(words[0] if words else "")


@pytest.fixture
def reader(place, tmp_path):
    made = Reader(place, tmp_path)
    yield made
    made.rekindle("down").wait()


def test_the_guide_s_commands_print_what_it_shows(reader):
    """Every console block runs in order in one project, and nothing is left running."""
    if shutil.which("tmux") is None:
        prerequisites.refuse("tmux is not installed, and the guide uses it")
    commands = 0
    for kind, words, body in blocks(GUIDE.read_text()):
        if kind == "yaml" and words:
            (reader.path / words[0]).write_text(body)
        if kind != "console" or (words == ["systemd"] and sys.platform != "linux"):
            continue
        reader.act(words)
        for line, shown in steps(body):
            reader.type(line, shown)
            commands += 1
    assert commands >= 13
    assert list(reader.home.glob(".config/systemd/user/rekindle-*.service"))
    assert len(reader.supervisors()) == 1, "trades, which was restarted; once"


def test_its_line_for_cron_starts_missing_supervisors(reader):
    """It works in cron's minimal environment."""
    [line] = [body for kind, _, body in blocks(GUIDE.read_text()) if kind == "crontab"]
    schedule = line.split(maxsplit=5)
    assert re.fullmatch(r"[*/\d]+", schedule[0])
    manifest_text = next(body for kind, words, body in blocks(GUIDE.read_text()) if words)
    (reader.path / "rekindle.yaml").write_text(manifest_text)
    reader.act(["work"])
    assert reader.rekindle("up", "trades").wait() == 0
    reader.place.wait_for((reader.path / "working-trades").exists)
    reader.act(["killed"])
    (reader.path / "working-trades").unlink()
    program = reader.programs / "rekindle"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -I -m rekindle "$@"\n')
    program.chmod(stat.S_IRWXU)
    command = schedule[5].replace("/your/project", str(reader.path))
    command = command.replace("/path/to/rekindle", str(program))
    started = reader.start(["/bin/sh", "-c", command], PATH="/usr/bin:/bin")
    assert started.wait() == 0, started.err
    assert "trades: started: its supervisor is gone" in started.out
    reader.place.wait_for((reader.path / "working-trades").exists)  # `claude` was found again


def test_its_manifests_are_accepted():
    """Every block of YAML is a valid `rekindle.yaml`."""
    found = [body for kind, _, body in blocks(GUIDE.read_text()) if kind == "yaml"]
    assert len(found) >= 4
    for body in found:
        parsed, marked = manifest.read_manifest(body)
        runtime_settings.resolve_settings(marked)
        assert parsed.agents


def test_its_numbers_are_the_defaults():
    """The numbers in its sentences are those of the settings."""
    found, text = runtime_settings.RuntimeSettings(), GUIDE.read_text()
    restart = found.restart
    assert (restart.max_crashes, restart.window) == (None, 15 * 60)
    assert "safe mode after five crashes in 15 minutes" in text
    assert runtime_settings.PROBED_CRASHES == 5
    assert "Five launches in a row fail immediately" in text
    assert found.progress == runtime_settings.ProgressSettings(10, 40, 12.0, 20.0)
    assert "Ten launches in a row make no progress" in text
    probes = {f"tries one launch every {runtime_settings.PROBE_INTERVAL}"}
    probes |= {f"waits {runtime_settings.PROBE_INTERVAL} before each launch"}
    assert all(sentence in text for sentence in probes)
    assert "makes no progress in 40 launches or 12 hours of work" in text
    assert "$20 without progress" in text
    assert (restart.cooldown, restart.max_cooldown) == (10, 5 * 60)
    assert "after 10 s, 20 s and so on, up to 5 minutes" in text
    assert found.watch.silence == 10 * 60
    assert "shows no activity for 10 minutes" in text
    assert found.watch.every == 15
    assert text.count("15 seconds") == 2
