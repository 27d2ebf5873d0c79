"""The files through which a hook stops a launch between two turns.

They are in the launch's own folder, outside the workspace, because the CLI follows the answer in
the rule, and the mark holds the person's last request.
"""

from pathlib import Path

import msgspec

from rekindle.errors import translate_os_errors
from rekindle.system.files import durable_files


class BrakeFiles(msgspec.Struct, frozen=True):
    folder: Path

    def rule(self, launch: str) -> Path:
        """Return the file with the condition for a stop, and with the hook's answer to the CLI."""
        return self.folder / f"brake-{launch}"

    def braked(self, launch: str) -> Path:
        """Return the mark that a hook leaves when it has stopped the launch."""
        return self.folder / f"braked-{launch}"

    def taken(self, launch: str) -> Path:
        """Return the name that the mark gets once the supervisor has read it."""
        return self.folder / f"taken-{launch}"

    def forget(self) -> None:
        """Remove the files of launches whose supervisors were killed."""
        with translate_os_errors(self.folder):
            for kind in ("brake", "braked", "taken"):
                for path in self.folder.glob(f"{kind}-*"):
                    durable_files.remove_file(path)
