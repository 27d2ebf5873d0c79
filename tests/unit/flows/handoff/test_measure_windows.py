"""The size of a window: a program that prints nothing is not waited for."""

import sys
import time

import pytest

from rekindle.documents.launches.launch_types import ProgramCommand
from rekindle.flows.handoff import measure_windows as flow
from rekindle.system.processes.child_processes import HostProcesses


class Silent:
    """A program that tells a line, and then nothing more for a long time."""

    def __init__(self, folder):
        self.folder, self.environment, self.program = str(folder), {}, ()
        self.harness, self.sandbox, self.credentials = self, None, None

    def measure(self, program):
        code = "import time; print('told', flush=True); time.sleep(3600)"
        return ProgramCommand((sys.executable, "-I", "-c", code), asked="")

    def parse_window_sizes(self, output):
        return {"m": len(output)}


@pytest.mark.parametrize("stops", [True, False])
def test_it_is_ended_when_its_time_is_over_or_on_a_stop(tmp_path, monkeypatch, stops):
    monkeypatch.setattr(flow, "MEASURE_SECONDS", 3600 if stops else 1)
    began = time.monotonic()
    looked = []

    def stopped():
        looked.append(time.monotonic())
        return stops and looked[-1] - began > 1

    found = flow.measure_windows(Silent(tmp_path), HostProcesses(), stopped)
    assert found == {"m": 1}, "what it has told counts"
