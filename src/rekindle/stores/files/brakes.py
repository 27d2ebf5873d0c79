"""The files by which a hook stops a launch between two turns.

They are in the launch's own folder, outside the workspace: the CLI does what the rule's answer
says, and the mark has what the person has asked for.
"""

from pathlib import Path

import msgspec

from rekindle.errors import storing
from rekindle.system import disk


class Brakes(msgspec.Struct, frozen=True):
    folder: Path

    def rule(self, launch: str) -> Path:
        """When the hook is to stop the launch, and what it answers its CLI."""
        return self.folder / f"brake-{launch}"

    def braked(self, launch: str) -> Path:
        """The mark of a hook that has stopped the launch."""
        return self.folder / f"braked-{launch}"

    def taken(self, launch: str) -> Path:
        """The same mark, after the supervisor has seen it."""
        return self.folder / f"taken-{launch}"

    def forget(self) -> None:
        """Remove the files of launches whose supervisors were killed."""
        with storing(self.folder):
            for kind in ("brake", "braked", "taken"):
                for path in self.folder.glob(f"{kind}-*"):
                    disk.remove(path)
