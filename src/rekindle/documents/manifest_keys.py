"""Keys of rekindle.yaml that agents and pipeline steps share: commands, budgets and handovers."""

import re
from typing import Annotated

import msgspec

from rekindle.formats.validation import describe_key as _doc

TRIGGER_PATTERN = re.compile(r"token_limit_([1-9]\d?|100)%", re.ASCII)
"""Pattern for a trigger, the percentage of the window at which a fresh session takes over."""
CommandLine = Annotated[list[str], msgspec.Meta(description="A list of words, or one line.")]
"""A program and its arguments. A single line is split into words as in a shell, but runs without
one.
"""


class Budget(msgspec.Struct, frozen=True):
    """Caps on a run, which ends when it reaches one of them. Spending counts across restarts."""

    usd: Annotated[float, _doc("Maximum cost per run, in dollars.", "dollars", gt=0)] | None = None
    tokens: Annotated[int, _doc("Maximum number of tokens per run.", "tokens", gt=0)] | None = None
    hours: Annotated[float, _doc("Maximum duration per run, in hours.", "hours", gt=0)] | None = (
        None
    )


class Compaction(msgspec.Struct, frozen=True):
    trigger: (
        Annotated[
            str,
            _doc(
                'Context-window usage at which a handoff starts, such as "token_limit_80%".',
                pattern=f"^{TRIGGER_PATTERN.pattern}$",
            ),
        ]
        | None
    ) = None
    persona: Annotated[str, _doc("Persona from `personas` that writes the checkpoint.")] | None = (
        None
    )


class Handover(msgspec.Struct, frozen=True):
    compaction: Annotated[
        Compaction | bool | None,
        _doc(
            "When to hand over to a fresh session, and which persona writes the checkpoint. "
            "Use `off` to disable."
        ),
    ] = None
