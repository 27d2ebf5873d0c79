"""Our hooks as a package of the CLI's own kind, which a person installs: no settings change."""

import sys
from pathlib import Path

from rekindle import __version__, hook
from rekindle.documents import hooksettings, jsontext
from rekindle.documents.identity import one_line
from rekindle.errors import RekindleError, UsageError, storing
from rekindle.ports import Harness
from rekindle.system import bytecode, disk

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
    program = folder / hooksettings.PROGRAM
    python = str(Path(sys.executable).absolute())
    hooks = harness.hooks([python, "-I", "-S", str(program)], supervised=False)
    wanted: dict[Path, bytes] = {
        program: bytecode.compiled(Path(hook.__file__)),
        folder / files.packed: jsontext.encode_pretty({"hooks": hooks}, "hooks.json"),
    }
    if files.package:
        about = {"name": "rekindle", "version": __version__, "description": _DESCRIPTION}
        wanted[folder / files.package] = jsontext.encode_pretty(about, files.package)
    if other := _other(folder, harness):
        raise UsageError(
            f"{one_line(str(folder))} holds the hooks for {other}",
            hint="say a folder of its own: a package is for one CLI",
        )
    taken = [path for path in wanted if path.exists()]
    if taken and not program.exists():
        raise UsageError(
            f"{one_line(str(taken[0]))} is there already, and is not ours",
            hint="say a folder of its own, which the CLI is then told of",
        )
    for path, data in wanted.items():
        with storing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        disk.replace(path, data, mode=_MODE)
    return list(wanted)


def _other(folder: Path, harness: Harness) -> str:
    """The harness whose package the folder holds, where it is another one's; else empty."""
    for path in (folder / name for name in _PACKED):
        try:
            found = hooksettings.installed((disk.read(path) or b"").decode(), path.name)
        except (RekindleError, UnicodeDecodeError):
            continue  # nothing of ours
        for one in found:
            if one.command.harness != harness.NAME:
                return one.command.harness
    return ""
