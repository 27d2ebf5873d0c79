"""The files that a hook uses to stop a launch between two turns.

They are outside the workspace because the CLI obeys the answer in the rule file, and because the
marker file contains the user's last request.
"""

from itertools import product
from pathlib import Path

import msgspec

from rekindle.errors import translate_os_errors
from rekindle.system.files import durable_files

_KINDS = ("brake", "braked", "taken", "notice", "told")


class BrakeFiles(msgspec.Struct, frozen=True):
    folder: Path
    marks: Path
    """Folder for marker files. A sandbox lets the hook write there, but not in `folder`."""

    def rule(self, launch: str) -> Path:
        """Return the file with the stop condition and the hook's answer to the CLI."""
        return self.folder / f"brake-{launch}"

    def braked(self, launch: str) -> Path:
        """Return the marker file that a hook writes when it stops the launch."""
        return self.marks / f"braked-{launch}"

    def taken(self, launch: str) -> Path:
        """Return the path to which the supervisor renames the marker file after reading it."""
        return self.marks / f"taken-{launch}"

    def notice(self, launch: str) -> Path:
        """Return the file with a message that a hook gives to the agent."""
        return self.folder / f"notice-{launch}"

    def told(self, launch: str, mark: str) -> Path:
        """Return the marker file that a hook creates before it gives the message to the agent."""
        return self.marks / f"told-{launch}-{mark}"

    def forget(self) -> None:
        """Remove files that killed supervisors left behind."""
        with translate_os_errors(self.folder):
            for folder, kind in product({self.folder, self.marks}, _KINDS):
                for path in folder.glob(f"{kind}-*"):
                    durable_files.remove_file(path)
