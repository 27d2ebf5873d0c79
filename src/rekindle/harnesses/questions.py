"""What is the same in every question, whichever CLI is asked."""

from collections.abc import Iterable

from rekindle.documents.launch import Called, Finished, Returned, Said, Seen, Warned
from rekindle.documents.question import ASKED, Answer, Question
from rekindle.errors import UnenforceableError
from rekindle.harnesses.foreign import text

ENVIRONMENT = {ASKED: "1"}
"""Hooks of ours may be installed where the CLI finds them: by this they know that it is no session.
"""
READING = ("Read", "Grep", "Glob")
"""All that a question may be granted."""
INSTRUCTIONS_FILE = "instructions.md"
SCHEMA_FILE = "schema.json"
_HINT = f"a question is granted nothing, or whole tools of: {', '.join(READING)}"


def granted(question: Question, program: str) -> list[str]:
    """The reading tools that it may use; what writes or runs is refused, and so is half a tool.

    Raises:
        UnenforceableError: The persona grants something else.
    """
    permissions = question.persona.permissions
    if permissions is None:
        return []
    allowed, denied = permissions.allowed_tools or (), permissions.deny or ()
    for rule in filter(None, allowed):
        if rule not in READING:
            raise UnenforceableError(program, rule, hint=_HINT)
    for rule in denied:
        # A tool that nobody was granted needs no rule.
        if rule not in READING and rule.partition("(")[0] in allowed:
            raise UnenforceableError(program, rule, hint=_HINT)
    return [tool for tool in READING if tool in allowed and tool not in denied]


def files(question: Question) -> dict[str, str]:
    """Instructions and schema as files, so that neither is too long for a command line."""
    given = {INSTRUCTIONS_FILE: question.instructions, SCHEMA_FILE: question.schema}
    return {name: text(words) for name, words in given.items() if words}


def answered(seen: Iterable[Seen], *, joined: bool = False) -> Answer | None:
    """The last that was said, where the program says that all went well.

    What was said before a call, or before a complaint, is not the answer. `joined`: one message
    comes in pieces.
    """
    said: list[str] = []
    finished = None
    for one in seen:
        match one:
            case Said(words):
                said = [*said, words] if joined else [words]
            case Called() | Returned() | Warned():
                said = []
            case Finished():
                finished = one
    words = "".join(said)
    if finished is None or not finished.ok or not words.strip():
        return None
    return Answer(words, finished.usd, finished.tokens)
