"""`rekindle top` explains what it needs: a terminal, and its extra."""

import subprocess
import sys

import pytest

MANIFEST = 'version: 1\nagents:\n  trades: {harness: command, command: ["true"]}\n'


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "rekindle.yaml").write_text(MANIFEST)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_output_that_is_not_a_terminal_is_refused(project, rekindle):
    code, _, err = rekindle("top")
    assert code == 2
    assert "`rekindle top` needs a terminal" in err
    assert "`rekindle status` prints" in err


def test_a_missing_extra_is_explained(project):
    code = (
        "import sys, importlib.util as u\n"
        "find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'textual' else find(name, *a)\n"
        "from rekindle.cli import main\n"
        "sys.exit(main.run(['top']))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert "pip install 'rekindle-agents[top]'" in ended.stderr


def test_help_does_not_load_the_screen(project):
    code = (
        "import sys\nfrom rekindle.cli import main\n"
        "main.run(['--help'])\nmain.run(['top', '--help'])\n"
        "sys.exit('textual' in sys.modules)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert ended.returncode == 0
