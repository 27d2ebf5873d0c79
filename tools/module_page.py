"""Generate the list of modules, each with the first sentence of its docstring."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import rekindle

SOURCE = Path(rekindle.__file__).parent
INTRODUCTION = """\
# Modules

This page lists every package and module in `src/rekindle`, with the first sentence of its
docstring. [ARCHITECTURE.md](../../ARCHITECTURE.md) explains how they work together.
"""


def read_summary(path: Path) -> str:
    """Return the first sentence of a module's docstring, as cell of a table."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    if not docstring:
        raise ValueError(f"{path.relative_to(SOURCE)} has no docstring")
    paragraph = " ".join(docstring.partition("\n\n")[0].split())
    sentence = re.match(r".+?[.](?= [A-Z]|$)", paragraph)
    return (sentence[0] if sentence else paragraph).replace("|", "\\|")


def list_packages(folder: Path) -> Iterator[Path]:
    """Yield a package, and then each package below it."""
    yield folder
    for below in sorted(folder.iterdir()):
        if (below / "__init__.py").exists():
            yield from list_packages(below)


def page() -> str:
    lines = [INTRODUCTION]
    for package in list_packages(SOURCE):
        name = package.relative_to(SOURCE.parent).as_posix()
        lines += [f"## {name}\n", f"{read_summary(package / '__init__.py')}\n"]
        modules = [path for path in sorted(package.glob("*.py")) if path.name != "__init__.py"]
        if modules:
            lines += ["| module | summary |", "|---|---|"]
            lines += [f"| `{path.stem}` | {read_summary(path)} |" for path in modules]
            lines.append("")
    return "\n".join(lines)
