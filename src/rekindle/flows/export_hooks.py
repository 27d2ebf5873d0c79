"""Our hooks as a package of the CLI's own kind, which a person installs: no settings change."""

import sys
from pathlib import Path

from rekindle import __version__
from rekindle.documents import hooksettings, jsontext
from rekindle.documents.identity import one_line
from rekindle.errors import RekindleError, UsageError, storing
from rekindle.ports import Harness
from rekindle.system import disk, hook_program

_MODE = 0o644
_DESCRIPTION = "Tells Rekindle what happens in a session, and the session where the work stands."


_PACKED = ("hooks.json", "hooks/hooks.json")
"""Where the hooks stand in a package, whichever CLI it is for."""


def export_hooks(harness: Harness, folder: Path) -> list[Path]:
    """Write the package; gives the files. Which agent is meant, the hooks find by themselves."""
    files = harness.HOOK_FILES
    if files is None:
        raise UsageError(f"{harness.NAME} has no hooks", hint="`rekindle run` needs none")
    folder = folder.absolute()
    python = str(Path(sys.executable).absolute())
    hooks = harness.hooks([python, "-I", "-S", str(hook_program.path())], supervised=False)
    wanted: dict[Path, bytes] = {
        folder / files.packed: jsontext.encode_pretty({"hooks": hooks}, "hooks.json"),
    }
    if files.package:
        about = {"name": "rekindle", "version": __version__, "description": _DESCRIPTION}
        wanted[folder / files.package] = jsontext.encode_pretty(about, files.package)
    found = _packed(folder)
    if others := found - {harness.NAME}:
        raise UsageError(
            f"{one_line(str(folder))} holds the hooks for {min(others)}",
            hint="say a folder of its own: a package is for one CLI",
        )
    taken = [path for path in wanted if path.exists()]
    if taken and not found:
        raise UsageError(
            f"{one_line(str(taken[0]))} is there already, and is not ours",
            hint="say a folder of its own, which the CLI is then told of",
        )
    hook_program.provide()
    for path, data in wanted.items():
        with storing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        disk.replace(path, data, mode=_MODE)
    return list(wanted)


def _packed(folder: Path) -> set[str]:
    """Return the harnesses whose hooks are packed in the folder."""
    names = set()
    for path in (folder / name for name in _PACKED):
        try:
            found = hooksettings.installed((disk.read(path) or b"").decode(), path.name)
        except (RekindleError, UnicodeDecodeError):
            continue  # not a package of Rekindle's
        names |= {one.command.harness for one in found}
    return names
