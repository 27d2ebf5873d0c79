"""Builds of Rekindle whose workflows differ, and processes that decide with them."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import rekindle

SLEEP = """

_step = AgentWorkflow._run_next


async def _sleep_first(self):
    if {condition}:
        await workflow.sleep(0.01)
    await _step(self)


AgentWorkflow._run_next = _sleep_first
"""
INCOMPATIBLE = SLEEP.format(condition="True")
"""A change that the history of another build does not fit."""
PATCHED = SLEEP.format(condition='workflow.patched("later")')
"""The same change for a new history only. Older builds cannot replay that history."""
_STARTING_SECONDS = 120


def copy_build(folder: Path, change: str) -> Path:
    """Copy the package with a change of the agent's workflow."""
    source = Path(rekindle.__file__).parent
    shutil.copytree(source, folder / "rekindle", ignore=shutil.ignore_patterns("__pycache__"))
    with (folder / "rekindle/fleet/agent/workflow.py").open("a") as code:
        code.write(change)
    return folder


@contextmanager
def decider(project: Path, build: str, code: Path | None = None) -> Iterator[Path]:
    """Run a process that only decides; return its output."""
    said = project.parent / f"decider-{build}-{time.monotonic_ns()}.said"
    argv = [sys.executable, "-m", "rekindle", "fleet", "decider", "--trust", "--build", build]
    environ = os.environ | ({"PYTHONPATH": str(code)} if code else {})
    with said.open("wb") as output:
        process = subprocess.Popen(
            argv, cwd=project, stdout=output, stderr=subprocess.STDOUT, env=environ
        )
    try:
        deadline = time.monotonic() + _STARTING_SECONDS
        while "decides for the agents" not in said.read_text():
            assert process.poll() is None, said.read_text()
            assert time.monotonic() < deadline, "it does not start"
            time.sleep(0.05)
        yield said
    finally:
        process.terminate()
        assert process.wait(60) == 0, said.read_text()
