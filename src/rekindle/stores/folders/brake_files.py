"""The files through which a hook stops a launch between two turns.

They are in the launch's own folder, outside the workspace, because the CLI obeys the answer in the
rule file, and the mark contains the user's last request.
"""

from pathlib import Path

import msgspec

from rekindle.errors import translate_os_errors
from rekindle.system.files import durable_files


class BrakeFiles(msgspec.Struct, frozen=True):
    folder: Path

    def rule(self, launch: str) -> Path:
        """Return the path of the file with the stop condition and the hook's answer to the CLI."""
        return self.folder / f"brake-{launch}"

    def braked(self, launch: str) -> Path:
        """Return the path of the mark that a hook leaves after stopping the launch."""
        return self.folder / f"braked-{launch}"

    def taken(self, launch: str) -> Path:
        """Return the path to which the mark is renamed once the supervisor has read it."""
        return self.folder / f"taken-{launch}"

    def forget(self) -> None:
        """Remove the files left by launches whose supervisors were killed."""
        with translate_os_errors(self.folder):
            for kind in ("brake", "braked", "taken"):
                for path in self.folder.glob(f"{kind}-*"):
                    durable_files.remove_file(path)
