"""Programs of a virtual environment in the project are found first, as in the operator's shell."""

import stat

import pytest

from e2e.sandbox import TASK, Rekindle
from loopback.codex_cli import CONFIG, MODEL
from loopback.script import Text, ToolCall

pytestmark = pytest.mark.timeout(300)

MANIFEST = """\
version: 1
agents:
  trades: {{harness: {harness}, prompt: PROMPT.md, cycles: 1, until: ["true"]}}
personas:
  default: {{permissions: {{allowed_tools: [Bash]}}}}
runtime: {{relay: {{summarizer: mechanical}}}}
"""
COMMAND = "pytest"
CALLS = {
    "codex": ("codex", ToolCall("exec_command", {"cmd": COMMAND, "yield_time_ms": 30_000})),
    "claude": ("claude-code", ToolCall("Bash", {"command": COMMAND, "description": "run tests"})),
    "gemini": ("gemini", ToolCall("run_shell_command", {"command": COMMAND})),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_activated_environment_in_the_project_is_found_first(name, request, place, tmp_path):
    """The agent's `pytest` is the one of `.venv/bin`, though the system has one too."""
    cli = request.getfixturevalue(name)
    harness, call = CALLS[name]
    if name == "codex":
        cli.configure(
            f"{CONFIG.format(model=MODEL, url=cli.model.url)}\n"
            f'[projects."{cli.project}"]\ntrust_level = "trusted"\n'
        )
    (cli.project / "rekindle.yaml").write_text(MANIFEST.format(harness=harness))
    (cli.project / "PROMPT.md").write_text(TASK)
    system, venv = tmp_path / "system", cli.project / ".venv/bin"
    for folder in (system, venv):
        folder.mkdir(parents=True)
        (folder / "pytest").write_text(f"#!/bin/sh\necho {folder} > found\n")
        (folder / "pytest").chmod(stat.S_IRWXU)
    environment = cli.environment
    path = f"{venv}:{system}:{environment()['PATH']}"
    cli.environment = lambda **more: environment(**{**more, "PATH": path})
    cli.model.play(call, Text("done."))
    Rekindle(cli, place)("run", "--once")
    assert (cli.project / "found").read_text().strip() == str(venv)
