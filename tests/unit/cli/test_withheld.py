"""`run` names the variables that an agent does not get."""

import os
from pathlib import Path

import pytest

from rekindle import config
from rekindle.thresholds.screens import WITHHELD_FILE_BYTES, WITHHELD_NAMES
from rekindle.wiring.access import withheld_variables

MANIFEST = """\
version: 1
agents:
  trades:
    harness: claude-code
    env: {PASSED_TOKEN: $PASSED_TOKEN}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> config.Project:
    for name in list(os.environ):
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", "/bin")
    (tmp_path / "rekindle.yaml").write_text(MANIFEST)
    return config.load_project(tmp_path)


def test_nothing_is_missed(project, monkeypatch):
    """Variables that reach the agent, the shell's own, and unmentioned ones are not named."""
    for name in ("ANTHROPIC_API_KEY", "PASSED_TOKEN", "SSH_AUTH_SOCK", "SHLVL", "MONKEY_COUNT"):
        monkeypatch.setenv(name, "x")
    assert withheld_variables.find_withheld(project, "trades") == []


def test_the_project_s_variables_come_before_other_credentials(project, monkeypatch):
    """A name in a file of the project is the one that its programs read."""
    for name in ("AAA_API_KEY", "GH_TOKEN", "DATABASE_URL", "UNRELATED_URL"):
        monkeypatch.setenv(name, "x")
    (project.path / "app").mkdir()
    (project.path / "app" / "main.py").write_text('os.environ["DATABASE_URL"]')
    missed = withheld_variables.find_withheld(project, "trades")
    assert missed == ["DATABASE_URL", "AAA_API_KEY", "GH_TOKEN"]
    assert withheld_variables.explain_withheld("trades", missed) == (
        "trades does not get DATABASE_URL, AAA_API_KEY, GH_TOKEN from your environment"
        " (→ to pass one on, add `env: {DATABASE_URL: $DATABASE_URL}` to the agent)"
    )


def test_an_address_with_a_password_is_a_credential(project, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgres://user:pw@host/db")
    monkeypatch.setenv("DOCS_URL", "https://host:8080/a@b")
    assert withheld_variables.find_withheld(project, "trades") == ["DATABASE_URL"]


def test_no_value_is_printed_and_at_most_eight_names(project, monkeypatch):
    """A long environment stays one line."""
    for number in range(WITHHELD_NAMES + 3):
        monkeypatch.setenv(f"KEY_{number:02d}", "hidden value")
    words = withheld_variables.explain_withheld(
        "trades", withheld_variables.find_withheld(project, "trades")
    )
    assert "KEY_07 and 3 more" in words
    assert "KEY_08" not in words
    assert "hidden" not in words
    assert "\n" not in words


def test_files_that_would_hang_or_fill_the_memory_are_not_read(project, monkeypatch):
    """A pipe, a link, a large file, and what package managers install."""
    monkeypatch.setenv("DATABASE_URL", "x")
    os.mkfifo(project.path / "pipe")
    (project.path / "link").symlink_to("/dev/zero")
    (project.path / "large").write_bytes(b"DATABASE_URL " + b" " * WITHHELD_FILE_BYTES)
    (project.path / "node_modules").mkdir()
    (project.path / "node_modules" / "index.js").write_text("DATABASE_URL")
    assert withheld_variables.find_withheld(project, "trades") == []
    (project.path / ".env.example").write_text("DATABASE_URL=")
    assert withheld_variables.find_withheld(project, "trades") == ["DATABASE_URL"]
