"""Supervisors in the background: their program and environment."""

import shutil
import signal

import pytest

from unit.cli.running.test_run_command import (
    MANIFEST,
    Project,
)


@pytest.fixture
def project(place, tmp_path):
    return Project(place, tmp_path)


def test_modules_of_the_project_are_not_taken_for_our_own(project):
    """An agent's project may have a click.py, which we must not import."""
    for name in ("click", "msgspec", "rekindle", "logging"):
        (project.path / f"{name}.py").write_text("open('taken', 'w').close(); raise SystemExit(3)")
    project.claude("done()")
    assert "started" in project("up").out
    project.place.wait_for(lambda: not project.place.processes())
    assert project.exits() == ["clean"]
    assert not (project.path / "taken").exists()


def test_the_service_takes_none_of_them_either(project):
    """The unit starts the daemon in the project's folder."""
    unit = project("service", "install", "--kind", "systemd", "--print").out
    assert '"-P" "-m" "rekindle" "daemon"' in unit


def test_a_daemon_outlives_a_manifest_that_cannot_be_read(project):
    """A half-written manifest is reported, and counts once it is fixed."""
    manifest = project.path / "rekindle.yaml"
    watched = MANIFEST + "runtime:\n  watch: {every: 0.2s}\n"
    manifest.write_text(watched)
    project.claude(
        """
        open(f"up-{os.getppid()}", "w").close()
        time.sleep(600)
        """
    )
    daemon = project.start("daemon")
    project("up")

    def came_up():
        return {int(path.name.split("-")[1]) for path in project.path.glob("up-*")}

    project.place.wait_for(lambda: len(came_up()) == 1)
    manifest.write_text(watched + "  what is this\n")
    project.place.wait_for(lambda: "rekindle.yaml" in daemon.out, 20)
    manifest.write_text(watched)
    (supervisor,) = came_up()
    project.place.signal(supervisor, signal.SIGKILL)
    project.place.wait_for(lambda: len(came_up()) == 2, 20)
    assert daemon.pid in project.place.living()
    project("stop")


def test_watch_starts_a_dead_supervisor_whose_run_folder_is_gone(project):
    """`run/` belongs to this host and may be removed, by `git clean` or from a copied project."""
    project.claude(
        """
        open(f"up-{os.getppid()}", "w").close()
        time.sleep(600)
        """
    )

    def came_up():
        return {int(path.name.split("-")[1]) for path in project.path.glob("up-*")}

    project("up")
    project.place.wait_for(lambda: len(came_up()) == 1)
    (supervisor,) = came_up()
    project.place.signal(supervisor, signal.SIGKILL)
    project.place.wait_for(lambda: supervisor not in project.place.living())
    (run,) = project.path.glob(".rekindle/agents/*/run")
    shutil.rmtree(run)
    assert "started: its supervisor is gone" in project("watch", "--once").out
    project.place.wait_for(lambda: len(came_up()) == 2, 20)
    project("stop")
