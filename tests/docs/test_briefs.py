"""The guide for briefs, run from top to bottom, with a script in the place of the CLI."""

import json
import os
import shlex
import stat
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from documented import blocks, difference, steps
from rekindle.documents import events, manifest
from rekindle.policy.settings import runtime_settings
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.stores.files import FileStore
from rekindle.system import clock, host

GUIDE = Path(__file__).parents[2] / "docs/guides/briefs.md"
CLAUDE = """\
#!{python} -IS
import json, re, sys
prompt = sys.stdin.read()
turn = [int(re.findall(r"^[|] \\[(\\d+)\\]", prompt, re.M)[-1])]
def items(*texts):
    return [{{"text": text, "turns": turn}} for text in texts]
def loops(key, **said):
    names = [(name.replace("_", "-"), text) for name, text in said.items()]
    return [{{"id": name, key: text, "turns": turn}} for name, text in names]
first = "empty-files is resolved" in prompt
say = {{
    "Changed": items("`parser.py` accepts files of no size", "the whole suite is green",
                     "the server got a new kernel") if first else [],
    "Next": items("tell users about it"),
    "Risk": [],
    "open_loops": loops("text", announce="Users have not been told"),
    "resolved": loops("reason", empty_files="it takes them", rate_limit="sixty were agreed on")
                if first else [],
    "numbers": [{{"name": "tests", "value": "3", "turns": turn}}],
}}
print(json.dumps({{"type": "result", "subtype": "success", "is_error": False, "result": "",
                   "terminal_reason": "completed", "structured_output": say, "total_cost_usd": 0.02,
                   "modelUsage": {{"m": {{"inputTokens": 880, "outputTokens": 20}}}}}}))
"""


class Reader:
    """A person who types the commands of the guide, with a minimal environment."""

    def __init__(self, folder):
        self.path, self.home, self.programs = (
            folder / name for name in ("project", "home", "programs")
        )
        for made in (self.path, self.home, self.programs):
            made.mkdir()
        program = self.programs / "claude"
        program.write_text(CLAUDE.format(python=sys.executable))
        program.chmod(stat.S_IRWXU)
        for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "Begin"]):
            self.run("git", "-c", "user.name=x", "-c", "user.email=x@localhost", *words)
        self.lines = []

    def run(self, *argv, path=None):
        path = f"{self.programs}:/usr/bin:/bin" if path is None else path
        return subprocess.run(
            argv,
            cwd=self.path,
            env={
                "PATH": path,
                "HOME": str(self.home),
                "LC_ALL": "C.UTF-8",
                "TZ": "UTC",
                "REKINDLE_TRUST": "1",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def type(self, line, **more):
        words = shlex.split(line)
        assert words[0] == "rekindle"
        ended = self.run(sys.executable, "-I", "-m", "rekindle", *words[1:], **more)
        assert ended.returncode == 0, f"$ {line}\n{ended.stdout}{ended.stderr}"
        return ended.stdout.splitlines()

    @property
    def store(self):
        return FileStore(
            self.path, host=host.identify_host(), settings=Settings(), clock=clock.read_clock
        )

    def act(self, words):
        """Do what the block's first word names."""
        if "night" in words:
            (self.path / "parser.py").write_text("def parse(): ...\n")
            done = "parser.py takes them now: empty-files is resolved. All 3 tests pass."
            self.session("tests", f"{done} Next I tell the users.")
        elif "due" in words:
            texts = [
                body for kind, words, body in blocks(GUIDE.read_text()) if words == ["briefs.yaml"]
            ]
            # Whatever the hour is, it was due a moment ago.
            moment = f"{clock.read_clock() - timedelta(minutes=1):%H:%M}"
            text = texts[0].replace("06:30", moment).replace("Europe/Berlin", "UTC")
            (self.path / "rekindle.yaml").write_text(text)
            self.type("rekindle hooks install --agent trades")  # accepts the edit
            self.session("later", "I looked around. I have to tell the users.", is_short=True)

    def session(self, name, said, *, is_short=False):
        """Write a session as hooks report it."""
        path, now = self.path / f".{name}.jsonl", clock.read_clock()
        use = {"type": "tool_use", "id": "c", "name": "Bash", "input": {"command": "just test"}}
        gave = {"type": "tool_result", "tool_use_id": "c", "content": "3 passed"}
        told = [
            {"role": "assistant", "id": f"{name}1", "model": "m", "content": [use]},
            {"role": "user", "content": [gave]},
            {
                "role": "assistant",
                "id": f"{name}2",
                "model": "m",
                "content": [{"type": "text", "text": said}],
            },
        ][2 * is_short :]
        lines = [
            {"type": one["role"], "timestamp": now.isoformat(), "message": one} for one in told
        ]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        began = {"session": name, "harness": "claude-code", "transcript": str(path)}
        with self.store.writer("trades") as writer:
            writer.append(
                events.SessionStarted(ts=now - timedelta(days=1), **began),
                events.Heartbeat(ts=clock.read_clock(), session=name),
                events.SessionEnded(ts=clock.read_clock(), session=name),
            )


@pytest.fixture
def reader(tmp_path):
    return Reader(tmp_path)


def test_the_guide_s_commands_print_what_it_shows(reader):
    commands = 0
    for kind, words, body in blocks(GUIDE.read_text()):
        if kind == "yaml" and words == ["rekindle.yaml"]:
            (reader.path / words[0]).write_text(body)
        if kind != "console" or (words == ["systemd"] and sys.platform != "linux"):
            continue
        reader.act(words)
        for line, shown in steps(body):
            assert not (told := difference(shown, reader.type(line))), f"$ {line}\n{told}"
            commands += 1
    assert commands >= 10
    assert (reader.path / "morning.html").read_text().startswith("<!doctype html>")


def test_its_line_for_cron_writes_due_briefs(reader):
    """In cron's environment `claude` is found where it was when a person wrote a brief."""
    text = GUIDE.read_text()
    [line] = [body for kind, _, body in blocks(text) if kind == "crontab"]
    (reader.path / "rekindle.yaml").write_text(
        next(body for _, words, body in blocks(text) if words)
    )
    reader.act(["night"])
    reader.type("rekindle brief trades")
    reader.act(["due"])
    program = reader.home / "rekindle"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -I -m rekindle "$@"\n')
    program.chmod(stat.S_IRWXU)
    command = line.split(maxsplit=5)[5].replace("/your/project", str(reader.path))
    command = command.replace("/path/to/rekindle", str(program))
    ended = reader.run("/bin/sh", "-c", command, path="/usr/bin:/bin")
    assert ended.returncode == 0, ended.stderr
    assert "✓ trades: written by a model from 1 turn" in ended.stdout
    assert os.path.exists(reader.store.folder("trades").private.environment)  # noqa: PTH110 - a path


def test_its_manifests_are_accepted():
    found = [body for kind, _, body in blocks(GUIDE.read_text()) if kind == "yaml"]
    assert len(found) == 2
    for body in found:
        parsed, marked = manifest.read_manifest(body)
        runtime_settings.resolve_settings(marked)
        assert parsed.agents


def test_its_numbers_are_the_defaults():
    found, text = runtime_settings.RuntimeSettings(), GUIDE.read_text()
    assert found.brief.at == "06:00"
    assert "The default is 06:00" in text
    assert found.loops.stale_after_days == 14
    assert "After two weeks, Rekindle marks" in text
