"""Which changed files are results of the work."""

import pytest

from rekindle.policy.progress.artefacts import is_artefact, may_hold_artefacts


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("src/app.py", True),
        ("README.md", True),
        ("Makefile", True),
        ("", False),
        ("folder/", True),
        (".rekindle/agents/x/relay.md", False),
        ("a/.rekindle/x", False),
        ("a/.git/config", False),
        (".git", False),
        ("consensus.md", False),
        ("memories/prev_consensus.md", False),
        (".consensus-2.md", False),
        ("consensuses.md", True),
        ("relay.md", False),
        ("relay-12-abc.md", False),
        ("relay.py", True),
        ("progress.md", False),
        ("agent-progress.txt", False),
        ("run.log", False),
        ("run.log.1", False),
        ("nohup.out", False),
        ("ops.jsonl", False),
        ("data.jsonl", True),
        ("memories/archive/old.md", False),
        ("memories/old.md", True),
        ("x/memories/archive/old.py", False),
        ("memories/archive/deep/old.md", True),
        ("logs/run.txt", False),
        ("logs/run", False),
        ("logs/.env", False),
        ("logs/reader.py", True),
        ("src/log/reader.go", True),
        ("src/log/2026.csv", False),
        ("LOGS\\RUN.TXT", False),
        ("src\\App.py", True),
    ],
)
def test_a_changed_file_is_a_result(path, expected):
    """Relays, logs and what belongs to git or Rekindle are not."""
    assert is_artefact(path) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("out", True), (".cache", False), ("node_modules", False), ("venv", False), ("x.venv", True)],
)
def test_untracked_folders_in_which_results_may_be(name, expected):
    assert may_hold_artefacts(name) is expected
