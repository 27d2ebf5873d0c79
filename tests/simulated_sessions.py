"""Sessions of agents that work, as a seeded random generator writes them.

The agents read files, some of them several times, edit and test, retry what fails, and wait for
builds and background processes.
"""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from rekindle.documents.launches.launch_types import (
    AssistantText,
    CompactionReport,
    ToolCallStarted,
)
from rekindle.documents.transcripts.turns import Passage, PassageContent, PromptText, ToolResult

_MESSAGES = ("Let me look.", "Now I fix it.", "Next step.", "The test fails.", "")


class SimulatedSession:
    """One session: a list of passages, with the time of a simulated clock."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.passages: list[Passage] = []
        self._now = datetime(2026, 1, 1, tzinfo=UTC)
        self._calls = self._edits = 0
        self._add(PromptText("Ship the parser."))
        activities = (
            self._read,
            self._read_again,
            self._edit_and_test,
            self._retry,
            self._poll_with_sleep,
            self._poll_background,
            self._poll_changing,
            self._wait_long,
            self._poll_failing,
            self._check_status,
            self._compact,
        )
        for _ in range(self.random.randint(4, 12)):
            self.random.choice(activities)()

    def _add(self, what: PassageContent, seconds: float = 0.0) -> None:
        self._now += timedelta(seconds=seconds)
        self.passages.append(Passage(what=what, at=self._now.isoformat()))

    def _call(
        self, tool: str, about: str, shown: str, *, ok: bool = True, seconds: float = 0.2
    ) -> None:
        self._calls += 1
        if self.random.random() < 0.4:
            self._add(AssistantText(self.random.choice(_MESSAGES)), 2.0)
        name = f"call-{self._calls}"
        self._add(ToolCallStarted(tool, name, about, {"command": about}), 2.0)
        self._add(ToolResult(name, ok, shown), seconds)

    def _count(self, least: int, most: int) -> Iterator[int]:
        return iter(range(self.random.randint(least, most)))

    def _read(self) -> None:
        for number in self._count(1, 12):
            self._call("Read", f"src/{self.random.randint(0, 99)}.py", f"def f{number}(): ...")

    def _read_again(self) -> None:
        """Read the same file several times before an edit."""
        for _ in self._count(2, 5):
            self._call("Read", "src/parser.py", f"version {self._edits}")
        self._edit()

    def _edit(self) -> None:
        self._edits += 1
        self._call("Edit", f"src/parser.py {self._edits}", "The file has been updated.")

    def _edit_and_test(self) -> None:
        """Edit and test in turn: the edits differ, and the test fails in the same way for long."""
        for _ in self._count(3, 20):
            self._edit()
            seconds = self.random.uniform(0.5, 40.0)
            self._call("Bash", "pytest -q", "1 failed", ok=False, seconds=seconds)

    def _retry(self) -> None:
        for _ in self._count(1, 5):
            self._call("Bash", "npm install", "network unreachable", ok=False, seconds=3.0)
        self._call("Bash", "npm install", "added 120 packages", seconds=9.0)

    def _poll_with_sleep(self) -> None:
        """Wait for CI with the same command and the same answer."""
        for _ in self._count(3, 40):
            command, seconds = "sleep 30; gh run view 7", self.random.uniform(30.0, 33.0)
            self._call("Bash", command, "in progress", seconds=seconds)
        self._call("Bash", "sleep 30; gh run view 7", "success", seconds=31.0)

    def _poll_background(self) -> None:
        tool = self.random.choice(["TaskOutput", "BashOutput", "write_stdin", "wait_agent"])
        for _ in self._count(3, 40):
            self._call(tool, "shell-1", "still running", seconds=0.01)

    def _poll_changing(self) -> None:
        for number in self._count(3, 40):
            self._call("Bash", "kubectl get pods", f"{number} of 40 pods are ready", seconds=0.3)

    def _wait_long(self) -> None:
        """Run a command that blocks until there is news, which is none."""
        for _ in self._count(2, 15):
            self._call("Bash", "./next-job --block", "no job", seconds=self.random.uniform(20, 90))

    def _poll_failing(self) -> None:
        for _ in self._count(3, 30):
            words = "timed out waiting for the condition"
            command = "kubectl wait --for=condition=ready pod/a --timeout=60s"
            self._call("Bash", command, words, ok=False, seconds=60.0)

    def _check_status(self) -> None:
        """Look at the same state between different steps."""
        for number in self._count(2, 15):
            self._call("Bash", "git status --short", " M src/parser.py")
            self._call("Write", f"docs/{self._calls}-{number}.md", "The file has been written.")

    def _compact(self) -> None:
        self._read()
        self._read()
        self._read_again()
        self._add(CompactionReport(None, None))
