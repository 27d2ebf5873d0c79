"""The mutations that are made, and that the tool tells a tested decision from an untested one."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mutation.mutate import UNIT, find_tests, list_pure_modules
from mutation.mutations import list_mutations

TOOL = Path(__file__).with_name("mutate.py")
WHOLE = os.environ.get("REKINDLE_TORTURE") == "whole"


@pytest.mark.parametrize(
    ("source", "changes"),
    [
        ("x = a < b", ["a <= b"]),
        ("x = a and not b", ["a or not b", "b"]),
        ("x = 3", ["4", "2"]),
        ("x = True", ["False"]),
        ("x = a + b", ["a - b"]),
        ("x = b if a else c", ["c if a else b"]),
        ("if a:\n    x = b", ["if not a:"]),
        ("def f():\n    '''Text.'''\n    return a", ["return None"]),
        ("def f():\n    a()", ["pass"]),
        ("def f(x: 'int | None' = 3) -> 4: ...", ["4", "2"]),
        ("class A(B, frozen=True): ...", []),
        ("X = A | B", []),
        ("x = zip(a, b, strict=True)", []),
        ("x = lru_cache(maxsize=8)", []),
        ("def f():\n    assert_never(a)", []),
    ],
)
def test_the_changes_of_a_source(tmp_path, source, changes):
    path = tmp_path / "module.py"
    path.write_text(source)
    mutations = list_mutations("module", path)
    assert [mutation.after for mutation in mutations] == changes


def test_a_mutation_is_compiled_with_its_change_alone(tmp_path):
    path = tmp_path / "module.py"
    path.write_text("first = 1 < 1\nsecond = 1 < 1\n")
    changed = next(each for each in list_mutations("module", path) if each.after == "1 <= 1")
    names: dict[str, bool] = {}
    exec(changed.compile(), names)  # noqa: S102 - the code of this test
    assert (names["first"], names["second"]) == (True, False)
    assert path.read_text() == "first = 1 < 1\nsecond = 1 < 1\n"


def test_an_edit_elsewhere_does_not_change_what_is_drawn(tmp_path):
    path = tmp_path / "module.py"
    path.write_text("x = a < b\n")
    (before,) = list_mutations("module", path)
    path.write_text("# comment\n\nx = a < b\n")
    (after,) = list_mutations("module", path)
    assert (before, before.rank("s")) == (after, after.rank("s"))
    assert (before.line, after.line) == (1, 3)


def mutate(*arguments):
    """Run the tool; return its result."""
    environment = {**os.environ, "PYTHONPATH": str(TOOL.parents[1])}
    environment.pop("REKINDLE_TORTURE", None)  # of the tests that it runs
    argv = [sys.executable, str(TOOL), *map(str, arguments)]
    return subprocess.run(argv, capture_output=True, text=True, check=False, env=environment)


def test_the_tool_fails_below_its_bar():
    """No bar above 100 percent can be reached."""
    done = mutate(4, "--only", "backoff", "--bar", 101)
    assert done.returncode == 1, done.stderr
    assert "of    4  rekindle." in done.stdout


@pytest.mark.torture
@pytest.mark.timeout(2400 if WHOLE else 900)
def test_nine_of_ten_mutations_are_caught():
    """A sample; `just torture` takes a larger one."""
    done = mutate(1000 if WHOLE else 100, "--bar", 90)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"[1-9]\d+ of \d+ caught", done.stdout)


def test_every_pure_module_has_a_test_file_of_its_name():
    """It is in the folder of the same theme, and imports the module."""
    modules = list_pure_modules()
    first = {module: (files or [Path()])[0] for module, files in find_tests(modules).items()}
    expected = {
        module: UNIT.joinpath(*module.split(".")[1:-1], f"test_{path.stem}.py")
        for module, path in modules.items()
    }
    assert first == expected
