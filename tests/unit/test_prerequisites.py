"""A test whose prerequisite is missing is skipped by a person, and fails in CI."""

import re
from pathlib import Path

import pytest

import prerequisites

ROOT = Path(__file__).parents[2]
SILENT = re.compile(
    r"skipif\(\s*(?:shutil\.which|(?:\w+\.)?_?obstacle|bool\(_?obstacle|not PAYLOADS)"
)
"""A skip in CI as well, because of a program or a system call that CI has to have."""


def test_a_missing_prerequisite_fails_in_ci(monkeypatch, capsys):
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no loop mount"):
        prerequisites.require("no loop mount")
    assert "no loop mount" in capsys.readouterr().out
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception, match="no loop mount"):
        prerequisites.require("no loop mount")
    assert "no loop mount" in capsys.readouterr().out


@pytest.mark.parametrize("is_ci", [True, False])
def test_a_marked_test_is_not_skipped_in_ci(is_ci, monkeypatch, request):
    assert request.config.pluginmanager.has_plugin("prerequisites")
    monkeypatch.setenv("CI", "true" if is_ci else "")
    request.node.add_marker(prerequisites.needs_program("no-such-program"))
    expected = pytest.fail.Exception if is_ci else pytest.skip.Exception
    with pytest.raises(expected, match="no-such-program is not installed"):
        prerequisites.pytest_runtest_setup(request.node)


def test_nothing_in_the_way_is_not_an_obstacle():
    prerequisites.require(None)
    prerequisites.require("")
    assert prerequisites.needs_program("sh").args == (None,)


def test_ci_says_that_it_is_ci():
    assert re.search(r"^export CI=", (ROOT / ".ci/run").read_text(), re.MULTILINE)


def test_no_test_skips_silently_for_a_program_that_ci_has():
    found = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("*.py")
        if SILENT.search(path.read_text())
    ]
    assert found == []
