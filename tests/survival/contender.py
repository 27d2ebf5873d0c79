"""What a contender has to say about itself: one small file each in contenders/."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from survival.host import Host


@dataclass(frozen=True, slots=True)
class About:
    """A contender with one CLI, as the page describes it."""

    name: str
    cli: str
    """`claude-code` or `codex`."""
    version: str
    setup: str
    """The commands that its own documentation recommends for unattended work."""
    ending: str = ""
    """The sentence that the task's prompt needs, so that the tool notices the end."""
    word: str = ""
    """The text by which the model reports the end to this tool."""
    not_its_job: frozenset[str] = frozenset()
    """Faults that the tool does not claim to handle, by its own documentation."""

    @property
    def key(self) -> str:
        return f"{self.name}-{self.cli}"


class Contender(Protocol):
    """A tool on a host, with a prepared project."""

    about: About

    def __init__(self, cli: str) -> None: ...

    def prepare(self, host: "Host") -> None:
        """Set the tool up in `host.project`, which has the task but no prompt yet."""

    def start(self, host: "Host") -> None:
        """Start the work, as the operator does in the evening."""

    def service(self, host: "Host") -> Sequence[str]:
        """Return the program that its service runs, which the host starts again; or nothing."""

    def stop_as_operator(self, host: "Host") -> None:
        """Stop the work for good, as the operator does."""

    def revive(self, host: "Host") -> None:
        """Do what a person does if it does not continue."""

    def shut_down(self, host: "Host") -> None:
        """Leave nothing behind, as its documentation says, after the work."""

    def state_files(self, host: "Host") -> list[Path]:
        """Return the files in which it keeps its state, the most important one first."""

    def messages(self, host: "Host") -> str:
        """Return what it told the person."""
