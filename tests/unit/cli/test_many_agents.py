"""Several agents in one project: the folder decides which one is meant."""

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from rekindle import config
from rekindle.documents import events
from rekindle.documents.hooks import hook_settings
from rekindle.wiring.open_store import open_store

DOMAINS = ("desk", "lab", "orders")


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Create a home and a project, without anything of this machine."""
    for name in ("home", "project"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("CLAUDE_CONFIG_DIR", "XDG_DATA_HOME", "REKINDLE_AGENT", "REKINDLE_FOLDER"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def rekindle(root, rekindle):
    """Return a function that runs commands in the project."""
    return rekindle


@pytest.fixture
def project(rekindle, root):
    """Create three agents, each with its own folder and relay."""
    project = root / "project"
    assert rekindle("init", "--yes", "--agent", DOMAINS[0])[0] == 0
    entries = "".join(
        f"  {name}: {{harness: claude-code, dir: {name}, prompt: PROMPT.md}}\n" for name in DOMAINS
    )
    (project / "rekindle.yaml").write_text(f"version: 1\nagents:\n{entries}")
    for name in DOMAINS:
        (project / name / "deep").mkdir(parents=True)
        (project / "relay.md").write_text(f"## Next Action\nTend to {name} now\n")
        assert rekindle("relay", "set", "relay.md", "--agent", name)[0] == 0
    return project


def commands(path: Path) -> dict[str, str]:
    """Return the command lines of the hooks in a settings file, by event and source."""
    found = hook_settings.find_installed(path.read_text(), path.name)
    return {one.command.event: one.hook["command"] for one in found}


def started_by_hand(command: str, folder: Path, session: str, **more: str) -> str:
    """Return the primer of a session in `folder`, as the CLI runs the hook."""
    payload = {"session_id": session, "cwd": str(folder), "source": "startup"} | more
    ended = subprocess.run(
        ["/bin/sh", "-c", command],
        input=json.dumps(payload).encode(),
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": os.environ["HOME"]},
        capture_output=True,
        check=True,
    )
    return ended.stdout.decode()


def recorded(project: Path) -> dict[str, list[str]]:
    """Return the sessions that each agent knows."""
    store = open_store(config.load_project(project))
    found = {}
    for name in DOMAINS:
        with store.writer(name) as writer:
            writer.fold()
        log = store.events_since(name, 0).events
        found[name] = [one.session for one in log if isinstance(one, events.SessionStarted)]
    return found


def test_commands_take_the_agent_whose_folder_it_is(rekindle, project, monkeypatch):
    """`loops`, `resolve`, `relay` and `status` need no --agent below an agent's `dir:`."""
    code, _, err = rekindle("loops")
    assert (code, "which agent?" in err) == (2, True)
    monkeypatch.chdir(project / "lab/deep")
    assert rekindle("loops", "add", "sensor", "Which sensor?")[0] == 0
    assert "sensor" in rekindle("loops", "--agent", "lab")[1]
    assert rekindle("relay", "show")[1].count("Tend to lab now") == 1
    status = json.loads(rekindle("status", "--json")[1])
    assert [one["agent"] for one in status["agents"]] == ["lab"]
    assert rekindle("questions", "--json")[0] == 0
    monkeypatch.chdir(project / "orders")
    assert rekindle("resolve", "sensor", "done")[0] == 7
    monkeypatch.chdir(project / "lab")
    assert rekindle("resolve", "sensor", "done")[0] == 0
    monkeypatch.chdir(project)
    status = json.loads(rekindle("status", "--json")[1])
    assert [one["agent"] for one in status["agents"]] == list(DOMAINS)


def test_sessions_by_hand_are_each_told_their_own_relay(rekindle, project, root):
    """Hooks are installed once, for the user; the folder of a session decides its agent."""
    assert rekindle("hooks", "install", "--for", "user")[0] == 0
    start = commands(root / "home/.claude/settings.json")["SessionStart:startup"]
    for name in DOMAINS:
        told = started_by_hand(start, project / name, f"session-of-{name}")
        assert [other for other in DOMAINS if f"Tend to {other} now" in told] == [name]
    assert recorded(project) == {name: [f"session-of-{name}"] for name in DOMAINS}


def test_hooks_of_another_agent_than_the_folder_s_report_nothing(rekindle, project):
    """A CLI also reads the hooks of a folder above, which name the agent above."""
    assert rekindle("hooks", "install", "--all")[0] == 0
    start = commands(project / "desk/.claude/settings.local.json")["SessionStart:startup"]
    assert started_by_hand(start, project / "lab", "one") == ""
    assert recorded(project) == {name: [] for name in DOMAINS}


