"""A question: one process of a CLI that answers and ends, and is no session of anybody's.

A harness turns a `OneShotQuestion` into a command, and what its program printed into an
`OneShotAnswer`.
"""

import msgspec

from rekindle.documents.manifest import Persona

ONE_SHOT_VARIABLE = "REKINDLE_ASKED"
"""The variable by which our own hooks know a question, and keep quiet; hook.py looks for it too."""


class OneShotQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """What a program is asked once, without a tool, a hook or a session that is kept.

    The prompt goes to its standard input.
    """

    program: tuple[str, ...] = ()
    """What is started in the place of the CLI's own program."""
    scratch: str
    """A folder for the files of this question, and the one to start it in, unless it may read.

    A CLI may take its folder's files for instructions, and for files what the prompt says behind @.
    """
    persona: Persona = Persona()
    """What it may do: to read, at most. Its words come as `instructions`, not by its file."""
    instructions: str = ""
    """The text of the system prompt; empty: the CLI's own."""
    schema: str = ""
    """The JSON schema of the answer, where the CLI can hold its model to one."""
    usd_left: float | None = None
    """What the answer may cost; None: nobody has said."""


class OneShotAnswer(msgspec.Struct, frozen=True):
    text: str
    """What was answered: a JSON text, where a schema was given and kept."""
    usd: float | None = None
    tokens: int | None = None
    """All that was read and written for it."""
