"""An agent's clone on a host is prepared once, and again if its lock files change."""

import msgspec
import pytest

from rekindle import config
from rekindle.errors import AgentError
from rekindle.wiring import agent_workspaces
from rekindle.wiring.prepared_clone import make_preparing_opener
from throwaway import Repository, isolate

FIRST, LATER = True, False
"""Whether a launch is the first one of its cycle."""
MANIFEST = """\
version: 1
agents: {{a: {{harness: command, command: cat, dir: work{more}}}}}
fleet: {{address: "localhost:7233"}}
"""


@pytest.fixture
def load(tmp_path, monkeypatch):
    isolate(monkeypatch, tmp_path / "home")
    Repository(tmp_path / "work").init().commit("package-lock.json", "{}\n")

    def load(more=", prepare: [npm, ci]"):
        (tmp_path / "rekindle.yaml").write_text(MANIFEST.format(more=more))
        project = config.load_project(tmp_path)
        return msgspec.structs.replace(project, mirrors=(tmp_path / "mirror",))

    return load


def test_the_command_runs_again_only_if_it_or_a_lock_file_has_changed(load, tmp_path):
    runs = []
    prepare = lambda: runs.append(1)  # noqa: E731
    open_clone = make_preparing_opener(load(), "a")
    for _ in range(3):
        open_clone(prepare, FIRST)
    assert len(runs) == 1
    (tmp_path / "work/package-lock.json").write_text('{"new": 1}\n')
    open_clone(prepare, LATER)
    assert len(runs) == 1, "the agent has just changed it, in the middle of a cycle"
    open_clone(prepare, FIRST)
    assert len(runs) == 2
    make_preparing_opener(load(", prepare: [npm, install]"), "a")(prepare, FIRST)
    assert len(runs) == 3


def test_a_new_clone_is_prepared_even_in_the_middle_of_a_cycle(load):
    """Another host has begun the cycle."""
    runs = []
    make_preparing_opener(load(), "a")(lambda: runs.append(1), LATER)
    assert runs


def test_a_command_that_failed_runs_again(load):
    runs = []

    def fail():
        runs.append(1)
        raise AgentError("no network", hint="")

    open_clone = make_preparing_opener(load(), "a")
    for _ in range(2):
        with pytest.raises(AgentError):
            open_clone(fail, FIRST)
    assert len(runs) == 2


def test_only_clones_on_a_host_are_prepared_this_way(load, tmp_path):
    assert make_preparing_opener(load(""), "a") is None
    (tmp_path / "rekindle.yaml").write_text(MANIFEST.format(more=", prepare: [npm, ci]"))
    assert make_preparing_opener(config.load_project(tmp_path), "a") is None


def test_the_setting_is_accepted_on_a_fleet_and_used_by_the_supervisor(load):
    project = load()
    agent_workspaces.check_workspace(project, "a")
    runs = []
    agent_workspaces.make_opener(project, "a")(lambda: runs.append(1), FIRST)
    assert runs