def test_an_edited_manifest_counts_for_the_next_session(rekindle, project, root):
    """The list for hooks is rebuilt when a session starts, and only then."""
    assert rekindle("hooks", "install", "--for", "user")[0] == 0
    start = commands(root / "home/.claude/settings.json")["SessionStart:startup"]
    (project / "elsewhere").mkdir()
    assert started_by_hand(start, project / "elsewhere", "one") == ""
    manifest = project / "rekindle.yaml"
    manifest.write_text(manifest.read_text().replace("dir: lab", "dir: elsewhere"))
    assert "Tend to lab now" in started_by_hand(start, project / "elsewhere", "two")
    assert started_by_hand(start, project / "lab", "three") == ""


def test_hooks_of_another_agent_are_never_replaced(rekindle, project):
    """Of two agents with one CLI in one folder the second is refused, and the first stays."""
    manifest = project / "rekindle.yaml"
    manifest.write_text(manifest.read_text().replace("dir: lab", "dir: desk"))
    assert rekindle("hooks", "install", "--agent", "desk")[0] == 0
    settings = project / "desk/.claude/settings.local.json"
    before = settings.read_bytes()
    code, _, err = rekindle("hooks", "install", "--agent", "lab")
    assert (code, "has the hooks of agent desk" in err) == (2, True)
    assert settings.read_bytes() == before
    code, out, err = rekindle("hooks", "install", "--all")
    assert (code, out.count("✓"), "✗ lab" in err) == (2, len(DOMAINS) - 1, True)
    assert settings.read_bytes() == before
    fix = shlex.split(err.rpartition("`rekindle ")[2].partition("`")[0])
    assert rekindle(*fix)[0] == 0
    assert rekindle("hooks", "install", "--agent", "lab")[0] == 0


def test_hooks_installed_for_all_are_removed_for_all(rekindle, project):
    """No settings file, no folder and no record is left."""

    def files():
        return {path for path in project.rglob("*") if "agents" not in path.parts}

    before = files()
    assert rekindle("hooks", "install", "--all")[0] == 0
    code, out, _ = rekindle("hooks", "status")
    assert (code, out.count("local: installed")) == (0, len(DOMAINS))
    assert rekindle("hooks", "uninstall", "--all")[0] == 0
    assert files() - {project / ".rekindle/dirs"} == before


def test_hooks_are_found_after_dir_was_changed(rekindle, project):
    """Their record finds them, which names no folder outside the project."""
    assert rekindle("hooks", "install", "--agent", "lab")[0] == 0
    manifest = project / "rekindle.yaml"
    manifest.write_text(manifest.read_text().replace("dir: lab", "dir: desk/deep"))
    settings = project / "lab/.claude/settings.local.json"
    assert str(settings) in rekindle("hooks", "status")[1]
    (record,) = (project / ".rekindle").glob("hooks-*.json")
    text = record.read_text()
    record.write_text(text.replace('"folder":"lab"', '"folder":"../home"'))
    assert str(settings) not in rekindle("hooks", "status")[1]
    record.write_text(text)
    assert rekindle("hooks", "uninstall", "--all")[0] == 0
    assert not settings.exists()


def test_a_folder_that_is_not_there_is_not_made(rekindle, project):
    (project / "lab/deep").rmdir()
    (project / "lab").rmdir()
    code, _, err = rekindle("hooks", "install", "--agent", "lab")
    assert (code, "there is no folder" in err) == (2, True)
    assert not (project / "lab").exists()


LIFE = (
    ("SessionStart:startup", {"source": "startup"}),
    ("UserPromptSubmit", {"prompt": "hello", "prompt_id": "p1"}),
    ("PostToolUse", {"tool_name": "Bash", "tool_use_id": "t1"}),
    ("PreCompact", {"trigger": "auto"}),
    ("SessionStart:compact", {"source": "compact"}),
    ("SessionEnd", {"reason": "other"}),
    ("SessionStart:resume", {"source": "resume"}),
    ("SessionEnd", {"reason": "other"}),
)


def test_hooks_at_three_levels_record_each_event_once(rekindle, project, root):
    """One session with hooks of person, project and plugin ends and is resumed."""
    assert rekindle("hooks", "install", "--for", "user")[0] == 0
    assert rekindle("hooks", "install", "--agent", "lab")[0] == 0
    assert rekindle("hooks", "export", str(root / "plugin"), "--harness", "claude-code")[0] == 0
    levels = [
        commands(root / "home/.claude/settings.json"),
        commands(project / "lab/.claude/settings.local.json"),
        commands(root / "plugin/hooks/hooks.json"),
    ]
    told = [
        started_by_hand(level[event], project / "lab", "one", **more)
        for event, more in LIFE
        for level in levels
    ]
    assert sum("Tend to lab now" in text for text in told) == 1
    store = open_store(config.load_project(project))
    with store.writer("lab") as writer:
        writer.fold()
    reports = [
        one for one in store.events_since("lab", 0).events if isinstance(one, events.HOOK_REPORTS)
    ]
    assert [type(one).__name__ for one in reports] == [
        "SessionStarted",
        "PromptSubmitted",
        "Heartbeat",
        "SessionCompacted",
        "SessionStarted",
        "SessionEnded",
        "SessionStarted",
        "SessionEnded",
    ]
