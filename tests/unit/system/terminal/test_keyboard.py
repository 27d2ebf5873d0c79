"""A person at the terminal of `run`, which is a real pseudo-terminal here."""

import os
import sys

import pytest

from rekindle.system.terminal.keyboard import Keyboard

DEADLINE = 20.0


@pytest.fixture
def screen(monkeypatch):
    """The person's end of the terminal that is standard input."""
    screen, line = os.openpty()
    with os.fdopen(line) as stdin, os.fdopen(screen, "wb", buffering=0) as typed:
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(Keyboard, "_is_ours", staticmethod(lambda: True))
        yield typed


@pytest.mark.parametrize("line", [b"\n", b"  \n"])
def test_enter_is_enter(screen, line):
    told = []
    keyboard = Keyboard(lambda: told.append("text"))
    screen.write(line)
    keyboard.rest(DEADLINE)
    assert (keyboard.was_pressed(), keyboard.was_pressed(), told) == (True, False, [])


def test_text_is_reported_and_is_not_enter(screen):
    """Otherwise `Take the second` would be dropped, and the question answered with `retry`."""
    told = []
    keyboard = Keyboard(lambda: told.append("text"))
    screen.write(b"Take the second\n")
    keyboard.rest(DEADLINE)
    assert (keyboard.was_pressed(), told) == (False, ["text"])
