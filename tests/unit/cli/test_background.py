"""Supervisors in the background: what is started there, and with what."""

import pytest

from unit.cli.test_run import Project


@pytest.fixture
def project(place, tmp_path):
    return Project(place, tmp_path)


def test_modules_of_the_project_are_not_taken_for_our_own(project):
    """An agent's project may well have a click.py: what it says is nothing to us."""
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
