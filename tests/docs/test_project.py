"""The files of the project agree with each other: metadata, workflows and recipes."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
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
    assert len(files) == 5
    for path in files:
        text = path.read_text()
        assert "://" not in text, path
        assert not re.search(r"^\s*-", text.replace("    --hash=", ""), re.MULTILINE), path
        pins = re.findall(r"^[a-z][\w.-]*==\S+.*(?:\n    --hash=\S+.*)+", text, re.MULTILINE)
        assert len(pins) == len(re.findall(r"^[a-z]", text, re.MULTILINE)), path


WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def read_recipes() -> dict[str, list[str]]:
    """Return the commands of each recipe of the justfile."""
    just = Path(sys.executable).with_name("just")
    dumped = subprocess.run(
        [just, "--dump", "--dump-format", "json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    recipes = json.loads(dumped.stdout)["recipes"]
    return {
        name: ["".join(part for part in line if isinstance(part, str)) for line in recipe["body"]]
        for name, recipe in recipes.items()
    }


def is_run_by_just(command: str, recipes: dict[str, list[str]]) -> bool:
    """Tell whether a command calls recipes, or is a line of one."""
    program, *words = command.removeprefix(".venv/bin/").split()
    if program == "just":
        return bool(words) and words[0] in recipes
    return any(command in lines for lines in recipes.values())


def list_steps(workflow: Path) -> list[dict[str, object]]:
    jobs = yaml.safe_load(workflow.read_text())["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


def test_a_command_that_just_does_not_run_is_found():
    recipes = read_recipes()
    assert is_run_by_just(".venv/bin/just unit", recipes)
    assert is_run_by_just("bash .ci/setup", recipes)
    assert not is_run_by_just(".venv/bin/just nothing", recipes)
    assert not is_run_by_just("pip install pytest", recipes)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_every_command_of_a_workflow_is_one_that_just_runs(workflow):
    """A developer can run each of them, so a workflow never fails for a reason of its own."""
    recipes = read_recipes()
    steps = list_steps(workflow)
    for step in steps:
        for command in str(step.get("run", "")).splitlines():
            assert is_run_by_just(command, recipes), command
    assert any("run" in step for step in steps)


def test_every_hook_of_pre_commit_is_a_recipe():
    [repository] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    recipes = read_recipes()
    assert repository["hooks"]
    for hook in repository["hooks"]:
        assert is_run_by_just(hook["entry"], recipes), hook["id"]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_every_action_is_pinned_by_its_commit(workflow):
    """A tag can be moved; the comment says which version it is, and dependabot reads it."""
    lines = re.findall(r"uses: (.+)", workflow.read_text())
    assert lines
    for line in lines:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", line), line


def test_the_matrix_has_every_supported_python():
    jobs = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())["jobs"]
    assert jobs["unit"]["strategy"]["matrix"]["python"] == supported_versions()


def test_actionlint_accepts_the_workflows():
    if shutil.which("go") is None:
        pytest.skip("actionlint is built with Go, which is not installed")
    [command] = read_recipes()["actions"]
    home = os.environ.get("GOPATH") or str(Path(os.environ["XDG_CACHE_HOME"]) / "rekindle-go")
    ended = subprocess.run(
        command.split(),
        cwd=ROOT,
        env={**os.environ, "GOPATH": home, "GOFLAGS": "-modcacherw"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize("path", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("[bf]*.yml")))
def test_a_form_for_issues_is_complete(path):
    """GitHub ignores a form without a name, a description, or an input with a label."""
    form = yaml.safe_load(path.read_text())
    assert form["name"]
    assert form["description"]
    inputs = [one for one in form["body"] if one["type"] != "markdown"]
    assert inputs
    assert all(one["id"] and one["attributes"]["label"] for one in inputs)


def test_the_bill_of_materials_has_every_runtime_dependency(tmp_path):
    """`just sbom` names each pinned dependency with its version."""
    subprocess.run([sys.executable, "tools/release.py", "sbom"], cwd=ROOT, check=True)
    materials = json.loads((ROOT / "build/sbom.cdx.json").read_text())
    assert materials["metadata"]["component"]["name"] == PROJECT["name"]
    named = {one["name"] for one in materials["components"]}
    direct = {re.split(r"[<>=;]", line)[0].lower() for line in PROJECT["dependencies"]}
    assert direct <= named
    assert all(one["purl"].endswith(f"@{one['version']}") for one in materials["components"])


def test_the_first_change_of_contributing_can_be_made(tmp_path):
    """Its test fails before the change of the code, and passes after it."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    changes = re.findall(r"^    ```diff (\S+)\n(.*?)^    ```$", text, re.MULTILINE | re.DOTALL)
    assert len(changes) == 2
    test, results = changes[0][0], []
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", test):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for name, body in changes:
        lines = [line[4:] for line in body.splitlines()]
        before, after = ("\n".join(line[1:] for line in lines if line[0] != sign) for sign in "+-")
        content = (tmp_path / name).read_text()
        assert content.count(before) == 1, before
        (tmp_path / name).write_text(content.replace(before, after))
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": "src"},
            capture_output=True,
            text=True,
            check=False,
        )
        results.append((ended.returncode, "1 failed" in ended.stdout))
    assert results == [(1, True), (0, False)], ended.stdout + ended.stderr
