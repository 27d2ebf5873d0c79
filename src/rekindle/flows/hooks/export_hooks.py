"""Export the hooks as a package that a CLI can install without editing its settings."""

import sys
from pathlib import Path

from rekindle import __version__
from rekindle.documents.hooks import hook_settings
from rekindle.errors import RekindleError, UsageError, translate_os_errors
from rekindle.formats import json_codec
from rekindle.formats.identifiers import to_one_line
from rekindle.ports import Harness
from rekindle.system.files import durable_files, hook_program

_MODE = 0o644
_DESCRIPTION = (
    "Reports session events to Rekindle, and primes new sessions with the state of the work."
)


_PACKED = ("hooks.json", "hooks/hooks.json")
"""Paths where a package may have its hooks file, for all CLIs."""


def export_hooks(harness: Harness, folder: Path) -> list[Path]:
    """Write the package and return its files. The hooks find their agent at run time."""
    files = harness.HOOK_FILES
    if files is None:
        raise UsageError(f"{harness.NAME} has no hooks", hint="`rekindle run` does not need hooks")
    folder = folder.absolute()
    python = str(Path(sys.executable).absolute())
    hooks = harness.hooks(
        [python, "-I", "-S", str(hook_program.find_hook_path())], supervised=False
    )
    contents: dict[Path, bytes] = {
        folder / files.packed: json_codec.encode_pretty({"hooks": hooks}, "hooks.json"),
    }
    if files.package:
        about = {"name": "rekindle", "version": __version__, "description": _DESCRIPTION}
        contents[folder / files.package] = json_codec.encode_pretty(about, files.package)
    packed = _find_packed(folder)
    if others := packed - {harness.NAME}:
        raise UsageError(
            f"{to_one_line(str(folder))} already contains the hooks for {min(others)}",
            hint="choose a separate folder: each package is for one CLI",
        )
    existing = [path for path in contents if path.exists()]
    if existing and not packed:
        raise UsageError(
            f"{to_one_line(str(existing[0]))} already exists and was not made by Rekindle",
            hint="choose an empty folder, and pass it to the CLI afterwards",
        )
    hook_program.provide_program()
    for path, data in contents.items():
        with translate_os_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        durable_files.replace_file(path, data, mode=_MODE)
    return list(contents)


def _find_packed(folder: Path) -> set[str]:
    """Return the names of the CLIs whose hooks the folder already contains."""
    names = set()
    for path in (folder / name for name in _PACKED):
        try:
            installed = hook_settings.find_installed(
                (durable_files.read_bytes(path) or b"").decode(), path.name
            )
        except (RekindleError, UnicodeDecodeError):
            continue  # not a Rekindle package
        names |= {hook.command.harness for hook in installed}
    return names
