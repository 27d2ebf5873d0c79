"""Whatever looks through processes or signals them runs where only the test's own can be seen."""

import json
import os
import sys
from textwrap import dedent

import pytest

from loopback.fixtures import network, place

__all__ = ["inside", "network", "place"]


@pytest.fixture(params=["linux_processes", "psutil_processes"], ids=["linux", "portable"])
def kernel(request):
    """Both ways to look at processes: the one that Linux has, and the one for all others."""
    return request.param


@pytest.fixture
def inside(kernel, place, tmp_path):
    """Run a program in a place of its own; gives what it printed as JSON."""
    package = "rekindle.system.processes"
    chosen = f"from {package} import process_api, {kernel}\nprocess_api.here = {kernel}\n"

    def run(code, timeout=60, **environment):
        started = place.start(
            [sys.executable, "-c", chosen + dedent(code)],
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"} | environment,
            cwd=tmp_path,
        )
        assert started.wait(timeout) == 0, started.err
        return json.loads(started.out)

    return run
