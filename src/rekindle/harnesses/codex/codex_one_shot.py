"""One-shot questions to Codex, whose limits `codex_harness` describes."""

from collections.abc import Iterable

from rekindle.documents.launches.launch_types import ProgramCommand
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
    # Use settings, because Codex rejects an option for a feature that it does not have.
    **dict.fromkeys(
        ("features.goals", "features.multi_agent", "features.plugins", "features.view_image"), False
    ),
    # A program of the user that runs after each turn, like a hook.
    "notify": [],
    "project_doc_max_bytes": 0,
    "skills.include_instructions": False,
}
"""Settings that remove the project's instructions, and tools that an answer does not need."""


def ask(question: OneShotQuestion) -> ProgramCommand:
    """Return the command that asks a question, in a read-only sandbox without hooks or a shell.

    Codex can only read files with its shell, so permission to read has no effect.
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
    """Return the model's last message as the answer."""
    return one_shot_common.find_answer(item for line in output for item in read_stream(line))
