"""The shim with which a plugin finds the installed Rekindle."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rekindle.wiring.plugin_hook import REMEMBERED

SHIM = Path(__file__).parents[2] / "src/rekindle/plugin_files/shim/rekindle.sh"
START = ("hook", "claude-code", "SessionStart:startup")
TOOL = ("hook", "claude-code", "PostToolUse")


@pytest.fixture
def home(tmp_path):
    (tmp_path / "home/project").mkdir(parents=True)
    return tmp_path / "home"


def make_program(path: Path, says: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\necho {says} "$@"\ncat\n')
    path.chmod(0o755)


def run(home, *words, path="/usr/bin:/bin", cwd=None, argv=None, **environment):
    return subprocess.run(
        argv or ["/bin/sh", SHIM, *words],
        env={"PATH": path, "HOME": str(home), **environment},
        cwd=cwd or home / "project",
        input="payload\n",
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_finds_rekindle_in_the_usual_places(home, tmp_path):
    """The user's own programs come first, then the PATH."""
    make_program(tmp_path / "on path/rekindle", "path")
    assert run(home, "mcp", path=f"/bin:{tmp_path}/on path").stdout == "path mcp\npayload\n"
    make_program(home / ".local/bin/rekindle", "user")
    found = run(home, *START, path=f"{tmp_path}/on path:/bin")
    assert found.stdout == f"user {' '.join(START)}\npayload\n"


def test_it_does_not_run_a_program_of_the_session_s_folder(home):
    """An agent could have written it, and a hook runs outside the sandbox."""
    for folder in ("project", "project/.venv/bin"):
        make_program(home / folder / "rekindle", "planted")
    path = f"{home}/project/.venv/bin:.:{home}/project:/bin"
    assert run(home, "mcp", path=path).returncode == 127
    assert "planted" not in run(home, *START, path=path).stdout


@pytest.mark.parametrize("is_inline", [False, True], ids=["shim", "codex server"])
@pytest.mark.parametrize(
    "entry", ["project/bin", "project/sub/../bin", "elsewhere/../project/bin", "link/bin"]
)
def test_it_does_not_run_a_program_of_the_repository(entry, is_inline, home):
    """The session is below the repository's top, and the PATH hides where the program is."""
    make_program(home / "project/bin/rekindle", "planted")
    for folder in ("project/.git", "project/sub/deep/.git", "elsewhere"):
        (home / folder).mkdir(parents=True)  # an agent can create a repository in a repository
    (home / "link").symlink_to(home / "project")
    environment = {"path": f"{home}/{entry}:/bin", "REKINDLE_BIN": f"{home}/{entry}/rekindle"}
    argv = read_codex_server() if is_inline else None
    for cwd in (home / "project/sub/deep", home / "link/sub"):
        assert run(home, "mcp", cwd=cwd, argv=argv, **environment).returncode == 127
    moved = {"CLAUDE_PROJECT_DIR": f"{home}/project/sub"}  # after `cd` in a session
    assert run(home, "mcp", cwd=home, argv=argv, **moved, **environment).returncode == 127


def test_codex_s_server_finds_rekindle_like_the_shim(home):
    """Codex does not tell the server where the plugin is, so it cannot call the shim."""
    make_program(home / ".local/bin/rekindle", "user")
    assert run(home, argv=read_codex_server()).stdout == "user mcp\npayload\n"


def read_codex_server() -> list[str]:
    servers = json.loads((SHIM.parents[1] / "codex/.mcp.json").read_text())["mcpServers"]
    return [servers["rekindle"]["command"], *servers["rekindle"]["args"]]


def test_in_the_home_folder_the_user_s_programs_are_used(home):
    make_program(home / ".local/bin/rekindle", "user")
    assert run(home, "mcp", cwd=home).stdout == "user mcp\npayload\n"


def test_without_rekindle_it_explains_how_to_get_it(home):
    """A hook says it once, to the person, and never fails."""
    started = run(home, *START)
    assert started.returncode == 0
    assert "uv tool install rekindle-agents" in json.loads(started.stdout)["systemMessage"]
    used = run(home, *TOOL)
    assert (used.returncode, used.stdout, used.stderr) == (0, "", "")
    server = run(home, "mcp")
    assert (server.returncode, server.stdout) == (127, "")
    assert "uv tool install rekindle-agents" in server.stderr


def test_a_launch_of_a_supervisor_is_left_alone(home):
    make_program(home / ".local/bin/rekindle", "user")
    for name, value in (("REKINDLE_LAUNCH", "4f1c"), ("REKINDLE_ONE_SHOT", "")):
        assert run(home, *START, **{name: value}).stdout == ""


def test_other_events_use_the_remembered_program(home):
    """After the first start, a tool call does not start the main program."""
    (home / ".local/bin").mkdir(parents=True)
    program = home / ".local/bin/rekindle"
    program.symlink_to(Path(sys.executable).with_name("rekindle"))
    payload = {"session_id": "0b8b8a5e-3c9c-4d07-9d7c-2f7f0c2d1a11", "source": "startup"}
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home)}
    started = subprocess.run(
        ["/bin/sh", SHIM, *START],
        env=environment,
        cwd=home / "project",
        input=json.dumps(payload),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "records the sessions in" in json.loads(started.stdout)["systemMessage"]
    python, hook = (home / REMEMBERED).read_text().splitlines()
    assert Path(python).samefile(sys.executable)
    program.unlink()
    (inbox,) = (home / "project/.rekindle/agents/project/run").glob("inbox")
    before = sum(len(path.read_bytes()) for path in inbox.iterdir())
    assert run(home, *TOOL).returncode == 0
    assert b"PostToolUse" in b"".join(path.read_bytes() for path in inbox.iterdir()), before
    (home / REMEMBERED).unlink()
    assert Path(hook).exists()
    assert run(home, *TOOL).stdout == ""
