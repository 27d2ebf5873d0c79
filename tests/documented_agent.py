"""The agent of the guide to the Python API: it asks for a database, and is done when it has one."""

import sys
from pathlib import Path

PROGRAM = """\
import os, pathlib, signal, sys
told, name = sys.stdin.read(), os.environ["REKINDLE_AGENT"]
draft = pathlib.Path(os.environ["REKINDLE_FOLDER"].replace("/agents/", "/drafts/"), "relay.md")
if "Take sqlite" in told:
    pathlib.Path(f".done-{name}").touch()  # hidden, so that it is not work of the other agents
    draft.write_text("## Key Decisions Made\\n- Use sqlite\\n\\n## Next Action\\nShip the form.\\n")
else:
    draft.write_text("## Next Action\\nWaiting for Ann to choose a database\\n")
if name.endswith("-killed") and not pathlib.Path(".killed").exists():
    pathlib.Path(".killed").touch()
    os.kill(os.getppid(), signal.SIGKILL)
"""


def write_project(folder: Path, *agents: str, more: str = "") -> None:
    """Write a manifest with these agents, and their program."""
    program = folder / "agent.py"
    program.write_text(PROGRAM)
    (folder / "PROMPT.md").write_text("Build the form.\n")
    entries = "".join(
        f"  {name}: {{harness: command, command: [{sys.executable}, {program}], "
        f"until: [test, -e, .done-{name}]}}\n"
        for name in agents
    )
    (folder / "rekindle.yaml").write_text(f"version: 1\nagents:\n{entries}{more}")
