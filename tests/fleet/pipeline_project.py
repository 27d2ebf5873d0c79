"""A project with a pipeline whose workers are a small program."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from rekindle.wiring.access import trust_checks

AGENT = Path(__file__).with_name("pipeline_agent.py")
_USER = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]


def git(*words: str, cwd: Path | None = None) -> str:
    return subprocess.run(
        ["git", *_USER, *words], cwd=cwd, check=True, capture_output=True, text=True, timeout=60
    ).stdout


def make_pipeline_project(
    folder: Path, fleet: dict[str, Any], items: int, seconds: float = 0.0
) -> Path:
    """Create a clone of a bare repository with the pipeline `ship`: plan, build each item, test."""
    bare, project = folder / "remote.git", folder / "project"
    git("init", "-q", "--bare", "-b", "main", str(bare))
    git("clone", "-q", str(bare), str(project))
    (project / ".gitignore").write_text(".rekindle/\nrekindle.yaml\n")
    git("add", "-A", cwd=project)
    git("commit", "-qm", "begin", cwd=project)
    git("push", "-q", "origin", "HEAD:main", cwd=project)
    names = " ".join(f"item{number:02}.txt" for number in range(items))
    program = [sys.executable, "-I", str(AGENT)]
    entry = {
        "harness": "command",
        "command": program,
        "env": {"STEP_SECONDS": str(seconds)},
        "prompt": "PROMPT.md",
    }
    steps = [
        {"id": "plan", "prompt": f"PLAN {items}", "outputs": {"items": "items.json"}},
        {
            "id": "build",
            "depends_on": ["plan"],
            "prompt": "BUILD {{ item }} OF {{ steps.plan.outputs.items }} now",
            "strategy": {"matrix": {"from": "plan.items", "max_concurrency": items}},
        },
        {"id": "test", "depends_on": ["build"], "run": ["sh", "-c", f"cat {names} > all.txt"]},
    ]
    manifest = {
        "version": 1,
        "agents": {"helper": entry},
        "personas": {
            "default": {"sandbox": False},
            "summarizer": {"adapter": "command", "command": ["false"]},
        },
        "pipelines": {"ship": {"steps": steps}},
        "fleet": fleet,
    }
    (project / "rekindle.yaml").write_text(json.dumps(manifest, indent=1))
    (project / "PROMPT.md").write_text("Wait.\n")
    trust_checks.accept_folder(project)
    return project
