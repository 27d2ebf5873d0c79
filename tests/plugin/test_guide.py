"""The guide for harnesses, followed word by word in an empty folder, makes a plugin that works."""

import os
import shlex
import subprocess
from pathlib import Path

from documented import blocks, steps
from plugin import environment

GUIDE = Path(__file__).parents[2] / "docs/guides/write-a-harness.md"


def test_the_guide_works_when_it_is_followed(tmp_path):
    """Its files are written and its commands run, in order; the contract passes, an agent runs."""
    folder = tmp_path / "rekindle-echo"
    folder.mkdir()
    python = environment.made(tmp_path / "venv")
    variables = {
        "PATH": f"{python.parent}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "LC_ALL": "C.UTF-8",
        # Without a network: what builds the package is there already.
        "PIP_NO_BUILD_ISOLATION": "0",
        "PIP_NO_DEPS": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    said = {}
    for kind, words, body in blocks(GUIDE.read_text()):
        if words:
            path = folder / words[0]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body)
        for line, _ in steps(body) if kind == "console" else ():
            ended = subprocess.run(
                [str(python), "-m", *shlex.split(line)],
                cwd=folder,
                env=variables,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
            said[line] = ended.stdout + ended.stderr
            code = 24 if line.startswith("rekindle run") else 0
            assert ended.returncode == code, f"$ {line}\n{said[line]}"
    assert " passed" in said["pytest -q"]
    assert "out of cycles after cycle 1" in said["rekindle run --cycles 1 parrot"]
    assert os.access(python.parent / "echo-agent", os.X_OK)
