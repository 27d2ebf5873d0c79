"""Completion in real shells, installed with the lines of its guide."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import prerequisites
from documented import blocks

GUIDE = Path(__file__).parents[2] / "docs/guides/shell-completion.md"
LINES = {words[0]: body.strip() for _, words, body in blocks(GUIDE.read_text()) if words}
PATIENCE = 60
MANIFEST = """\
version: 1
agents:
  trades: {harness: command, command: ["true"]}
  trains: {harness: command, command: ["true"]}
  docs: {harness: command, command: ["true"]}
"""


class Shell:
    """A shell on a terminal of its own, in a project with three agents."""

    def __init__(self, argv, project, environment):
        controller, terminal = pty.openpty()
        self.controller, self.shown, self.seen = controller, "", 0
        self.process = subprocess.Popen(
            argv,
            cwd=project,
            env=environment,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
        )
        os.close(terminal)

    def type(self, keys):
        os.write(self.controller, keys.encode())

    def wait_for(self, text):
        """Return the new output up to and including this text."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.shown[self.seen :]:
            left = deadline - time.monotonic()
            assert left > 0, f"{text!r} is not in {self.shown[self.seen :]!r}"
            if select.select([self.controller], [], [], left)[0]:
                piece = os.read(self.controller, 65536).decode(errors="replace")
                # Escape sequences and bells of the line editor are not text.
                self.shown += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\a", "", piece)
        end = self.shown.index(text, self.seen) + len(text)
        found, self.seen = self.shown[self.seen : end], end
        return found

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.controller)


@pytest.fixture(params=["bash", "zsh"])
def shell(request, tmp_path):
    name = request.param
    if shutil.which(name) is None:
        prerequisites.refuse(f"{name} is not installed")
    home, project = tmp_path / "home", tmp_path / "project"
    for folder in (home, project):
        folder.mkdir()
    (project / "rekindle.yaml").write_text(MANIFEST)
    environment = {
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "LC_ALL": "C.UTF-8",
        "TERM": "dumb",
        "PS1": "$ ",
    }
    if name == "zsh":
        (home / ".zshrc").write_text("unsetopt beep\nautoload -Uz compinit && compinit -u\n")
    subprocess.run(["/bin/sh", "-c", LINES[name]], env=environment, check=True)
    argv = {"bash": ["bash", "--noprofile", "-i"], "zsh": ["zsh", "-d", "-i"]}[name]
    opened = Shell(argv, project, environment)
    opened.type("echo rea''dy\r")
    opened.wait_for("ready")
    yield opened
    opened.close()


def test_commands_options_and_agents_are_completed(shell):
    """One Tab completes what is unique."""
    shell.type("rekindle doct\t")
    shell.wait_for("rekindle doctor ")
    shell.type("\x15rekindle relay his\t")
    shell.wait_for("history ")
    shell.type("\x15rekindle status --wat\t")
    shell.wait_for("--watch ")
    shell.type("\x15rekindle run do\t")
    shell.wait_for("rekindle run docs ")
    shell.type("\x15rekindle loops --agent tra\ti\t")
    shell.wait_for("trains ")
    assert "Error" not in shell.shown
    assert "Traceback" not in shell.shown


def ask(folder, line, **environment):
    """Return what bash would be offered for a line."""
    words = line.split(" ")
    return subprocess.run(
        [sys.executable, "-m", "rekindle"],
        cwd=folder,
        env={
            **os.environ,
            "_REKINDLE_COMPLETE": "bash_complete",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) - 1),
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("rekindle st", ["stop", "status", "statusline"]),
        ("rekindle run ", ["trades", "trains", "docs"]),
        ("rekindle relay show tra", ["trades", "trains"]),
        ("rekindle events -a d", ["docs"]),
        ("rekindle resolve tr", []),
        ("rekindle nothing sto", ["stop"]),
        ("rekindle summarize --as ", ["checkpoint", "relay", "brief"]),
    ],
)
def test_a_line_is_offered_what_fits(tmp_path, line, offered):
    (tmp_path / "rekindle.yaml").write_text(MANIFEST)
    ended = ask(tmp_path, line)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert [found.split(",")[1] for found in ended.stdout.splitlines() if found] == offered


@pytest.mark.parametrize("manifest", [None, "version: 1\nagents: [", "\0"])
def test_completion_is_silent_without_a_usable_manifest(tmp_path, manifest):
    """A message would appear in the middle of the line that is typed."""
    if manifest is not None:
        (tmp_path / "rekindle.yaml").write_text(manifest)
    ended = ask(tmp_path, "rekindle run t")
    assert (ended.returncode, ended.stdout.strip(), ended.stderr) == (0, "", "")


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_the_guide_has_a_line_for_each_shell(name, tmp_path):
    """The script that the line loads names the command."""
    assert f"_REKINDLE_COMPLETE={name}_source rekindle" in LINES[name]
    ended = ask(tmp_path, "", _REKINDLE_COMPLETE=f"{name}_source")
    assert ended.returncode == 0
    assert "_rekindle_completion" in ended.stdout
    if name == "bash":
        subprocess.run(["bash", "-n"], input=ended.stdout, text=True, check=True)
