"""A sandbox is refused before the start if it cannot be made, and its paths are checked."""

import msgspec
import pytest

import worktrees
from rekindle import config
from rekindle.errors import ManifestError, SandboxError
from rekindle.policy.sandbox.obstacle import SandboxObstacle
from rekindle.policy.sandbox.profile import SandboxFloor
from rekindle.policy.settings.consent import select_controlled
from rekindle.system.sandbox import container_runtime, limit_group, probe
from rekindle.wiring import agent_environment, sandbox_setup
from rekindle.wiring.open_store import open_store, read_named_file
from rekindle.wiring.starting.start_checks import find_obstacles
from rekindle.wiring.starting.start_notes import IGNORED_CPU, find_notes

MANIFEST = """\
version: 1
agents:
  trades: {{harness: command, command: ["true"], prompt: PROMPT.md, {more}}}
personas:
  default: {{{persona}}}
"""


@pytest.fixture
def load(tmp_path, monkeypatch):
    monkeypatch.setattr(probe, "find_obstacle", lambda: None)
    monkeypatch.setattr(probe, "_works", set())
    (tmp_path / "PROMPT.md").write_text("# Task\nCount.\n")

    def load(more="", persona=""):
        (tmp_path / "rekindle.yaml").write_text(MANIFEST.format(more=more, persona=persona))
        return config.load_project(tmp_path)

    return load


def find_errors(project):
    return [(str(error), error.hint) for error in find_obstacles(project, "trades")]


def test_a_host_without_sandboxes_refuses_only_agents_that_need_one(load, monkeypatch):
    obstacle = SandboxObstacle("no sandbox here", "install it, or write `sandbox: off`")
    monkeypatch.setattr(probe, "find_obstacle", lambda: obstacle)
    assert find_errors(load()) == []
    assert find_errors(load("sandbox: off")) == []
    expected = [(obstacle.words, obstacle.hint)]
    assert find_errors(load("sandbox: on")) == expected
    assert find_errors(load(persona="sandbox: on")) == expected
    assert find_errors(load("sandbox: off", "sandbox: on")) == expected
    with pytest.raises(SandboxError):
        probe.require_sandbox()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("sandbox: {write: [missing]}", "`write: missing` of the sandbox does not exist"),
        ("sandbox: {write: [link]}", "`write: link` of the sandbox leads through a link"),
        ("sandbox: {read: [link]}", "`read: link` of the sandbox leads through a link"),
        ("sandbox: on, dir: link", "`dir: link` of the sandbox leads through a link"),
        ("sandbox: on, dir: link/apt", "`dir: link/apt` of the sandbox leads through a link"),
        ("sandbox: on, keep: ['*']", "`keep:` has no effect in a sandbox"),
    ],
)
def test_what_has_no_effect_or_leads_elsewhere_is_refused(load, tmp_path, more, words):
    (tmp_path / "link").symlink_to("/etc")
    [(found, hint)] = find_errors(load(more))
    assert words in found
    assert hint


@pytest.mark.parametrize(
    ("kind", "git_folder", "is_refused"),
    [("worktree", "data", True), ("clone", "data", False), ("worktree", ".git", False)],
)
def test_a_git_folder_with_another_name_is_refused_for_a_work_tree(
    load, tmp_path, kind, git_folder, is_refused
):
    """A sandbox could not find its settings, which an agent must not write."""
    folder = tmp_path / "elsewhere" / git_folder
    folder.parent.mkdir()
    worktrees.git(tmp_path, "init", "-q", f"--separate-git-dir={folder}")
    worktrees.git(tmp_path, "config", "core.worktree", str(tmp_path))
    worktrees.git(tmp_path, "commit", "-q", "--allow-empty", "-m", "one")
    project = load(f"workspace: {kind}, sandbox: on")
    words = f"a sandbox cannot protect the settings in {folder} for a work tree"
    errors = find_errors(project)
    assert [(words in found, hint) for found, hint in errors] == (
        [(True, "use `workspace: clone`")] if is_refused else []
    ), errors


