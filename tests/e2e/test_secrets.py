"""A run in which the agent prints, uses and writes hundreds of secrets: none leaves it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.sandbox import MANIFEST, RELAY, TASK
from fakes import fakes
from sampling import WHOLE

pytestmark = pytest.mark.timeout(300)

COUNT = 1_000 if WHOLE else 300
DOORS = 5
STAND_IN = '''\
"""Speaks like Claude Code, and of nothing but secrets."""
import json, subprocess, sys
from pathlib import Path

options = dict(word[2:].partition("=")[::2] for word in sys.argv[1:] if word.startswith("--"))
session = options.get("resume") or options["session-id"]
hooks = json.loads(Path(options["settings"]).read_text())["hooks"]
said, done, asked, written, complained = json.loads(Path("secrets.json").read_text())


def say(**fields):
    print(json.dumps({"session_id": session, **fields}), flush=True)


def tell(event, **fields):
    payload = json.dumps({"session_id": session, "hook_event_name": event, **fields})
    for entry in hooks[event]:
        for one in entry["hooks"]:
            subprocess.run(["sh", "-c", one["command"]], input=payload.encode(), check=True)


def assistant(block):
    say(type="assistant", message={"model": "m", "content": [block]}, parent_tool_use_id=None)


say(type="system", subtype="init", model="m")
for number, line in enumerate(asked):
    tell("UserPromptSubmit", prompt=line, prompt_id=str(number))
for line in said:
    assistant({"type": "text", "text": line})
for number, line in enumerate(done):
    command = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": line}}
    assistant(command)
tell("PostToolUse", tool_name="Bash", tool_input={"command": done[0]}, tool_use_id="t0")
notes = "".join(f"- {line}\\n" for line in written)
relay = Path(".rekindle/agents/trades/memories/consensus.md")
relay.write_text(f"## Current Phase\\n{notes}\\n## Next Action\\n{written[0]}\\n")
for line in complained:
    print(line, file=sys.stderr)
if "resume" in options:
    say(type="result", subtype="success", is_error=False, result=" ".join(said[:9]))
else:
    say(type="result", subtype="success", is_error=True, result=" ".join(complained[:9]))
    sys.exit(1)
'''


def test_no_secret_of_a_run_is_anywhere(place, tmp_path):
    """None is in a file, a git object or the output, whether said, done, asked or written."""
    made = list(fakes(7, COUNT))
    lines = [[fake.line for fake in made[door::DOORS]] for door in range(DOORS)]
    project, programs = tmp_path / "project", tmp_path / "bin"
    project.mkdir()
    programs.mkdir()
    (programs / "claude").write_text(f"#!{sys.executable} -I\n{STAND_IN}")
    (programs / "claude").chmod(0o755)
    for name, text in (("rekindle.yaml", MANIFEST), ("PROMPT.md", TASK), ("relay.md", RELAY)):
        (project / name).write_text(text)
    (project / "secrets.json").write_text(json.dumps(lines))
    # A snapshot contains every file that git does not ignore.
    (project / ".gitignore").write_text("secrets.json\n")
    environment = {
        "PATH": f"{programs}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
        "LC_ALL": "C.UTF-8",
    }
    subprocess.run(["git", "init", "-q", str(project)], check=True, env=environment)
    printed = []

    def rekindle(*words: str, code: int = 0) -> None:
        argv = [sys.executable, "-I", "-m", "rekindle", *words]
        ended = place.start(argv, env=environment, cwd=project)
        assert ended.wait() == code, ended.err[-2000:]
        printed.extend((ended.out, ended.err))

    rekindle("relay", "set", "relay.md")
    rekindle("run")  # it fails and continues
    rekindle("run", "--json")
    for words in (["status"], ["status", "--json"], ["events", "-n", "0"], ["relay", "show"]):
        rekindle(*words)
    rekindle("events", "--json", "-n", "0")
    rekindle("relay", "history")
    objects = subprocess.run(
        ["git", "-C", str(project), "cat-file", "--batch-all-objects", "--batch"],
        check=True,
        capture_output=True,
        env=environment,
    ).stdout.decode("utf-8", "replace")
    assert objects.count("Rekindle-Seq") >= 2
    kept = [_text(path) for path in (project / ".rekindle").rglob("*") if path.is_file()]
    everything = "\n".join([*printed, *kept, objects])
    assert "redacted" in everything
    found = [fake.secret for fake in made if fake.secret in everything]
    assert found == []


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")
