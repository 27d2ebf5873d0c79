"""The notes at the start tell what an agent without a persona really does."""

import pytest

from rekindle import config
from rekindle.wiring.starting.start_notes import explain_reach_of, find_notes


def load(folder, harness, permissions=""):
    persona = f"personas:\n  default: {{permissions: {permissions}}}\n" if permissions else ""
    agent = f"agents:\n  docs: {{harness: {harness}}}\n"
    (folder / "rekindle.yaml").write_text(f"version: 1\n{agent}{persona}")
    return config.load_project(folder)


@pytest.mark.parametrize(
    ("harness", "permissions", "words"),
    [
        ("opencode", "", "opencode runs commands and writes files without asking"),
        ("kilo", "", "Kilo runs commands and writes files without asking"),
        ("kimi", "", "waits for your answer"),
        ("opencode", "{deny: [WebFetch]}", "waits for your answer"),
    ],
)
def test_a_note_tells_who_decides_about_calls(tmp_path, harness, permissions, words):
    project = load(tmp_path, harness, permissions)
    (note,) = find_notes(project, "docs")
    assert words in note.words
    assert explain_reach_of(project, "docs") == ("", False)


def test_a_persona_with_tools_needs_no_note(tmp_path):
    project = load(tmp_path, "opencode", "{allowed_tools: [Read, Edit]}")
    assert list(find_notes(project, "docs")) == []
    assert explain_reach_of(project, "docs") == ("", False)
    project = load(tmp_path, "opencode", "{allowed_tools: [Read]}")
    assert explain_reach_of(project, "docs")[0] == "persona default permits only reading"


def test_a_cli_that_refuses_calls_is_described_as_before(tmp_path):
    project = load(tmp_path, "claude-code")
    assert "refuses to write" in explain_reach_of(project, "docs")[0]
