"""Parts of a one-shot question that are the same for every CLI."""

from collections.abc import Iterable

from rekindle.documents.launches.launch_types import (
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
"""Variable that makes our installed hooks ignore a one-shot question."""
READING_TOOLS = ("Read", "Grep", "Glob")
"""Tools that a persona can grant to a question."""
INSTRUCTIONS_FILE = "instructions.md"
SCHEMA_FILE = "schema.json"
_HINT = (
    "a one-shot question may use only these tools, without restrictions: "
    f"{', '.join(READING_TOOLS)}"
)


def select_granted_tools(question: OneShotQuestion, program: str) -> list[str]:
    """Return the read-only tools that the persona grants.

    Raises:
        UnenforceableError: The persona grants another tool, or only part of a tool.
    """
    permissions = question.persona.permissions
    if permissions is None:
        return []
    allowed, denied = permissions.allowed_tools or (), permissions.deny or ()
    for rule in filter(None, allowed):
        if rule not in READING_TOOLS:
            raise UnenforceableError(program, rule, hint=_HINT)
    for rule in denied:
        # A denied tool needs no rule if it is not granted.
        if rule not in READING_TOOLS and rule.partition("(")[0] in allowed:
            raise UnenforceableError(program, rule, hint=_HINT)
    return [tool for tool in READING_TOOLS if tool in allowed and tool not in denied]


def make_files(question: OneShotQuestion) -> dict[str, str]:
    """Return instructions and schema as files, because they may be too long for a command line."""
    contents = {INSTRUCTIONS_FILE: question.instructions, SCHEMA_FILE: question.schema}
    return {name: to_text(words) for name, words in contents.items() if words}


def find_answer(items: Iterable[OutputItem], *, joined: bool = False) -> OneShotAnswer | None:
    """Return the last message if the program reports success, otherwise None.

    Text before a tool call or a warning is not an answer. `joined` is true if messages arrive in
    parts.
    """
    texts: list[str] = []
    finished = None
    for item in items:
        match item:
            case AssistantText(words):
                texts = [*texts, words] if joined else [words]
            case ToolCallStarted() | ToolCallFinished() | WarningReport():
                texts = []
            case FinalReport():
                finished = item
    words = "".join(texts)
    if finished is None or not finished.ok or not words.strip():
        return None
    return OneShotAnswer(words, finished.usd, finished.tokens)
