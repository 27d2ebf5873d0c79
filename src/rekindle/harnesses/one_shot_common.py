"""What is the same in every question, whichever CLI is asked."""

from collections.abc import Iterable

from rekindle.documents.launches.cli_output import (
    AssistantText,
    FinalReport,
    OutputItem,
    ToolCallFinished,
    ToolCallStarted,
    WarningReport,
)
from rekindle.documents.launches.one_shot import (
    ONE_SHOT_VARIABLE,
    OneShotAnswer,
    OneShotQuestion,
)
from rekindle.errors import UnenforceableError
from rekindle.harnesses.untrusted_json import to_text

ONE_SHOT_ENVIRONMENT = {ONE_SHOT_VARIABLE: "1"}
"""Hooks of ours may be installed where the CLI finds them: by this they know that it is no session.
"""
READING_TOOLS = ("Read", "Grep", "Glob")
"""All that a question may be granted."""
INSTRUCTIONS_FILE = "instructions.md"
SCHEMA_FILE = "schema.json"
_HINT = f"a question is granted nothing, or whole tools of: {', '.join(READING_TOOLS)}"


def select_granted_tools(question: OneShotQuestion, program: str) -> list[str]:
    """The reading tools that it may use; what writes or runs is refused, and so is half a tool.

    Raises:
        UnenforceableError: The persona grants something else.
    """
    permissions = question.persona.permissions
    if permissions is None:
        return []
    allowed, denied = permissions.allowed_tools or (), permissions.deny or ()
    for rule in filter(None, allowed):
        if rule not in READING_TOOLS:
            raise UnenforceableError(program, rule, hint=_HINT)
    for rule in denied:
        # A tool that nobody was granted needs no rule.
        if rule not in READING_TOOLS and rule.partition("(")[0] in allowed:
            raise UnenforceableError(program, rule, hint=_HINT)
    return [tool for tool in READING_TOOLS if tool in allowed and tool not in denied]


def make_files(question: OneShotQuestion) -> dict[str, str]:
    """Instructions and schema as files, so that neither is too long for a command line."""
    given = {INSTRUCTIONS_FILE: question.instructions, SCHEMA_FILE: question.schema}
    return {name: to_text(words) for name, words in given.items() if words}


def find_answer(seen: Iterable[OutputItem], *, joined: bool = False) -> OneShotAnswer | None:
    """The last that was said, where the program says that all went well.

    What was said before a call, or before a complaint, is not the answer. `joined`: one message
    comes in pieces.
    """
    said: list[str] = []
    finished = None
    for one in seen:
        match one:
            case AssistantText(words):
                said = [*said, words] if joined else [words]
            case ToolCallStarted() | ToolCallFinished() | WarningReport():
                said = []
            case FinalReport():
                finished = one
    words = "".join(said)
    if finished is None or not finished.ok or not words.strip():
        return None
    return OneShotAnswer(words, finished.usd, finished.tokens)