def test_the_paths_of_the_manifest_are_absolute(load, tmp_path, monkeypatch):
    for name in ("work", "cache", "home"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    project = load("dir: work, sandbox: {write: [cache, work], read: [~/]}")
    folder = open_store(project).folder("trades")
    made = sandbox_setup.make_sandbox(project, "trades", folder, str(tmp_path / "persona.md"))
    assert made.profile.write == (str(tmp_path / "cache"),)  # its own folder is writable anyway
    assert made.profile.read == (str(tmp_path / "home"), str(tmp_path / "persona.md"))
    assert made.paths.folder == str(tmp_path / "work")
    assert made.paths.own == str(tmp_path / ".rekindle/agents/trades")


def test_an_agent_without_sandbox_has_none(load):
    project = load("sandbox: off")
    folder = open_store(project).folder("trades")
    assert sandbox_setup.make_sandbox(project, "trades", folder, None) is None


def test_a_sandbox_belongs_to_the_settings_that_the_operator_accepts(load):
    controlled = select_controlled(load("sandbox: on").manifest, "trades")
    assert controlled["agents.trades.sandbox"] is True


@pytest.mark.parametrize(
    ("more", "controllers", "is_noted"),
    [
        ("sandbox: {cpu: 1.5}", (), True),
        ("sandbox: {cpu: 1.5}", ("memory", "pids"), True),
        ("sandbox: {cpu: 1.5}", ("cpu",), False),
        ("sandbox: {memory: 1G, processes: 9}", (), False),
        ("sandbox: off", (), False),
    ],
)
def test_a_limit_without_effect_is_a_note(load, monkeypatch, more, controllers, is_noted):
    monkeypatch.setattr(limit_group, "list_controllers", lambda: frozenset(controllers))
    project = load(more)
    assert find_errors(project) == []
    assert (IGNORED_CPU in [note.words for note in find_notes(project, "trades")]) is is_noted


@pytest.mark.parametrize(("controllers", "is_refused"), [((), True), (("memory",), False)])
def test_a_limit_that_nothing_can_enforce_is_refused(load, monkeypatch, controllers, is_refused):
    monkeypatch.setattr(limit_group, "list_controllers", lambda: frozenset(controllers))
    monkeypatch.setattr(probe.program_search, "find_executable", lambda name: None)
    monkeypatch.setattr(probe, "require_sandbox", lambda: "bwrap")
    errors = find_errors(load("sandbox: {memory: 1G}"))
    assert any("need prlimit" in words for words, _ in errors) is is_refused


def test_an_agent_on_a_host_reads_the_mirror_of_its_remote(load, tmp_path):
    """Its clone needs the objects there, but must not change them."""
    mirror = tmp_path.parent / "mirrors/one"
    mirror.mkdir(parents=True)
    project = msgspec.structs.replace(load("sandbox: on"), mirrors=(mirror,))
    folder = open_store(project).folder("trades")
    sandbox = sandbox_setup.make_sandbox(project, "trades", folder, None)
    assert str(mirror.resolve()) in sandbox.profile.read
    assert str(mirror.resolve()) not in sandbox.profile.write


FLOOR = SandboxFloor(memory=1 << 30, processes=64)


@pytest.mark.parametrize("more", ["", "sandbox: off", "sandbox: {memory: 8G, processes: 900}"])
def test_a_host_s_sandbox_applies_to_every_agent(load, more):
    project = msgspec.structs.replace(load(more), floor=FLOOR)
    profile = sandbox_setup.find_profile(project, "trades")
    assert (profile.memory, profile.processes) == (1 << 30, 64)


@pytest.mark.parametrize(
    ("more", "words", "step"),
    [
        (
            "sandbox: {read: [/etc]}",
            "`read: /etc` of the sandbox is outside",
            "move the files into",
        ),
        ("sandbox: {write: [~/]}", "`write: ~/` of the sandbox is outside", "move the files into"),
        ("keep: ['*']", "`keep:` has no effect in a sandbox", "`--sandbox off`"),
        (
            "sandbox: {network: ['a.example', 'localhost:80']}",
            "`network: localhost:80` of the sandbox is on the host itself",
            "an address on the network",
        ),
    ],
)
def test_an_agent_cannot_add_what_belongs_to_the_host_to_its_sandbox(load, more, words, step):
    project = load(more)
    assert words not in str(find_errors(project))
    [(found, hint)] = find_errors(msgspec.structs.replace(project, floor=FLOOR))
    assert words in found
    assert step in hint


def test_a_host_without_an_oci_runtime_refuses_a_container(load, monkeypatch):
    obstacle = SandboxObstacle("no runtime here", "install it")
    monkeypatch.setattr(container_runtime, "_works", [])
    monkeypatch.setattr(container_runtime, "find_container_obstacle", lambda: obstacle)
    expected = [(obstacle.words, obstacle.hint)]
    assert find_errors(load("sandbox: container")) == expected
    assert find_errors(load("sandbox: {container: true}")) == expected
    assert find_errors(load("sandbox: on", "sandbox: container")) == expected
    assert find_errors(load("sandbox: {container: false}")) == []


def test_a_container_has_no_terminal(load):
    with pytest.raises(ManifestError, match="has no terminal") as caught:
        sandbox_setup.check_paths(load("sandbox: container, mode: stay"), "trades")
    assert "`sandbox: on`" in caught.value.hint


@pytest.mark.parametrize("name", ["PATH", "HOME", "LD_PRELOAD"])
def test_a_host_does_not_let_an_agent_choose_which_folders_are_shown(load, name):
    project = load(f"env: {{{name}: /srv/keys, COLOR: blue}}")
    assert agent_environment.make_environment(project, "trades").variables["COLOR"] == "blue"
    project = msgspec.structs.replace(project, floor=FLOOR)
    with pytest.raises(ManifestError, match=f"sets {name}") as caught:
        agent_environment.make_environment(project, "trades")
    assert "rekindle fleet worker" in caught.value.hint


def test_a_host_reads_only_files_of_the_project(load, tmp_path):
    (tmp_path / "secret").write_text("key")
    (tmp_path / "link").symlink_to("/etc/hostname")
    project = msgspec.structs.replace(load(), floor=FLOOR)
    assert read_named_file(project, "secret", "prompt") == "key"
    for file in ("/etc/hostname", "link", "../../../../../../../../etc/hostname"):
        assert read_named_file(load(), file, "prompt")
        with pytest.raises(ManifestError, match="outside the agent's folders"):
            read_named_file(project, file, "prompt")
