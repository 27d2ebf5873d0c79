"""Forked children: ended once, whatever comes in between."""

import os
import signal
import threading

import pytest

from rekindle.system.processes import (
    forked_worker,
    stop_signals,
)
from rekindle.system.processes.forked_worker import ForkedChild


def test_a_signal_while_it_is_waited_for_has_it_killed_only_once(monkeypatch):
    """Ctrl-C between waiting and forgetting: the cleanup finds it gone."""
    child = ForkedChild(lambda say: signal.pause())
    real = os.waitpid

    def waitpid(pid, flags):
        found = real(pid, flags)
        # In this very moment, and to this thread: those of the test runner hold nothing back.
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        return found

    monkeypatch.setattr(forked_worker.os, "waitpid", waitpid)
    with pytest.raises(KeyboardInterrupt), stop_signals.raise_keyboard_interrupt():
        child.kill()
    monkeypatch.undo()
    child.close()
    assert child.is_over()
