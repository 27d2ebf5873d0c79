"""The command that a plugin's shim runs when a session starts."""

import os

import pytest

from rekindle.system.files import hook_program
from rekindle.wiring import plugin_hook


@pytest.mark.parametrize("words", [[], ["claude-code"], ["claude-code", "Stop", "more"]])
def test_wrong_arguments_are_ignored(words, capsys):
    plugin_hook.main(words)
    assert capsys.readouterr() == ("", "")


def test_an_unexpected_error_does_not_reach_the_agent(tmp_path, monkeypatch, capsys):
    """The hook program still runs if the folder cannot be set up."""
    started = []

    def fail(*_arguments) -> None:
        raise ValueError

    for name in ("REKINDLE_LAUNCH", "REKINDLE_ONE_SHOT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(plugin_hook, "prepare_folder", fail)
    monkeypatch.setattr(os, "execv", lambda _program, argv: started.append(argv[-2:]))
    plugin_hook.main(["claude-code", "SessionStart:startup"])
    assert started == [["claude-code", "SessionStart:startup"]]
    monkeypatch.setattr(hook_program, "provide_program", fail)
    plugin_hook.main(["claude-code", "Stop"])
    assert len(started) == 1
    assert capsys.readouterr() == ("", "")
