"""Commands in several folders."""

import pytest

from rekindle.cli import main


@pytest.fixture
def rekindle_in(tmp_path, monkeypatch, capsys):
    """Run a command in a folder; return its code and its output."""
    monkeypatch.delenv("REKINDLE_AGENT", raising=False)

    def run(folder, *arguments):
        (tmp_path / folder).mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / folder)
        code = main.run(list(arguments))
        out, err = capsys.readouterr()
        return code, out + err

    return run
