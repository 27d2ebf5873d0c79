"""The harness `acp` is a dictionary over the bridge's lines."""

import json
import sys
from pathlib import Path

import pytest

from rekindle.documents.launches.launch_types import (
    AssistantText,
    LaunchSpec,
    LimitReport,
    RefusedCall,
    SessionOpened,
    ToolCallFinished,
    ToolCallStarted,
    UsageReport,
    WindowUsage,
)
from rekindle.documents.manifest import Permissions, Persona
from rekindle.errors import UnenforceableError, UsageError
from rekindle.harnesses.acp import acp_harness
from rekindle.harnesses.acp.acp_harness import RULES_FILE, find_settings, make_harness, read_stream
from rekindle.harnesses.acp.acp_presets import PRESETS
from rekindle.plugins import ACP_PRESETS, Harnesses, find_program
from rekindle.testing.launch_contract import LaunchContract

ASKING = [name for name, preset in PRESETS.items() if preset.asks]
TRUSTING = [name for name, preset in PRESETS.items() if not preset.asks]


def make_command(name="opencode", **more):
    return make_harness(name).command(LaunchSpec(session="", scratch="/s", **more))


def read_rules(name="opencode", **rules):
    made = make_command(name, persona=Persona(permissions=Permissions(**rules)))
    return json.loads(made.files[RULES_FILE])


def test_each_preset_is_a_harness_of_its_own():
    """A session of one agent is never resumed by another one, because their names differ."""
    harnesses = Harnesses()
    assert set(ACP_PRESETS) == set(PRESETS)
    for name, preset in PRESETS.items():
        assert name in harnesses
        assert name == harnesses[name].NAME
        assert find_program(harnesses[name]) == preset.command[0]
    assert not set(ACP_PRESETS) & set(harnesses)
    assert {"acp", "claude-code", "kimi"} < set(harnesses.list_names().split(", "))


def test_the_bridge_starts_the_agent_and_not_a_file_of_the_workspace():
    made = make_command("kimi")
    assert made.argv[:4] == (sys.executable, "-P", "-m", acp_harness.BRIDGE)
    assert made.argv[made.inner :] == ("kimi", "acp")
    own = make_command("kimi", program=("npx", "kimi", "acp"))
    assert own.argv[own.inner :] == ("npx", "kimi", "acp")


def test_any_agent_needs_a_command():
    start = LaunchSpec(session="", scratch="/s")
    with pytest.raises(UsageError, match="names no agent") as refused:
        acp_harness.command(start)
    assert "opencode" in refused.value.hint
    given = LaunchSpec(session="", scratch="/s", program=("my-agent", "acp"))
    assert acp_harness.command(given).argv[-2:] == ("my-agent", "acp")


def test_an_agent_of_this_protocol_has_no_terminal():
    with pytest.raises(UsageError, match="terminal"):
        make_command(interactive=True)


@pytest.mark.parametrize("session", ["ses_16d3b2f3cffeZk2", "0a1b2c3d-0000-4000-8000-00000000000f"])
def test_a_session_is_resumed_by_its_id(session):
    start = LaunchSpec(session=session, resumes=True, scratch="/s", session_usd=1.5)
    argv = make_harness("qwen").command(start).argv
    assert {f"--session={session}", "--spent=1.5"} <= {*argv}


@pytest.mark.parametrize("name", TRUSTING)
@pytest.mark.parametrize(
    "rules",
    [{"allowed_tools": ["Bash"]}, {"deny": ["Bash"]}, {"ask": ["Bash"]}, {"allowed_tools": []}],
)
def test_rules_are_refused_if_the_agent_runs_calls_without_asking(name, rules):
    with pytest.raises(UnenforceableError) as refused:
        read_rules(name, **rules)
    own = PRESETS[name].instead
    assert (own or "kimi") in refused.value.hint


def test_rules_are_refused_for_an_unknown_agent():
    persona = Persona(permissions=Permissions(deny=["Bash"]))
    with pytest.raises(UnenforceableError):
        acp_harness.command(LaunchSpec(session="", program=("x",), persona=persona))


@pytest.mark.parametrize("name", ASKING)
def test_an_agent_is_made_to_ask_if_its_persona_has_rules(name):
    plain = make_command(name)
    ruled = make_command(name, persona=Persona(permissions=Permissions(deny=["Bash"])))
    preset = PRESETS[name]
    assert preset.ask_mode or preset.ask_environment
    assert not plain.environment
    assert ruled.environment == dict(preset.ask_environment)
    assert (f"--mode={preset.ask_mode}" in ruled.argv) is bool(preset.ask_mode)
    assert not any(word.startswith("--mode") for word in plain.argv)


