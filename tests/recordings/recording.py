"""A launch of Claude Code that was kept, and what our harness makes of it."""

from functools import cached_property
from typing import Any, ClassVar, Final, Self

from loopback import install
from recordings.tape import Tape, as_bytes, folder, lines, traces
from rekindle.documents.launches.launch_types import (
    FinalReport,
    LaunchExit,
    LimitReport,
    OutputItem,
    ProcessResult,
    SessionOpened,
)
from rekindle.harnesses.claude_code import claude_harness

__all__ = ["KEPT", "Recording", "lines", "traces"]

KEPT: Final = folder("claude-code", install.CLAUDE)
_CONVERSATION: Final = frozenset({"user", "assistant", "system"})


class Recording(Tape):
    characters: ClassVar[int] = 200

    @classmethod
    def load(cls, case: str) -> Self:
        return cls.read(KEPT / f"{case}.jsonl")

    @staticmethod
    def bare(record: Any) -> Any:
        """Reduce a line outside the conversation to its type: the rest is the vendor's own text."""
        if isinstance(record, dict) and record.get("type") not in _CONVERSATION:
            return {"type": record.get("type")}
        return record

    @cached_property
    def seen(self) -> list[OutputItem]:
        return [seen for line in self.stream for seen in claude_harness.read_stream(as_bytes(line))]

    def last(self, kind: type[Any]) -> Any:
        return next((seen for seen in reversed(self.seen) if isinstance(seen, kind)), None)

    @property
    def kinds(self) -> list[str]:
        return [type(seen).__name__ for seen in self.seen]

    @property
    def exit(self) -> LaunchExit:
        opened = self.last(SessionOpened)
        ended = ProcessResult(
            code=self.code,
            session=self.session,
            resumes=self.resumes,
            opened=opened.session if opened else "",
            finished=self.last(FinalReport),
            refused=self.last(LimitReport),
            errors=self.stderr,
        )
        return claude_harness.classify(ended)
