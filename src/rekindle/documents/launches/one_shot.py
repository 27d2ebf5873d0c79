"""One-shot questions: a CLI process answers one question outside any session, then exits.

A harness turns a `OneShotQuestion` into a command, and the program's output into a `OneShotAnswer`.
"""

import msgspec

from rekindle.documents.manifest import Persona

ONE_SHOT_VARIABLE = "REKINDLE_ONE_SHOT"
"""Variable that makes Rekindle's hooks ignore the process. `hook` defines the same name."""


class OneShotQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question for a program that runs without tools, hooks or a stored session.

    The program reads the prompt from standard input.
    """

    program: tuple[str, ...] = ()
    """Program to start instead of the CLI's default program."""
    scratch: str
    """Folder for this question's files.

    If the persona may not read files, the CLI also starts here. Elsewhere, it might follow
    instruction files, or read files that are named after an @ in the prompt.
    """
    persona: Persona = Persona()
    """Permissions, which allow at most reading. The system prompt is in `instructions`, not in a
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
    """Text of the answer, which is JSON if it follows a schema."""
    usd: float | None = None
    tokens: int | None = None
    """Number of tokens read and written for the answer."""
