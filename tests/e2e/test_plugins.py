"""The plugins in the real CLIs: installed by the guide, used, and removed without a trace."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from documented import blocks, is_shown, steps
from e2e.plugin_user import FIXTURES, GUIDE, ROOT, PluginUser, read_block
from e2e.sandbox import BANNER
from loopback.script import Text, ToolCall

pytestmark = pytest.mark.timeout(600)
FILES = ROOT / "src/rekindle/plugin_files"
PROGRAMS = Path(sys.executable).parent
CALLS = {
    "claude": "mcp__plugin_rekindle_rekindle__propose_loop",
    "codex": "mcp__rekindle__propose_loop",
    "gemini": "mcp_rekindle_propose_loop",
}
"""The tool of the plugin's MCP server that opens a loop, as each CLI names it."""


@pytest.fixture(scope="session")
def wheels(tmp_path_factory):
    """Build the wheel, and return a folder with it and its dependencies."""
    folder = tmp_path_factory.mktemp("wheels")
    build = [PROGRAMS / "uv", "build", "-q", "--wheel", "--no-build-isolation"]
    subprocess.run([*build, "-p", sys.executable, "-o", folder, ROOT], check=True)
    download = [sys.executable, "-m", "pip", "-q", "download", "--only-binary", ":all:"]
    pinned = ["--require-hashes", "-r", ROOT / "requirements/runtime.txt"]
    subprocess.run([*download, "-d", folder, *pinned], check=True, capture_output=True)
    return folder


@pytest.fixture
def claude_user(request, place, tmp_path):
    """Return a person with the source's `rekindle`, and Claude Code."""
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs/rekindle").symlink_to(PROGRAMS / "rekindle")
    return PluginUser("claude", request, place, tmp_path / "programs")


@pytest.mark.parametrize("name", FIXTURES)
def test_two_minutes(name, request, place, wheels, tmp_path):
    """With the guide's three commands, a killed session is followed by one that is told of it.

    The home is empty, the folder has no manifest, and the person accepts the hooks by a key. Then
    the plugin is removed, and the CLI's settings are byte-equal.
    """
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "uv").symlink_to(PROGRAMS / "uv")
    person = PluginUser(name, request, place, programs)
    person.write_settings()
    before = person.read_settings()
    install, add, start = read_block(name)
    assert start == name

    begun = time.monotonic()
    offline = {"UV_OFFLINE": "1", "UV_NO_INDEX": "1", "UV_FIND_LINKS": str(wheels)}
    person.run(install, **offline, UV_PYTHON=sys.executable, UV_CACHE_DIR=str(tmp_path / "cache"))
    shown = person.run(add, keys="y\n")
    assert f"✓ {name}: plugin" in shown
    assert shown.count("rekindle.sh") > 3  # the commands that the person accepts
    note = ToolCall(CALLS[name], {"id": "marker", "text": "Tend to the marker"})
    person.model.play(person.long_call(), note, Text("begun again"))
    person.kill_in_tool_call(person.start_session("count the stars"))
    assert person.start_session("hello").wait() == 0
    told = person.told(1)
    assert told.count(BANNER) == 1
    assert "  Task: count the stars\n" in told
    assert "notes that outlive this session" in json.dumps(person.model.log.main[1].body)  # skill
    assert "  Tend to the marker\n" in person.run("rekindle loops")
    print(f"{name}: 3 commands, {time.monotonic() - begun:.1f} s")

    git = ["git", "-C", person.project, "status", "--porcelain"]
    assert subprocess.run(git, check=True, capture_output=True).stdout == b"?? working\n"
    for kind, words, body in blocks(GUIDE):
        if kind == "console":
            for line, lines in steps(body.replace("claude", name)):
                printed = person.run(line).splitlines()
                assert is_shown(lines, printed), (words, printed)
    assert person.read_settings() == before
    assert not list((person.home / ".local/share/rekindle").iterdir())


def test_nothing_is_installed_without_a_yes(claude_user):
    """Without a terminal or with another key, the CLI's settings stay as they are."""
    claude_user.write_settings()
    before = claude_user.read_settings()
    assert "--trust" in claude_user.run("rekindle plugin install claude", code=2)
    declined = claude_user.run("rekindle plugin install claude", keys="n\n")
    assert "· claude: not installed" in declined
    assert claude_user.read_settings() == before


def test_hooks_and_plugin_together_report_once(claude_user):
    """The primer is in the request once, and each event is in the log once."""
    claude_user.run("rekindle plugin install claude --trust")
    claude_user.run("rekindle hooks install --for user --harness claude-code")
    claude_user.model.play(Text("one"), Text("two"))
    assert claude_user.start_session("count the stars").wait() == 0
    claude_user.run("rekindle loops add marker 'Tend to the marker'")
    assert claude_user.start_session("hello").wait() == 0
    assert claude_user.told(1).count("Tend to the marker") == 1
    claude_user.run("rekindle resolve marker 'It takes the reports over.'")
    lines = claude_user.run("rekindle events --json --last 0").splitlines()
    kinds = [json.loads(line)["kind"] for line in lines]
    for kind in ("session.started", "prompt.submitted", "session.ended"):
        assert kinds.count(kind) == 2, kind


