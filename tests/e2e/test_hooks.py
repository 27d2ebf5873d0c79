"""`rekindle hooks install`, then the real Claude Code in a temporary home."""

import json
import shutil
import sys

import pytest

from e2e.sandbox import RELAY, SERVER, bash
from loopback.script import Text, ToolCall
from rekindle.wiring.access.trust_checks import accept_folder

pytestmark = pytest.mark.timeout(300)

CALLS = 50


def test_hooks_at_three_levels_count_every_event_once(rekindle, model, tmp_path):
    """Fifty calls, reported by hooks of project, person and plugin, make fifty heartbeats."""
    settings = rekindle.project / ".claude/settings.json"
    before = settings.read_text()
    rekindle("hooks", "install", "--for", "project")
    rekindle("hooks", "install", "--for", "user")
    rekindle("hooks", "export", str(tmp_path / "plugin"), "--harness", "claude-code")
    model.play(
        *(bash("false" if number % 10 == 9 else f"echo {number}") for number in range(CALLS)),
        Text("all done"),
    )
    run = rekindle.by_hand("hello", "--plugin-dir", str(tmp_path / "plugin"))
    assert run.wait(200) == 0
    rekindle.fold()
    beats = rekindle.events("heartbeat")
    assert len(beats) == len({one["call"] for one in beats}) == CALLS
    assert len({one["session"] for one in beats}) == 1
    assert [one["source"] for one in rekindle.events("session.started")] == ["startup"]
    assert [one["text"] for one in rekindle.events("prompt.submitted")] == ["hello"]
    assert len(rekindle.events("session.ended")) == 1
    rekindle("hooks", "uninstall", "--for", "project")
    assert settings.read_text() == before


@pytest.mark.parametrize(("allowed", "offered"), [("[Read]", {"Read"}), ("[]", set())])
def test_a_persona_has_the_tools_that_it_is_allowed_and_no_others(
    rekindle, model, allowed, offered
):
    """The person's own settings do not matter: other tools are not even offered."""
    settings = rekindle.project / ".claude/settings.json"
    settings.write_text('{"permissions": {"allow": ["Bash"], "defaultMode": "bypassPermissions"}}')
    manifest = rekindle.project / "rekindle.yaml"
    manifest.write_text(
        manifest.read_text().replace("allowed_tools: [Bash]", f"allowed_tools: {allowed}")
    )
    model.play(bash("touch made"), Text("all done"))
    rekindle("run", "--once", code=22)  # the call is refused, and nothing else was done
    # The placeholder does nothing: the CLI reserves it for tools that it might offer later.
    names = {tool["name"] for tool in model.log.main[0].body.get("tools", [])}
    assert names - {"DeferredToolPlaceholder"} == offered
    assert "drafts/trades/relay.md" not in model.log.main[0].text, "it could not write it"
    assert not (rekindle.project / "made").exists()


def with_a_server(rekindle) -> ToolCall:
    """Give the person a server that may do anything; return a call of its tool."""
    server = {"type": "stdio", "command": sys.executable, "args": ["-I", str(SERVER)]}
    person = rekindle.cli.home / ".claude.json"
    said = json.loads(person.read_text()) if person.exists() else {}
    person.write_text(json.dumps({**said, "mcpServers": {"files": server}}))
    settings = rekindle.project / ".claude/settings.json"
    settings.write_text(json.dumps({"permissions": {"allow": ["mcp__files"]}}))
    return ToolCall("mcp__files__put", {"path": str(rekindle.project / "made")})


@pytest.mark.parametrize(
    ("allowed", "is_made"), [("[Read]", False), ("[]", False), ("[Read, mcp__files__put]", True)]
)
def test_a_persona_has_a_server_s_tools_only_if_it_names_one(rekindle, model, allowed, is_made):
    """The person's own settings approve them, but the server is not even started."""
    call = with_a_server(rekindle)
    manifest = rekindle.project / "rekindle.yaml"
    manifest.write_text(
        manifest.read_text().replace("allowed_tools: [Bash]", f"allowed_tools: {allowed}")
    )
    model.play(call, Text("all done"))
    rekindle("run")
    offered = {tool["name"] for tool in model.log.main[0].body.get("tools", [])}
    assert ("mcp__files__put" in offered) is is_made
    assert (rekindle.project / "made").exists() is is_made


def test_a_plugin_that_the_cli_loads_by_itself(rekindle, model, tmp_path):
    """No settings are touched; the session is primed, and its tool call counts."""
    before = (rekindle.project / ".claude/settings.json").read_text()
    folder = tmp_path / "a plugin"
    rekindle("hooks", "export", str(folder), "--harness", "claude-code")
    accept_folder(rekindle.project)
    model.play(bash("echo from the tool"), Text("all done"))
    run = rekindle.by_hand("hello", "--plugin-dir", str(folder))
    assert run.wait() == 0, run.err
    assert RELAY.strip() in model.log.main[0].text
    rekindle.fold()
    assert len(rekindle.events("heartbeat")) == 1
    assert (rekindle.project / ".claude/settings.json").read_text() == before


def test_a_removed_rekindle_folder_blocks_no_prompt(rekindle, model):
    """Hooks whose program is gone do not affect the session."""
    rekindle("hooks", "install")
    shutil.rmtree(rekindle.project / ".rekindle")
    model.play(bash("echo from the tool"), Text("all done"))
    assert rekindle.by_hand("hello").wait() == 0
    assert [part.text for part in model.log.main[1].results] == ["from the tool"]
