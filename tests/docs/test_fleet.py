"""The guide to a fleet, run from top to bottom: an engine, two hosts, one of them killed."""

import shlex
import signal
import stat
import sys
import time
from pathlib import Path

import pytest

from documented import blocks, difference, steps
from rekindle.documents import manifest
from rekindle.policy.settings import runtime_settings

GUIDE = Path(__file__).parents[2] / "docs/guides/fleet.md"
PATIENCE_SECONDS = 60
CLAUDE = """\
#!{python} -IS
import json, sys, time
session = next(one.partition("=")[2] for one in sys.argv if one.startswith(("--sess", "--resume")))
print(json.dumps(dict(type="system", subtype="init", session_id=session, model="m")), flush=True)
open("working", "w").close()
time.sleep(600)
"""
"""A program that works until it is stopped."""


class Reader:
    """A person who types the commands of the guide, with a terminal for each program that stays."""

    def __init__(self, place, folder):
        self.place, self.path = place, folder / "project"
        self.programs, self.home = folder / "programs", folder / "home"
        for made in (self.path, self.programs, self.home):
            made.mkdir()
        program = self.programs / "claude"
        program.write_text(CLAUDE.format(python=sys.executable))
        program.chmod(stat.S_IRWXU)
        (self.path / "PROMPT.md").write_text("Ship it.\n")
        (self.path / ".gitignore").write_text(".rekindle/\n")
        remote = folder / "remote.git"
        who = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
        for words in (
            ["init", "-q", "--bare", "-b", "main", str(remote)],
            ["init", "-q", "-b", "main"],
            ["remote", "add", "origin", str(remote)],
            ["add", "-A"],
            [*who, "commit", "-q", "-m", "Begin"],
            ["push", "-q", "origin", "main"],
        ):
            assert self.start(["git", *words]).wait() == 0
        self.staying = {}

    def start(self, argv):
        beside = Path(sys.executable).parent
        return self.place.start(
            argv,
            env={
                "PATH": f"{self.programs}:{beside}:/usr/bin:/bin",
                "HOME": str(self.home),
                "LC_ALL": "C.UTF-8",
            },
            cwd=self.path,
        )

    def type(self, line, shown, words):
        """Run a command; keep long-running ones, repeat `status` until it shows the text."""
        argv = shlex.split(line)
        assert argv[0] == "rekindle"

        def begin():
            return self.start([sys.executable, "-I", "-m", "rekindle", *argv[1:]])

        if {"engine", "host"} & set(words):
            started = self.staying[line] = begin()

            def is_up():
                assert started.pid not in self.place.ended, f"$ {line}\n{started.out}{started.err}"
                is_answering = "host" in words or "Temporal Server:" in started.out
                printed = started.out.splitlines()
                # Notes depend on the machine, for example on its control groups.
                printed = [one for one in printed if not one.startswith("note: ")]
                return is_answering and not difference(shown[:2], printed[:2])

            self.place.wait_for(is_up, PATIENCE_SECONDS)
            return

        def told():
            started = begin()
            code = started.wait()
            return f"{code}\n{started.err}" if code else difference(shown, started.out.splitlines())

        deadline = time.monotonic() + (PATIENCE_SECONDS if argv[1] == "status" else 0)
        while found := told():
            assert time.monotonic() < deadline, f"$ {line}\n{found}"

    def kill_the_first_host(self):
        line = next(line for line in self.staying if "--host one" in line)
        started = self.staying.pop(line)
        self.place.wait_for(lambda: list(self.path.glob(".rekindle/one/*/work/working")))
        started.signal(signal.SIGKILL)
        assert started.wait() == -signal.SIGKILL


@pytest.fixture
def reader(place, tmp_path):
    made = Reader(place, tmp_path)
    yield made
    for started in reversed(made.staying.values()):
        if started.pid not in place.ended:
            started.signal(signal.SIGTERM)
            started.wait()


def test_the_guide_s_commands_print_what_it_shows(reader):
    commands = 0
    for kind, words, body in blocks(GUIDE.read_text()):
        if kind == "yaml" and words:
            (reader.path / words[0]).write_text(body)
        if kind != "console":
            continue
        if "killed" in words:
            reader.kill_the_first_host()
        for line, shown in steps(body):
            reader.type(line, shown, words)
            commands += 1
    assert commands >= 11
    # `status` shows the new host a moment before the agent's program has written there.
    reader.place.wait_for(
        lambda: list(reader.path.glob(".rekindle/two/*/work/working")), PATIENCE_SECONDS
    )


def test_its_manifests_are_accepted():
    found = [body for kind, _, body in blocks(GUIDE.read_text()) if kind == "yaml"]
    assert len(found) == 3
    for body in found:
        parsed, marked = manifest.read_manifest(body)
        assert runtime_settings.resolve_settings(marked).fleet is not None
        assert parsed.agents


def test_its_numbers_are_the_defaults():
    text = " ".join(GUIDE.read_text().split())
    assert runtime_settings.FleetSettings().heartbeat_timeout == 75
    assert "75 seconds by default" in text
    assert runtime_settings.FLEET_HOST_SECONDS == 5
    assert "starts it within five seconds" in text
