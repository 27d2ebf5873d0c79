"""The files through which hooks and the supervisor of a launch talk to each other.

They are outside the workspace because the CLI obeys the answer in the rule file, and because the
marker file contains the user's last request.
"""

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import msgspec

from rekindle.errors import translate_os_errors
from rekindle.system.files import durable_files

_KINDS = ("brake", "braked", "taken", "notice", "told", ".ask", "ask", "answer")
_REQUEST = re.compile(r"ask-(?P<launch>.+)-(?P<id>[0-9a-f]{32})")


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

    def list_requests(self, launch: str) -> Iterator[str]:
        """Yield the ids of the calls that wait for permission. An agent could forge requests."""
        for name in durable_files.list_entries(self.marks):
            if (found := _REQUEST.fullmatch(name)) and found["launch"] == launch:
                yield found["id"]

    def request(self, launch: str, waiter: str) -> Path:
        """Return the file that describes a waiting call. The gate touches it while it waits."""
        return self.marks / f"ask-{launch}-{waiter}"

    def answer(self, launch: str, waiter: str) -> Path:
        """Return the file with the decision about a waiting call, which only Rekindle writes."""
        return self.folder / f"answer-{launch}-{waiter}"

    def forget(self) -> None:
        """Remove files that killed supervisors left behind."""
        with translate_os_errors(self.folder):
            for folder, kind in product({self.folder, self.marks}, _KINDS):
                for path in folder.glob(f"{kind}-*"):
                    durable_files.remove_file(path)
