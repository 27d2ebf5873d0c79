"""The time that a tool call waits, as a ratio to a Python that does nothing, in the same run."""

import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rekindle.system.files import hook_program

pytestmark = pytest.mark.bench

ROUNDS = 60
MEASURED = ("python", "hook")
"""The commands with a bar. The others are only printed, and run in every sixth round."""
PAYLOAD = (
    b'{"session_id":"a424fede","cwd":"/somewhere","hook_event_name":"PostToolUse",'
    b'"tool_name":"Bash","tool_input":{"command":"echo hi"},"tool_use_id":"toolu_1"}'
)
PUBLISHED = Path(__file__).parents[3] / "shared/spec/3-phoenix-protocol.md"


def published(home: Path) -> dict[str, list[str]]:
    """The scripts that the specification prints, where it and what they need are at hand."""
    if not PUBLISHED.exists() or shutil.which("jq") is None:
        return {}
    (home / "trades").mkdir()
    (home / "trades/state.json").write_text('{"agent":"trades","status":"working"}')
    scripts = re.findall(r"```bash\n(#!/bin/bash\n.*?)```", PUBLISHED.read_text(), re.DOTALL)
    found = {}
    for name, script in zip(("published start", "published heartbeat"), scripts, strict=False):
        path = home / f"{name.replace(' ', '-')}.sh"
        # In the foreground: a heartbeat that is sent to the background costs the same elsewhere.
        path.write_text(script.replace('" &', '"').replace("$DOMAIN", "trades"))
        found[name] = ["bash", str(path)]
    return found


def primed(folder: Path) -> Path:
    """An agent that has something to say to a session that begins."""
    folder.mkdir()
    (folder / "relay.md").write_text("## Next Action\nWrite the parser\n")
    for words in (["init", "--yes", "--agent", "trades"], ["relay", "set", "relay.md"]):
        argv = [sys.executable, "-I", "-m", "rekindle", *words]
        subprocess.run(argv, cwd=folder, check=True, capture_output=True)
    return folder / ".rekindle/agents/trades"


def tail(times: list[float]) -> float:
    """The time that nine of ten stay under."""
    return sorted(times)[int(len(times) * 0.9)]


def test_a_hook_costs_hardly_more_than_python_itself(tmp_path):
    """Median at most 1.3 times, and p90 at most 2 times, that of `python -I -S -c pass`."""
    program = tmp_path / "hook.pyc"
    program.write_bytes(hook_program.compile_hook())
    agent = tmp_path / "agent"
    (agent / "run/inbox").mkdir(parents=True)
    python = [sys.executable, "-I", "-S"]
    commands = {
        "python": [*python, "-c", "pass"],
        "hook": [*python, str(program), "claude-code", "PostToolUse", str(agent)],
        "start hook, with its primer": [
            *(*python, str(program), "claude-code", "SessionStart:startup"),
            str(primed(tmp_path / "primed")),
        ],
        **published(tmp_path),
    }
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    times: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(ROUNDS):
        for name, argv in commands.items():
            if number % 6 and name not in MEASURED:
                continue
            start = time.perf_counter()
            subprocess.run(argv, input=PAYLOAD, env=environment, capture_output=True, check=False)
            times[name].append(time.perf_counter() - start)
    bare = statistics.median(times["python"])
    print(f"\npython -I -S -c pass: {bare * 1000:.1f} ms")
    for name, found in times.items():
        median = statistics.median(found)
        print(f"{name}: median {median / bare:.2f}x, p90 {tail(found) / bare:.2f}x")
    assert statistics.median(times["hook"]) <= 1.3 * bare
    # Equal quantiles are compared, because a busy machine slows both down.
    assert tail(times["hook"]) <= 2 * tail(times["python"])
    assert len(list((agent / "run/inbox").iterdir())) == 1
