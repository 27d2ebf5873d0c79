"""The questions of `init`, on a real terminal."""

import termios
from types import SimpleNamespace

import click
import pytest

from rekindle.cli import main
from rekindle.documents import manifest
from rekindle.wiring.access.trust_checks import is_trusted
from terminals import run_on_terminal


@pytest.fixture
def ask(tmp_path):
    """Run `init` on a terminal with these keys; return its exit code and the screen."""

    def run(keys: bytes) -> tuple[int, str]:
        code, screen = run_on_terminal("init", keys=keys, cwd=tmp_path)
        return code, screen.decode()

    return run


def test_permissions_are_asked_for_and_written(ask, tmp_path):
    """The test accepts name and CLI, types an unknown level, then a known one."""
    code, screen = ask(b"trades\n\nall\nread\n")
    assert code == 0, screen
    assert (
        "What may the agent do (read: read only, edit: edit this folder, run: edit and run"
        in screen
    )
    assert "'all' is not one of" in screen
    found = manifest.parse((tmp_path / "rekindle.yaml").read_text())
    permissions = found.personas[found.agents["trades"].persona].permissions
    assert "Write" not in permissions.allowed_tools
    assert "Read" in permissions.allowed_tools


@pytest.mark.parametrize("answers", [[], ["trades", "claude-code"]], ids=["first", "last"])
def test_ctrl_c_at_a_question_leaves_the_folder_untrusted(tmp_path, monkeypatch, answers):
    """A manifest that is created there later is not accepted yet."""
    left = list(answers)

    def answer(*_, **__):
        if left:
            return left.pop(0)
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(click, "prompt", answer)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    assert main.run(["init"]) != 0
    assert left == []
    assert list(tmp_path.iterdir()) == []
    assert not is_trusted(tmp_path)


def test_a_folder_that_init_has_set_up_is_trusted(ask, tmp_path):
    code, screen = ask(b"trades\n\nedit\n")
    assert code == 0, screen
    assert is_trusted(tmp_path)


@pytest.mark.parametrize("before", [b"", b"trades\n", b"trades\n\n"])
def test_without_answers_nothing_is_set_up(ask, tmp_path, before):
    """After Ctrl-D at each question nothing is written, and the message names --yes."""
    code, screen = ask(before + bytes([termios.CEOF]))
    assert code == 2, screen
    assert "the question was not answered" in screen
    assert "--yes" in screen
    assert "Traceback" not in screen
    assert list(tmp_path.iterdir()) == []
