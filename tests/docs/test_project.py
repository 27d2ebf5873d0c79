"""The files of the project agree with each other: metadata, workflows and recipes."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from trove_classifiers import classifiers

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OTHER_PROGRAM = re.compile(
    r"\b(?:pip|uv|uvx|pipx|poetry)3?(?: tool)?(?: install| run| add)?(?: -\S+)*"
    r" ['\"]?rekindle(?![-\w])"
)
"""A command that installs `rekindle` from the package index, which is another program."""


def list_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


@pytest.mark.parametrize(
    "line",
    [
        "pip install rekindle",
        "python -m pip install --upgrade rekindle",
        "pip install 'rekindle[fleet]'",
        "uv tool install rekindle",
        "uv add rekindle",
        "uvx rekindle demo",
        "pipx run rekindle",
    ],
)
def test_a_command_that_installs_another_program_is_found(line):
    assert OTHER_PROGRAM.search(line)
    assert not OTHER_PROGRAM.search(line.replace("rekindle", "rekindle-agents"))


def test_no_file_installs_another_program():
    """The package is `rekindle-agents`; `rekindle` on the package index is unrelated."""
    files = list_files()
    assert ROOT / "README.md" in files
    for path in files:
        if path != Path(__file__):
            found = OTHER_PROGRAM.search(path.read_text(encoding="utf-8", errors="replace"))
            assert found is None, f"{path}: {found[0] if found else ''}"


def supported_versions() -> list[str]:
    pattern = re.compile(r"Programming Language :: Python :: (3\.\d+)")
    return [match[1] for line in PROJECT["classifiers"] if (match := pattern.fullmatch(line))]


def test_the_classifiers_exist_and_name_each_supported_python():
    """The oldest one is `requires-python`, and the linter's target; none is left out."""
    assert set(PROJECT["classifiers"]) <= classifiers
    versions = supported_versions()
    oldest, newest = (int(version.partition(".")[2]) for version in (versions[0], versions[-1]))
    assert versions == [f"3.{minor}" for minor in range(oldest, newest + 1)]
    assert PROJECT["requires-python"] == f">={versions[0]}"
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    assert tools["ruff"]["target-version"] == f"py3{oldest}"


def test_the_package_and_its_commands_have_their_names():
    """`uvx rekindle-agents` finds a command with the name of the package."""
    assert PROJECT["name"] == "rekindle-agents"
    scripts = PROJECT["scripts"]
    assert scripts.keys() == {"rekindle", "rekindle-agents", "rekindle-demo-agent"}
    assert scripts["rekindle"] == scripts["rekindle-agents"]


def test_each_extra_that_a_hint_names_exists():
    """`rekindle-agents[fleet]` in a message, a page or the README can be installed."""
    named = set()
    for path in list_files():
        text = path.read_text(encoding="utf-8", errors="replace")
        named |= set(re.findall(r"\brekindle-agents\[(\w+)\]", text))
    assert named == PROJECT["optional-dependencies"].keys()


def test_the_pinned_requirements_have_hashes_and_name_no_index():
    files = sorted((ROOT / "requirements").glob("*.txt"))
    assert len(files) == 3
    for path in files:
        text = path.read_text()
        assert "://" not in text, path
        assert not re.search(r"^\s*-", text.replace("    --hash=", ""), re.MULTILINE), path
        pins = re.findall(r"^[a-z][\w.-]*==\S+.*(?:\n    --hash=\S+.*)+", text, re.MULTILINE)
        assert len(pins) == len(re.findall(r"^[a-z]", text, re.MULTILINE)), path
