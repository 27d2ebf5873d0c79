"""Files that a project names: regular files of a sane size, or a clear error."""

import contextlib
import os
import resource
import socket
import subprocess
import sys

import pytest

from rekindle import config
from rekindle.errors import ManifestError
from rekindle.wiring.open_store import read_named_file

MANIFEST = """\
version: 1
agents: {trades: {harness: command, command: ['true'], prompt: PROMPT.md, rules: RULES.md}}
"""
MEMORY = 1 << 30


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as made, contextlib.chdir(path.parent):
        made.bind(path.name)


def make_large(path):
    with path.open("wb") as file:
        file.truncate(1 << 40)  # a hole: it takes no space


OBJECTS = {
    "fifo": (os.mkfifo, "is not a regular file"),
    "zeros": (lambda path: path.symlink_to("/dev/zero"), "is not a regular file"),
    "directory": (lambda path: path.mkdir(), "is not a regular file"),
    "socket": (make_socket, ""),
    "large": (make_large, "is larger than"),
}


@pytest.fixture
def project(tmp_path):
    for name, text in (("rekindle.yaml", MANIFEST), ("PROMPT.md", "Go.\n"), ("RULES.md", "Be.\n")):
        (tmp_path / name).write_text(text)
    return tmp_path


def bounded():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def rekindle(folder, *words):
    """Run a command with limits on time and memory."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "rekindle", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
        stdin=subprocess.DEVNULL,
        preexec_fn=bounded,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *(("PROMPT.md", kind) for kind in OBJECTS),
        *(("rekindle.yaml", kind) for kind in ("fifo", "zeros", "large")),
        ("RULES.md", "fifo"),
    ],
)
def test_run_refuses_what_it_cannot_read_whole(project, name, kind):
    (project / name).unlink()
    make, reason = OBJECTS[kind]
    make(project / name)
    code, out, err = rekindle(project, "run", "--once")
    assert code == 3, out + err
    assert f"{name}" in err
    assert reason in err
    assert "→" in err


def test_doctor_names_it_and_status_does_not_need_it(project):
    for name in ("PROMPT.md", "RULES.md"):
        (project / name).unlink()
        os.mkfifo(project / name)
    code, out, _ = rekindle(project, "doctor")
    assert code == 8
    for name in ("PROMPT.md", "RULES.md"):
        assert f"✗ trades: {name}: cannot be read: is not a regular file" in out
    assert rekindle(project, "status")[0] == 0


@pytest.mark.parametrize("key", ["prompt", "rules", "system_prompt_file"])
def test_a_link_to_a_regular_file_is_the_users_own_arrangement(project, key):
    (project / "shared.md").write_text("Shared.\n")
    (project / "link.md").symlink_to("shared.md")
    found = config.load_project(project)
    assert read_named_file(found, "link.md", key) == "Shared.\n"
    (project / "link.md").unlink()
    (project / "link.md").symlink_to("/dev/zero")
    with pytest.raises(ManifestError, match="is not a regular file") as refused:
        read_named_file(found, "link.md", key)
    assert refused.value.hint == f"create it, or correct `{key}:` in rekindle.yaml"


def test_a_huge_relay_is_set_aside_not_read(project):
    """An agent wrote it: the next command restores the last relay, in bounded memory."""
    (project / "relay.md").write_text("## Next Action\nShip\n")
    assert rekindle(project, "relay", "set", "relay.md")[0] == 0
    relay = project / ".rekindle/agents/trades/memories/consensus.md"
    relay.unlink()
    make_large(relay)
    code, out, err = rekindle(project, "status")
    assert code == 0, err
    assert "is larger than" in out
    code, out, _ = rekindle(project, "doctor")
    assert code == 8
    assert "is larger than" in out
    code, out, err = rekindle(project, "doctor", "--fix")
    assert code == 0, out + err
    assert relay.read_text() == "## Next Action\nShip\n"
    assert relay.with_name("consensus.md.rejected").stat().st_size == 1 << 40
