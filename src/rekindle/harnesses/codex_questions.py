"""Codex, asked once; what it cannot be kept from then stands with the rest in `codex`."""

from collections.abc import Iterable

from rekindle.documents.launch import Command
from rekindle.documents.question import Answer, Question
from rekindle.harnesses import questions
from rekindle.harnesses.codex_settings import instructions, setting
from rekindle.harnesses.codex_stream import read_stream

_FOR_QUESTIONS = {
    "web_search": "disabled",
    # As settings: a feature that another version has no more would be an error as an option.
    **dict.fromkeys(
        ("features.goals", "features.multi_agent", "features.plugins", "features.view_image"), False
    ),
    # The program that a person has told at the end of a turn: no hook, and yet the same.
    "notify": [],
    "project_doc_max_bytes": 0,
    "skills.include_instructions": False,
}
"""What takes the tools away that nobody needs for an answer, and a project's instructions."""


def ask(question: Question) -> Command:
    """What answers a question: in its sandbox, which nothing writes in, without hooks and shell.

    It reads by its shell alone: one that may read is offered nothing more.
    """
    questions.granted(question, "Codex")
    argv = [*(question.program or ("codex",)), "exec", "--json", "--skip-git-repo-check"]
    argv += ["--ephemeral", "--sandbox=read-only", setting("approval_policy", "never")]
    argv += [f"--disable={feature}" for feature in ("hooks", "shell_tool", "unified_exec")]
    argv += [setting(name, value) for name, value in _FOR_QUESTIONS.items()]
    if question.persona.model:
        argv.append(setting("model", question.persona.model))
    files = questions.files(question)
    if words := files.pop(questions.INSTRUCTIONS_FILE, ""):
        argv.append(instructions(words))
    if questions.SCHEMA_FILE in files:
        argv.append(f"--output-schema={question.scratch}/{questions.SCHEMA_FILE}")
    return Command((*argv, "-"), dict(questions.ENVIRONMENT), files)


def answer(output: Iterable[bytes]) -> Answer | None:
    """The last message of its model."""
    return questions.answered(seen for line in output for seen in read_stream(line))