@pytest.mark.parametrize("name", ASKING)
def test_rules_are_refused_if_the_workspace_has_settings_of_the_agent(name, tmp_path):
    """Settings can permit calls and start programs, and the agent would not ask about them."""
    (tmp_path / ".git").mkdir()
    inner = tmp_path / "work"
    inner.mkdir()
    ruled = Persona(permissions=Permissions(deny=["Bash"]))
    assert PRESETS[name].settings
    for own in PRESETS[name].settings:
        make_command(name, persona=ruled, folder=str(inner))
        for place in (inner, tmp_path):
            (place / own).symlink_to("nowhere")
            with pytest.raises(UsageError, match="permissions") as refused:
                make_command(name, persona=ruled, folder=str(inner))
            assert str(place / own) in str(refused.value)
            make_command(name, folder=str(inner))
            (place / own).unlink()


def test_settings_outside_the_repository_are_the_user_s_own(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".opencode").mkdir()
    for name in ("plain", "repository/.git"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("plain", "repository"):
        assert find_settings(str(tmp_path / name), (".opencode",)) == ""
    assert find_settings(str(tmp_path), (".opencode",)) == str(tmp_path / ".opencode")


def test_every_preset_has_recordings():
    folder = Path(__file__).parents[3] / "recordings/acp"
    recorded = {path.name.rpartition("-")[0] for path in folder.iterdir()}
    assert {*PRESETS} == recorded


def test_the_rules_reach_the_bridge():
    start = LaunchSpec(
        session="",
        scratch="/s",
        folder="/work",
        draft="/work/.rekindle/d",
        protected=("/work/.git",),
        gate_seconds=30.0,
        persona=Persona(
            permissions=Permissions(
                allowed_tools=["Read", "Edit(**)", "Bash(git log:*)", "Bash(ls *)"],
                deny=["WebFetch"],
                ask=["Bash(git push*)"],
            )
        ),
    )
    made = make_harness("opencode").command(start)
    assert json.loads(made.files[RULES_FILE]) == {
        "allowed": [["Read", ""], ["Edit", ""], ["Bash", "git log"], ["Bash", "ls"]],
        "deny": [["WebFetch", ""]],
        "ask": [["Bash", "git push"]],
        "folder": "/work",
        "draft": "/work/.rekindle/d",
        "protected": ["/work/.git"],
        "seconds": 30.0,
    }
    assert f"--rules=/s/{RULES_FILE}" in made.argv


@pytest.mark.parametrize(
    "rules",
    [
        {"allowed_tools": ["mcp__server__tool"]},
        {"allowed_tools": ["Edit(src/**)"]},
        {"allowed_tools": ["Bash(git * push)"]},
        {"allowed_tools": ["Bash, Read"]},
        {"deny": ["Read"]},
        {"deny": ["Edit(src/**)"]},
        {"ask": ["Read"]},
        {"ask": ["mcp__x"]},
    ],
)
def test_a_rule_that_agents_do_not_ask_about_is_refused(rules):
    with pytest.raises(UnenforceableError):
        read_rules(**rules)


def test_a_persona_s_text_is_given_to_a_fresh_session_only():
    fresh = make_command(instructions="Be brief.", persona=Persona(model="big"))
    assert "--instructions=/s/acp-instructions.md" in fresh.argv
    assert fresh.files["acp-instructions.md"] == "Be brief."
    assert "--model=big" in fresh.argv
    start = LaunchSpec(session="ses_12345678", resumes=True, scratch="/s", instructions="x")
    assert "acp-instructions.md" not in make_harness("opencode").command(start).files


def read(**line):
    return read_stream(json.dumps(line).encode())


def test_each_line_of_the_bridge_is_read():
    call = {"id": "c1", "tool": "Bash", "arguments": {"command": "ls"}}
    assert read(type="opened", session="ses_1", model=None, version="1.2") == (
        SessionOpened("ses_1", "", "1.2"),
    )
    assert read(type="said", text="hello") == (AssistantText("hello"),)
    assert read(type="called", **call) == (ToolCallStarted("Bash", "c1", "ls", {"command": "ls"}),)
    assert read(type="decided", decision="allow", **call) == ()
    assert read(type="decided", decision="reject", **call) == (
        RefusedCall("Bash", "ls", {"command": "ls"}, "c1"),
    )
    assert read(type="returned", id="c1", ok=True, refused=False) == (ToolCallFinished("c1"),)
    (used,) = read(type="used", tokens=90, window=100, usd=None)
    assert used == UsageReport(WindowUsage(90, 100, "reported"), acp_harness.TURN, is_context=True)
    assert used.usd is None
    (priced,) = read(type="used", tokens=90, window=100, usd=0.25)
    assert priced.usd == 0.25
    (free,) = read(type="used", tokens=90, window=100, usd=0.0)
    assert free.usd is None
    (unsized,) = read(type="used", tokens=90, window=0)
    assert unsized.usage.known == "unknown"
    assert read(type="limited", resets_at=7) == (LimitReport(7),)
    assert read(type="alive") == read(type="used") == read(type="opened") == ()


class TestAny(LaunchContract):
    harness = acp_harness


class TestOpencode(LaunchContract):
    harness = make_harness("opencode")


class TestKimi(LaunchContract):
    harness = make_harness("kimi")


class TestQwen(LaunchContract):
    harness = make_harness("qwen")
    keys = ("OPENAI_",)
