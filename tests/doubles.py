"""Test doubles for a CLI and its processes."""

from rekindle.documents.launches.launch_types import SweptProcesses
from rekindle.flows.supervisor_ports import SupervisorPorts
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.system import clock


class Unbraked:
    """The part of a harness without a brake between two turns, and without a quota."""

    def brake(self, *, interactive):
        return None

    def measure(self, program):
        return None

    def parse_window_sizes(self, output):
        return {}

    def refused_calls(self, transcript):
        return ()

    def quota(self, line):
        return None


class Done:
    """A process that reports its session and exits."""

    pid, code, errors = 7, 0, ""

    def follow(self, every):
        yield b"opened"

    def ask_to_end(self):
        pass

    kill = ask_to_end


class NoBackground:
    """The background part of a host's processes, with no process in it."""

    def identify(self, pid):
        return ""

    def background(self, mark, *, boot, uptime, program):
        return ()

    def end(self, processes, *, patience):
        return SweptProcesses()

    def is_alive(self, process):
        return False


class Quiet(NoBackground):
    """A host on which nothing else runs."""

    def boot(self):
        return "boot"

    def uptime(self):
        return 1.0

    def end_launch_processes(self, mark, *, boot, uptime, patience, recorded=(), program=""):
        return SweptProcesses()

    def vitals(self, pid, mark, *, boot, uptime):
        return None


def quiet_world(store, processes, tell=lambda report: None):
    """Return a world without interrupts or notifications, whose time is the clock's."""
    return SupervisorPorts(
        store=store,
        processes=processes,
        settings=Settings(),
        clock=clock.read_clock,
        elapsed=lambda: 0.0,
        rest=lambda seconds: None,
        interrupted=lambda: 0,
        by_hand=lambda: False,
        enter_pressed=lambda: False,
        tell=tell,
        notify=lambda what, words: None,
    )
