"""The entry of the program: on an unsupported system it says so before any import fails."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from rekindle.errors import UsageError

ROOT = Path(__file__).parents[3]
ENTRIES = {
    "rekindle": "from rekindle.__main__ import main; main()",
    "python -m rekindle": "import runpy; runpy.run_module('rekindle', run_name='__main__')",
}
PROGRAM = """
import atexit, json, sys
sys.platform = "win32"
sys.modules["fcntl"] = sys.modules["click"] = None  # importing one would be an error
before = set(sys.modules)
atexit.register(lambda: print(json.dumps(sorted(set(sys.modules) - before))))
"""


@pytest.mark.parametrize("entry", ENTRIES)
def test_windows_is_refused_before_anything_is_imported(entry):
    """It is refused with a sentence and the code of a usage error, not with a missing module."""
    program = [sys.executable, "-c", PROGRAM + ENTRIES[entry]]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode == UsageError.exit_code == 2
    assert "does not run on Windows" in ended.stderr
    assert "Traceback" not in ended.stderr
    ours = {one for one in json.loads(ended.stdout) if one.startswith("rekindle")}
    assert ours <= {"rekindle", "rekindle.__main__"}


def test_the_installed_program_starts_there():
    """The script that an installation makes is the entry that refuses."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = ("rekindle", "rekindle-agents")  # the second is the name of the distribution
    scripts = dict(project["scripts"])
    # The agent of the tutorial runs anywhere: it imports nothing from Rekindle.
    assert scripts.pop("rekindle-demo-agent") == "rekindle.demo.stand_in_agent:run"
    assert scripts == dict.fromkeys(names, "rekindle.__main__:main")