def test_an_outdated_or_broken_plugin_is_reported_and_updated(claude_user, tmp_path):
    """An older version, or a folder that is gone, is named by `status`; `install` replaces it."""
    shutil.copytree(FILES, tmp_path / "older")
    manifest = tmp_path / "older/claude/.claude-plugin/plugin.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"version": "0.0.1"}))
    claude_user.run(f"claude plugin install rekindle --marketplace {tmp_path / 'older'}")
    outdated = claude_user.run("rekindle plugin status", code=8)
    assert "✗ claude: the plugin has version 0.0.1, but Rekindle has" in outdated
    shutil.rmtree(tmp_path / "older")
    assert "its files are gone" in claude_user.run("rekindle plugin status", code=8)
    claude_user.run("rekindle plugin install claude --trust")
    assert "✓ claude: plugin" in claude_user.run("rekindle plugin status")


def test_without_rekindle_a_session_works(claude_user):
    """The hooks fail silently for the model, and tell the person how to get Rekindle."""
    claude_user.run("rekindle plugin install claude --trust")
    (claude_user.cli.bin / "rekindle").unlink()
    claude_user.model.play(Text("done"))
    session = claude_user.start_session("hello")
    assert session.wait() == 0
    assert "rekindle-agents" not in claude_user.told(0)
    assert not (claude_user.project / ".rekindle").exists()


def test_claude_code_accepts_the_plugin(claude_user):
    """Its strict check passes, and the plugin takes fewer than 150 tokens in every session."""
    for folder in (FILES / "claude", FILES, ROOT):
        claude_user.run(f"claude plugin validate --strict {folder}")
    claude_user.run("rekindle plugin install claude --trust")
    details = claude_user.run("claude plugin details rekindle")
    [cost] = [line for line in details.splitlines() if "Always-on:" in line]
    assert int(cost.split("~")[1].split()[0]) < 150, cost
    print(cost)


@pytest.mark.parametrize("folder", [FILES / "gemini", ROOT], ids=["package", "repository"])
def test_gemini_cli_accepts_the_extension(folder, gemini):
    argv = [*gemini.headless[:2], "extensions", "validate", str(folder)]
    checked = gemini.launch(argv, "").wait()
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "successfully validated" in checked.stdout + checked.stderr


GIT_SERVER = """\
import pathlib, signal, sys
from git_server import GitServer
with GitServer(pathlib.Path(sys.argv[1])) as server:
    pathlib.Path(sys.argv[2]).write_text(server.url)
    signal.pause()
"""
FROM_ADDRESS = {
    "claude": ["claude plugin install rekindle --marketplace {url}"],
    "codex": ["codex plugin marketplace add {url}", "codex plugin add rekindle@rekindle"],
    "gemini": ["gemini extensions install {url} --consent"],
}


@pytest.mark.torture
@pytest.mark.parametrize("name", FIXTURES)
def test_the_repository_s_address_is_enough(name, request, place, tmp_path):
    """The CLI's own commands install the plugin from a git server; its hooks then report."""
    served, programs, told = tmp_path / "served", tmp_path / "programs", tmp_path / "url"
    for folder in (served, programs):
        folder.mkdir()
    (programs / "rekindle").symlink_to(PROGRAMS / "rekindle")
    source = tmp_path / "source"
    files = (".claude-plugin", ".agents", "gemini-extension.json", "hooks", "skills")
    for part in (*files, "src/rekindle/plugin_files"):
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        (source / part).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / part, source / part)
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-C", str(source)]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], check=True)
    bare = served / "rekindle.git"
    subprocess.run(["git", "clone", "-q", "--bare", source, bare], check=True)

    person = PluginUser(name, request, place, programs)
    person.write_settings()
    argv = [sys.executable, "-c", GIT_SERVER, str(served), str(told)]
    person.start(*argv, PYTHONPATH=str(ROOT / "tests"))
    url = place.wait_for(lambda: (told.exists() and told.read_text()) or None)
    for line in FROM_ADDRESS[name]:
        person.run(line.format(url=f"{url}/rekindle.git"), GEMINI_CLI_TRUST_WORKSPACE="true")
    person.run("rekindle plugin status", code=8 if name == "codex" else 0)  # no hook trust yet
    if name == "codex":
        person.run("rekindle plugin install codex --trust")
    person.model.play(Text("done"))
    assert person.start_session("hello").wait() == 0
    assert "session.started" in person.run("rekindle events")
    person.run(f"rekindle plugin remove {name}")
    assert f"· {name}: not installed" in person.run("rekindle plugin status")
