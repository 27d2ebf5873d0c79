"""The harness under test, and helpers for all contract tests."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from rekindle.documents.hooks.hook_settings import (
    HOOK_PROGRAM,
)
from rekindle.documents.launches.launch_types import (
    LaunchSpec,
    OutputItem,
    WindowUsage,
)
from rekindle.documents.launches.launch_types import ProgramCommand as Made
from rekindle.documents.launches.one_shot import (
    OneShotAnswer,
)
from rekindle.documents.transcripts.turns import (
    PassageContent,
)
from rekindle.errors import (
    UnenforceableError,
    UsageError,
)
from rekindle.ports import (
    Harness,
    HarnessEssentials,
    complete_harness,
)
from rekindle.testing.recordings import (
    Recording,
    load_recordings,
)

SESSION = "0a1b2c3d-0000-4000-8000-00000000000f"
HOOK = ("/a b/python", "-I", f"/a b/{HOOK_PROGRAM}")
UNENFORCEABLE_RULE = "Bash(\0)"
"""A rule that no CLI accepts, because it contains a NUL."""
DASHED = "--no-option"


class ContractSubject:
    """The harness under test, with its recordings and commands."""

    harness: ClassVar[HarnessEssentials]
    """Module or object with the six required members. Optional members are tested if present."""
    recordings: ClassVar[Path]
    """Folder with one recording per case, and an `expected.json` for all of them."""
    program: ClassVar[tuple[str, ...]] = ("some-program",)
    """Program to start. Only the `command` harness needs it, because it has no default program."""
    keys: ClassVar[tuple[str, ...]] = ()
    """Prefixes of the program's own credential variables. The program must not get other programs'
    credentials.
    """

    @property
    def whole(self) -> Harness:
        """Return the harness with defaults for its optional members, as Rekindle uses it."""
        return complete_harness(self.harness)

    def kept(self) -> tuple[Recording, ...]:
        loaded = load_recordings(self.recordings)
        assert loaded, f"no recordings in {self.recordings}"
        return loaded

    def start(self, *, session: str = SESSION, resumes: bool = False, **more: Any) -> LaunchSpec:
        own = session if resumes or self.whole.CAN.names_sessions else ""
        hook = HOOK if self.whole.CAN.hooks else ()
        fields = {"hook": hook, "scratch": "/scratch", "program": self.program, **more}
        return LaunchSpec(session=own, resumes=resumes, **fields)

    def starts(self) -> Iterator[dict[str, Any]]:
        """Yield launch arguments for fresh and resumed sessions, with and without a terminal."""
        for interactive in (False, True) if self.whole.CAN.terminal else (False,):
            yield {"interactive": interactive}
            if self.whole.CAN.resumes:
                yield {"interactive": interactive, "resumes": True}

    def made(self, **more: Any) -> Made | None:
        """Return the command for a launch, or None if the harness refuses it with a hint."""
        try:
            return self.whole.command(self.start(**more))
        except (UsageError, UnenforceableError) as error:
            refused = error
        assert refused.hint, f"{refused}: the hint does not say what to do instead"
        return None


def join_command(command: Made, *, files: bool = True) -> str:
    """Return everything that a command passes to the program, as one text."""
    return "\n".join(
        (*command.argv, *command.environment.values(), *(command.files.values() if files else ()))
    )


def require_sound(item: OutputItem | WindowUsage | PassageContent | OneShotAnswer) -> None:
    """Check that each field has its declared type and can be encoded as UTF-8."""
    msgspec.convert(json.loads(msgspec.json.encode(item)), type(item))
