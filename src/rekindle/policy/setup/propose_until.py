"""Propose an `until:` command that runs a project's tests."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from rekindle.formats import yaml_lines

ProjectFiles = Mapping[str, str]
"""Contents of the project files listed in `READ_FILES`, by file name."""

_RECIPE = re.compile(r"^(?:@)?(test|check)\b[^\n:=]*:(?!=)", re.MULTILINE)
_NO_TESTS = "no test specified"
_LOCKS = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun", "bun.lockb": "bun"}


def _propose_recipe(program: str, *names: str) -> Callable[[ProjectFiles], list[str]]:
    def propose_target(files: ProjectFiles) -> list[str]:
        text = "\n".join(files[name] for name in names if name in files)
        targets = {match[1] for match in _RECIPE.finditer(text)}
        return next(([program, name] for name in ("test", "check") if name in targets), [])

    return propose_target


def _propose_package(files: ProjectFiles) -> list[str]:
    try:
        package: Any = json.loads(files.get("package.json", ""))
        script = package["scripts"]["test"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return []
    if not isinstance(script, str) or not script.strip() or _NO_TESTS in script:
        return []
    program = next((program for lock, program in _LOCKS.items() if lock in files), "npm")
    return [program, "run", "test"] if program == "bun" else [program, "test"]


def _propose_pytest(files: ProjectFiles) -> list[str]:
    settings = files.get("pyproject.toml", "") + files.get("requirements-dev.txt", "")
    if "pytest" not in settings and "pytest.ini" not in files and "conftest.py" not in files:
        return []
    return ["uv", "run", "pytest"] if "uv.lock" in files else ["python3", "-m", "pytest"]


def _propose_if(name: str, *command: str) -> Callable[[ProjectFiles], list[str]]:
    return lambda files: [*command] if name in files else []


PROPOSALS: Mapping[str, Callable[[ProjectFiles], list[str]]] = {
    "justfile": _propose_recipe("just", "justfile", "Justfile", ".justfile"),
    "package.json": _propose_package,
    "pytest": _propose_pytest,
    "cargo": _propose_if("Cargo.toml", "cargo", "test"),
    "go": _propose_if("go.mod", "go", "test", "./..."),
    "make": _propose_recipe("make", "Makefile", "makefile", "GNUmakefile"),
}
"""One row for each kind of project; the first row that proposes a command is used."""
READ_FILES = (
    *("justfile", "Justfile", ".justfile", "package.json", *_LOCKS, "pyproject.toml", "pytest.ini"),
    *("conftest.py", "requirements-dev.txt", "uv.lock", "Cargo.toml", "go.mod", "Makefile"),
    *("makefile", "GNUmakefile"),
)


def propose_until(files: ProjectFiles) -> list[str]:
    """Return the command that runs the project's tests, or "" if its files do not reveal one."""
    return next((command for propose in PROPOSALS.values() if (command := propose(files))), [])


def render_until_lines(command: str | list[str]) -> tuple[str, ...]:
    """Render the `until:` lines for an agent's entry, commented out if there is no command."""
    if not command:
        return (
            "# The run ends when the agent reports DONE. To verify that with a command:",
            "# until: ./check.sh",
            "# until_claimed: true",
        )
    words = yaml_lines.quote_scalar(command) if isinstance(command, str) else json.dumps(command)
    return (
        "# The run ends when the agent reports DONE and this command passes:",
        f"until: {words}",
        "until_claimed: true",
    )
