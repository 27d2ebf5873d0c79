"""A project's folder is wiped or replaced under a running supervisor: never two agents."""

import signal

import pytest

from guarded import AGENT, Guarded

LOST = 12
SUPERVISED = 6
ENVIRONMENTS = {
    "cron": {"HOME": "/", "LOGNAME": "root", "SHELL": "/bin/sh", "PATH": "/usr/bin:/bin"},
    "ssh": {
        "HOME": "/root",
        "USER": "someone",
        "XDG_RUNTIME_DIR": "/run/user/1234",
        "XDG_STATE_HOME": "/run/user/1234/state",
        "SSH_CONNECTION": "192.0.2.1 1 192.0.2.2 22",
    },
    "systemd": {
        "INVOCATION_ID": "0123456789abcdef0123456789abcdef",
        "STATE_DIRECTORY": "/var/lib/other",
        "XDG_STATE_HOME": "/var/lib/other/state",
        "XDG_DATA_HOME": "/var/lib/other/data",
    },
}


@pytest.fixture
def project(place, tmp_path):
    return Guarded(place, tmp_path)


def test_after_git_clean_up_has_one_agent_again(project):
    """The first supervisor ends its agent before the second one may start its own."""
    project("up")
    agent, supervisor = project.until_up()
    project.git("clean", "-fdxq")
    assert not project.log.exists()
    project("up")
    second = project.until_up(after=1)
    assert second[0] != agent
    assert second[1] != supervisor
    assert project.supervisors() == [second[1]]
    assert project.agents() == [second[0]]
    assert project.told("fault") == []
    assert "✓ trades: stopped" in project("stop").out
    project.until_gone()


def test_who_lost_its_folder_says_so_and_does_not_make_it_again(project):
    running = project.start("run")
    project.until_up()
    project.git("clean", "-fdxq")
    assert running.wait() == LOST
    assert "run/supervisor was removed or replaced; the agent was stopped" in running.err
    assert "rekindle up trades" in running.err
    assert not (project.path / ".rekindle").exists()
    assert project.agents() == []


def test_no_environment_hides_a_supervisor_from_another(project):
    """The supervisor is frozen, so that it does not notice the loss of its folder."""
    running = project.start("run", **ENVIRONMENTS["systemd"])
    agent, supervisor = project.until_up()
    project.place.signal(supervisor, signal.SIGSTOP)
    project.git("clean", "-fdxq")
    for refused in [project.start("run", **ENVIRONMENTS[one]) for one in ENVIRONMENTS]:
        assert refused.wait() == SUPERVISED, refused.out + refused.err
    assert "running" in project("watch", "--once").out
    assert project.agents() == [agent]
    assert "stopped" in project("stop", **ENVIRONMENTS["cron"]).out
    assert running.wait() in {LOST, 130}
    project.until_gone()
    assert project.told("fault") == []


def test_an_older_copy_put_back_ends_no_cycle_twice(place, tmp_path):
    """The supervisor exits instead of writing into a log that it does not know."""
    project = Guarded(place, tmp_path, seconds=0.05)
    running = project.start("run")
    folder, kept = project.path / ".rekindle", tmp_path / "kept"
    place.wait_for(lambda: bool(project.events("cycle.ended")))
    project.copy_state(kept)
    known = len(project.events("cycle.ended", kept / "agents" / AGENT / "ops.jsonl"))
    place.wait_for(lambda: len(project.events("cycle.ended")) > known + 1)
    folder.rename(tmp_path / "newer")
    kept.rename(folder)
    assert running.wait() == LOST
    assert project.agents() == []
    assert project.repeated_ends() == []


def test_stop_needs_no_manifest(project):
    """It finds the holder of this folder's lock, whatever happened to rekindle.yaml."""
    project("up")
    project.until_up()
    (project.path / "rekindle.yaml").write_text("agents: [what is this\n")
    stopping = project("stop")
    assert "trades: stopped" in stopping.out
    assert "rekindle.yaml" in stopping.err
    project.until_gone()
    project.git("checkout", "rekindle.yaml")
    assert "stopped by the operator" in project("watch", "--once").out
    assert project.supervisors() == []
