"""Run the hook program for a plugin, which knows neither Python nor the program's path.

    rekindle hook HARNESS EVENT[:SOURCE] < PAYLOAD

A plugin's shim calls this when a session starts, and remembers the paths for the other events. It
is not a command for users. Whatever fails, the exit code is 0, because the agent must not notice.
"""

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

from rekindle.hook.session_agent import read_variable
from rekindle.system.files import durable_files, hook_program
from rekindle.wiring.session_project import prepare_folder

REMEMBERED = Path(".local", "state", "rekindle", "plugin-hook")
"""File below the home folder with the paths of Python and of the hook program, one per line."""


def main(words: list[str]) -> None:
    if {"REKINDLE_LAUNCH", "REKINDLE_ONE_SHOT"} & set(os.environ):
        return  # a supervisor's launch has its own hooks
    with suppress(Exception):
        harness, event = words
        hook_program.provide_program()
        program = str(hook_program.find_hook_path())
        home = Path.home()
        if event.startswith("SessionStart"):
            with suppress(Exception):
                place = Path(read_variable(harness, "PROJECT_DIR") or ".")
                if folder := prepare_folder(place, harness, home):
                    _tell_user(folder)
            with suppress(Exception):
                _remember(home / REMEMBERED, program)
        os.execv(sys.executable, [sys.executable, "-I", "-S", program, harness, event])  # noqa: S606 - our own program, no shell


def _tell_user(folder: Path) -> None:
    """Tell the user, but not the model, what the new folder is for."""
    words = f"Rekindle records the sessions in {folder} from now on. Its files are in .rekindle."
    sys.stdout.write(json.dumps({"systemMessage": words}))
    sys.stdout.flush()


def _remember(path: Path, program: str) -> None:
    """Store the paths for the shim, which reads two lines faster than this program starts."""
    data = os.fsencode(f"{sys.executable}\n{program}\n")
    if durable_files.read_bytes(path) != data:
        path.parent.mkdir(mode=durable_files.FOLDER_MODE, parents=True, exist_ok=True)
        durable_files.replace_file(path, data)
