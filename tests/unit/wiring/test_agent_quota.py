"""An account is a CLI with one configuration folder, which the agent's variables name."""

import pytest

from rekindle import config
from rekindle.documents.launches.route import Route
from rekindle.wiring.agent_quota import find_config_folder


@pytest.fixture
def project(tmp_path):
    (tmp_path / "rekindle.yaml").write_text(
        "version: 1\n"
        "agents:\n"
        "  own: {harness: codex}\n"
        "  work: {harness: codex, env: {CODEX_HOME: $WORK_FOLDER}}\n"
        "  plain: {harness: command, command: [cat]}\n"
    )
    return config.load_project(tmp_path)


def test_the_folder_follows_the_variable_of_the_cli(project, tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "link"))
    monkeypatch.setenv("WORK_FOLDER", str(tmp_path / "work"))
    assert find_config_folder(project, "own", Route("codex")) == str(tmp_path / "real")
    assert find_config_folder(project, "work", Route("codex")) == str(tmp_path / "work")


def test_the_folder_is_in_the_home_by_default(project, tmp_path, monkeypatch):
    monkeypatch.delenv("CODEX_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_config_folder(project, "own", Route("codex")) == str(tmp_path / ".codex")


def test_a_plain_program_has_no_folder(project):
    assert find_config_folder(project, "plain", Route("command")) == ""
