"""Thirty agents over three hosts: their project, and the facts after the run.

The tests check the events, from the histories.
"""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import rekindle
from fleet.audit import Told
from rekindle.documents.commits import work_commit as document
from rekindle.policy.fleet.agent_registry import RegisteredAgent

TIMEOUT = 6
"""Seconds without a heartbeat after which a host has lost its agents."""
NEW_BUILD = "9.9.9"
AGENT = Path(__file__).with_name("agent.py")
_NAMED = ["-c", "user.name=t", "-c", "user.email=t@example.com"]


class Addressed(Protocol):
    """An engine: the development server, or a cluster."""

    @property
    def address(self) -> str: ...


@dataclass
class Fault:
    """A fault of a host: its kind, its time, and the sessions that ran there."""

    what: str
    host: str
    at: datetime
    sessions: dict[str, dict[str, Any]]
    """By launch: the process, and its agent."""
    over: datetime | None = None


@dataclass(frozen=True)
class Refusal:
    """The answer to a commit with a lost lease."""

    fault: str
    agent: str
    answer: str


@dataclass
class Crowd:
    """The facts after the run."""

    remote: Path
    roots: dict[str, Path]
    """The folder of each host's agents."""
    faults: list[Fault] = field(default_factory=list)
    told: dict[str, Told] = field(default_factory=dict)
    kept: dict[str, RegisteredAgent] = field(default_factory=dict)
    survivors: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The sessions before and after the engine's death, by launch."""
    leftovers: dict[str, list[str]] = field(default_factory=dict)
    """The sessions of a fault that still ran a while after its host was back."""
    rolled: dict[str, datetime] = field(default_factory=dict)
    refusals: list[Refusal] = field(default_factory=list)
    elsewhere: str = ""
    """The answer to a commit in a foreign namespace."""
    seconds: float = 0.0
    engine_away: float = 0.0

    def fault(self, what: str) -> Fault:
        return next(one for one in self.faults if one.what == what)

    def takeovers(self, fault: Fault) -> dict[str, float]:
        """Return the time from the fault until the next host had each agent with an open cycle."""
        found = {}
        for told in self.told.values():
            lost = told.held_at(fault.at, fault.host)
            if lost is None or lost.how == "COMPLETED":
                continue  # its last message was on its way already
            later = told.next_after(lost)
            assert later is not None, f"no host took {told.agent}"
            assert later.taken_at is not None
            found[told.agent] = (later.taken_at - fault.at).total_seconds()
        return found


def make_project(
    folder: Path,
    engine: Addressed,
    agents: dict[str, dict[str, Any]],
    finish: Path,
    heartbeat_seconds: int = TIMEOUT,
) -> Path:
    """Create a clone of a bare repository, with a manifest for all agents."""
    bare, project = folder / "remote.git", folder / "project"
    git("init", "-q", "--bare", "-b", "main", str(bare))
    git("clone", "-q", str(bare), str(project))
    (project / "README").write_text("lines\n")
    git("add", "README", cwd=project)
    git(*_NAMED, "commit", "-qm", "begin", cwd=project)
    git("push", "-q", "origin", "HEAD:main", cwd=project)
    (project / "PROMPT.md").write_text("Write the list, a line in each cycle.\n")
    usual = {"cycles": 0, "until": ["test", "-e", str(finish)]}
    scripted = {"harness": "command", "command": [sys.executable, "-I", str(AGENT)]}
    entries = {
        name: usual | (scripted if "harness" not in more else {}) | more
        for name, more in agents.items()
    }
    manifest = {
        "version": 1,
        "agents": entries,
        "personas": {
            "summarizer": {"adapter": "command", "command": ["false"]},
            "coder": {"permissions": {"allowed_tools": ["Bash"]}},
        },
        # The facts of a run must not depend on the time of day.
        "runtime": {"brief": {"at": "never"}},
        "fleet": {"address": engine.address, "heartbeat_timeout": f"{heartbeat_seconds}s"},
    }
    (project / "rekindle.yaml").write_text(json.dumps(manifest, indent=1))
    return project


def another_build(folder: Path) -> Path:
    """Copy the package as a version that exists nowhere else."""
    source = Path(rekindle.__file__).parent
    shutil.copytree(source, folder / "rekindle", ignore=shutil.ignore_patterns("__pycache__"))
    first = folder / "rekindle/__init__.py"
    text, count = re.subn(
        r'__version__ = "[^"]+"', f'__version__ = "{NEW_BUILD}"', first.read_text()
    )
    assert count == 1
    first.write_text(text)
    return folder


def git(*words: str, cwd: Path | None = None) -> str:
    return subprocess.run(
        ["git", *words], cwd=cwd, check=True, capture_output=True, text=True, timeout=60
    ).stdout


def snapshots(remote: Path, agent: str) -> list[document.WorkSnapshot]:
    """Return the snapshots along an agent's work branch, oldest first."""
    found = git("log", "--format=%H %P", f"rekindle/{agent}/work", cwd=remote).splitlines()
    parents = {line.split()[0]: line.split()[1:] for line in found}
    at, made = git("rev-parse", f"rekindle/{agent}/work", cwd=remote).strip(), []
    while at:
        snapshot = document.parse(git("log", "-1", "--format=%B", at, cwd=remote))
        if snapshot is None:
            break
        made.append(snapshot)
        # The last parent is the earlier tip of the branch.
        at = parents[at][-1] if parents[at] else ""
    return made[::-1]
