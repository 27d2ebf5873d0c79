"""The questions of `init`, on a real terminal."""

import os
import pty
import subprocess
import sys
import termios

import pytest

from rekindle.documents import manifest


@pytest.fixture
def ask(tmp_path):
    """Run `init` on a terminal that is given these keys; returns its exit code and the screen."""

    def run(keys: bytes) -> tuple[int, str]:
        controller, terminal = pty.openpty()
        os.write(controller, keys)
        process = subprocess.Popen(
            [sys.executable, "-I", "-m", "rekindle", "init"],
            cwd=tmp_path,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
        )
        os.close(terminal)
        screen = b""
        try:
            while piece := os.read(controller, 65536):
                screen += piece
        except OSError:
            pass  # Linux reports the end of a terminal as EIO
        finally:
            os.close(controller)
        return process.wait(20), screen.decode()

    return run


def test_what_the_agent_may_do_is_asked_and_written(ask, tmp_path):
    """The name and the CLI as proposed, a level that does not exist, then one that does."""
    code, screen = ask(b"trades\n\nall\nread\n")
    assert code == 0, screen
    assert "What may it do (read: read only, edit: edit this folder, run: edit and run" in screen
    assert "'all' is not one of" in screen
    found = manifest.parse((tmp_path / "rekindle.yaml").read_text())
    permissions = found.personas[found.agents["trades"].persona].permissions
    assert "Write" not in permissions.allowed_tools
    assert "Read" in permissions.allowed_tools


@pytest.mark.parametrize("before", [b"", b"trades\n", b"trades\n\n"])
def test_no_answer_sets_nothing_up(ask, tmp_path, before):
    """Ctrl-D at each question: nothing is written, and the message names --yes."""
    code, screen = ask(before + bytes([termios.CEOF]))
    assert code == 2, screen
    assert "no answer" in screen
    assert "--yes" in screen
    assert "Traceback" not in screen
    assert list(tmp_path.iterdir()) == []
