"""ARCHITECTURE.md is short, and its claims about the code are true."""

import ast
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/rekindle"
TEXT = (ROOT / "ARCHITECTURE.md").read_text()
QUOTED = sorted(
    set(re.findall(r"`([A-Za-z_][\w./]*)`", re.sub("```.*?```", "", TEXT, flags=re.DOTALL)))
)
ELSEWHERE = {"PostToolUse", "ops.jsonl", "state.json", "run/inbox", "os", "time", "docs/reference"}
"""Names of a CLI's event, of files that Rekindle writes, of Python's modules, and of a folder."""


def parsed():
    """Yield each module of the package with its syntax tree."""
    for path in SOURCE.rglob("*.py"):
        yield path, ast.parse(path.read_text())


def find_names():
    """Return the names of all classes and functions, also with their module or class."""
    found = set()
    for path, tree in parsed():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found |= {node.name, f"{path.stem}.{node.name}"}
                inner = node.body if isinstance(node, ast.ClassDef) else []
                found |= {
                    f"{node.name}.{one.name}" for one in inner if isinstance(one, ast.FunctionDef)
                }
    return found


def test_no_module_is_longer_than_400_lines():
    """A longer one mostly holds two ideas."""
    lengths = {path: len(path.read_text().splitlines()) for path in SOURCE.rglob("*.py")}
    assert len(lengths) > 100
    assert {str(path): length for path, length in lengths.items() if length > 400} == {}


def test_no_two_modules_or_classes_share_a_name():
    """A name that is used twice sends a reader to the wrong place."""
    modules = [path.stem for path in SOURCE.rglob("*.py") if path.stem != "__init__"]
    classes = [
        node.name
        for _, tree in parsed()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    ]
    for names in (modules, classes):
        assert [name for name, count in Counter(names).items() if count > 1] == []


@pytest.fixture(scope="module")
def names():
    return find_names()


def is_known(quoted, names):
    """Return whether a name is a path of the package, one of its types or functions."""
    return (SOURCE / quoted).exists() or (SOURCE / f"{quoted}.py").exists() or quoted in names


@pytest.mark.parametrize("quoted", [one for one in QUOTED if one not in ELSEWHERE])
def test_every_name_in_it_exists(quoted, names):
    """A renamed module, type or function must be renamed here too."""
    assert is_known(quoted, names)


def test_a_wrong_name_is_noticed(names):
    assert len(QUOTED) > 40
    for wrong in ("policy/nothing.py", "Writer.melt", "record_event.fold", "Superviser"):
        assert not is_known(wrong, names)


def test_it_is_short():
    """Two pages, with a diagram and a dozen terms."""
    assert len(TEXT.splitlines()) <= 120
    assert TEXT.count("```mermaid") == 1
    terms = TEXT.partition("## Terms")[2].partition("\n## ")[0]
    assert 12 <= len(re.findall(r"^\| (?!term|-)", terms, re.MULTILINE)) <= 13


def test_its_layers_are_those_that_import_linter_checks():
    """The table has every layer, from the top down."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    [checked] = [one["layers"] for one in contracts["contracts"] if one["type"] == "layers"]
    table = TEXT.partition("## Layers")[2].partition("\n## ")[0]
    shown = [
        name
        for row in table.splitlines()
        if row.startswith("| `")
        for name in re.findall(r"`(\w+)`", row.split("|")[1])
    ]
    assert ["__main__", *shown] == [name for layer in checked for name in layer.split(" | ")]


def test_only_one_module_calls_fsync():
    found = {
        path.relative_to(SOURCE).as_posix()
        for path, tree in parsed()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in {"fsync", "fdatasync", "F_FULLFSYNC"}
    }
    assert found == {"system/files/durable_files.py"}
