"""One-shot questions, which a CLI process answers once, outside any session, before it exits.

A harness turns a `OneShotQuestion` into a command, and the program's output into a `OneShotAnswer`.
"""

import msgspec

from rekindle.documents.manifest import Persona

ONE_SHOT_VARIABLE = "REKINDLE_ONE_SHOT"
"""Variable that tells Rekindle's hooks to ignore the process; `hook` repeats its name."""


class OneShotQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question for a program that runs without tools, hooks or a stored session.

    The program reads the prompt from standard input.
    """

    program: tuple[str, ...] = ()
    """Program to start instead of the CLI's default program."""
    scratch: str
    """Folder for this question's files. It is also the working directory if the persona may not
    read.

    A CLI may follow instruction files in its working directory, and may read files that the prompt
    names after an @.
    """
    persona: Persona = Persona()
    """Permissions. They allow reading at most. The system prompt is in `instructions`, not in a
    file.
    """
    instructions: str = ""
    """Text of the system prompt; empty for the CLI's default."""
    schema: str = ""
    """JSON schema for the answer, if the CLI can enforce one."""
    usd_left: float | None = None
    """Maximum cost of the answer in dollars; None for no limit."""


class OneShotAnswer(msgspec.Struct, frozen=True):
    text: str
    """Text of the answer; JSON if a schema was given and followed."""
    usd: float | None = None
    tokens: int | None = None
    """Number of tokens read and written for the answer."""
