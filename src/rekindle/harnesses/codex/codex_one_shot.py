"""Codex, asked once; what it cannot be kept from then stands with the rest in `codex`."""

from collections.abc import Iterable

from rekindle.documents.launches.cli_output import ProgramCommand
from rekindle.documents.launches.one_shot import (
    OneShotAnswer,
    OneShotQuestion,
)
from rekindle.harnesses import one_shot_common
from rekindle.harnesses.codex.codex_settings import (
    render_instructions,
    render_setting,
)
from rekindle.harnesses.codex.codex_stream import read_stream

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


def ask(question: OneShotQuestion) -> ProgramCommand:
    """What answers a question: in its sandbox, which nothing writes in, without hooks and shell.

    It reads by its shell alone: one that may read is offered nothing more.
    """
    one_shot_common.select_granted_tools(question, "Codex")
    argv = [*(question.program or ("codex",)), "exec", "--json", "--skip-git-repo-check"]
    argv += ["--ephemeral", "--sandbox=read-only", render_setting("approval_policy", "never")]
    argv += [f"--disable={feature}" for feature in ("hooks", "shell_tool", "unified_exec")]
    argv += [render_setting(name, value) for name, value in _FOR_QUESTIONS.items()]
    if question.persona.model:
        argv.append(render_setting("model", question.persona.model))
    files = one_shot_common.make_files(question)
    if words := files.pop(one_shot_common.INSTRUCTIONS_FILE, ""):
        argv.append(render_instructions(words))
    if one_shot_common.SCHEMA_FILE in files:
        argv.append(f"--output-schema={question.scratch}/{one_shot_common.SCHEMA_FILE}")
    return ProgramCommand((*argv, "-"), dict(one_shot_common.ONE_SHOT_ENVIRONMENT), files)


def answer(output: Iterable[bytes]) -> OneShotAnswer | None:
    """The last message of its model."""
    return one_shot_common.find_answer(seen for line in output for seen in read_stream(line))
