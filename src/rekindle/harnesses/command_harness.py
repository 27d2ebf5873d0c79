"""Harness for any program that reads its prompt from standard input.

The program has no hooks, and its sessions cannot be resumed. After an interruption, Rekindle starts
the program again with a prompt that describes the interruption. Every line of output counts as
assistant text. The context-window usage is unknown, and Rekindle estimates token counts from the
text.
"""

import re
from collections.abc import Iterable

import msgspec

from rekindle.documents.launches.launch_types import (
    AssistantText,
    Capabilities,
    LaunchExit,
    LaunchSpec,
    OutputItem,
    ProcessResult,
    ProgramCommand,
)
from rekindle.documents.launches.one_shot import (
    OneShotAnswer,
    OneShotQuestion,
)
from rekindle.documents.manifest import Permissions
from rekindle.errors import UnenforceableError, UsageError
from rekindle.formats.identifiers import to_one_line
from rekindle.harnesses import (
    exit_verdicts,
    message_verdicts,
    one_shot_common,
)
from rekindle.thresholds.storage import JSON_LINE_BYTES
from rekindle.thresholds.texts import (
    COMMAND_HINT_CHARACTERS,
    COMMAND_LAST_LINES,
    COMMAND_LINE_CHARACTERS,
)

NAME = "command"
CAN = Capabilities(launch_hooks=False, hooks=False, resumes=False)
"""Empty, because the manifest lists the variables for the program in `env:`."""
RELAY = "REKINDLE_RELAY"
"""Variable with the path of the program's next relay."""
INSTALL = "create it, or correct `command:` in rekindle.yaml"

_CODES = {126: "its program cannot be executed", 127: "its program was not found"}
"""Exit codes with which a shell reports that it could not start the program."""
_STEP = re.compile(r"at .*\)$|at \S+:\d+$|File \"|Node\.js v|[\^~]+$|[]\[{}(),;]+$")
"""Pattern for stack-trace lines and closing brackets. The error message is before or after them."""
_TEST_SUMMARY = re.compile(
    r"(?<!attempt )\b\d+ (?:tests? )?(?:passed|failed)(?=[,;]| in |$)|^test result: ", re.IGNORECASE
)
"""Pattern for the last line of a test run. The lines before it are about the tested code."""
_FAILURE = re.compile(r"error|exception|panic|fatal|fault", re.IGNORECASE)
_TRIED_AGAIN = re.compile(r"(?<!before )\b(?:trying again|retrying(?! in))", re.IGNORECASE)
"""Pattern for errors that made the program retry. They count only at the end of the output."""
_TOLD_BY = {
    one_shot_common.INSTRUCTIONS_FILE: "REKINDLE_INSTRUCTIONS",
    one_shot_common.SCHEMA_FILE: "REKINDLE_SCHEMA",
}
"""Variables with the paths of a question's instructions and schema files."""
_UNKNOWN = "a `command:` program"
_INSTEAD = "remove it from the persona, or pass it to your program as an option in `command:`"


def command(start: LaunchSpec) -> ProgramCommand:
    """Return the manifest's program, with a variable for the path of its relay.

    In a terminal, the program does not get the prompt, because Rekindle does not know how to pass
    it.
    """
    if not start.program:
        raise UsageError(
            "`command:` names no program to start", hint="set it, for example `command: [./agent]`"
        )
    persona = start.persona
    permissions = persona.permissions or Permissions()
    if rules := [*(permissions.allowed_tools or ()), *(permissions.deny or ())]:
        raise UnenforceableError(_UNKNOWN, rules[0], hint=_INSTEAD)
    for name, value in (
        ("permissions", persona.permissions),
        ("system_prompt_file", persona.system_prompt_file),
        ("model", persona.model),
        ("temperature", persona.temperature),
    ):
        if value is not None:
            raise UsageError(
                f"{_UNKNOWN} cannot enforce a persona's `{name}:`",
                hint=_INSTEAD,
            )
    return ProgramCommand(start.program, {RELAY: start.draft} if start.draft else {})


def ask(question: OneShotQuestion) -> ProgramCommand:
    """Return the program, which reads the prompt from standard input and prints the answer.

    Two variables contain the paths of the instructions and the schema. Rekindle cannot limit the
    program, so it refuses a persona that grants any tool, even a read-only one.
    """
    if not question.program:
        raise UsageError(
            "`command:` names no program to ask", hint="set it, for example `command: [./agent]`"
        )
    for rule in one_shot_common.select_granted_tools(question, _UNKNOWN):
        raise UnenforceableError(_UNKNOWN, rule, hint=_INSTEAD)
    files = one_shot_common.make_files(question)
    named = {_TOLD_BY[name]: f"{question.scratch}/{name}" for name in files}
    return ProgramCommand(
        question.program, {**named, **one_shot_common.ONE_SHOT_ENVIRONMENT}, files
    )


def answer(output: Iterable[bytes]) -> OneShotAnswer | None:
    """Return the complete output, or None if it is empty or too long."""
    lines, left = [], JSON_LINE_BYTES
    for line in output:
        lines.append(line.removesuffix(b"\n"))
        left -= len(line) + 1
        if left < 0:
            return None
    text = b"\n".join(lines).decode("utf-8", "replace").strip()
    return OneShotAnswer(text) if text else None


def read_stream(line: bytes) -> tuple[OutputItem, ...]:
    """Return a line of output as assistant text."""
    # A character has at most four bytes, so this much of a very long line is enough.
    text = to_one_line(
        line[: 4 * COMMAND_LINE_CHARACTERS].decode("utf-8", "replace"), COMMAND_LINE_CHARACTERS
    )
    return (AssistantText(text),) if text else ()


def classify(ended: ProcessResult) -> LaunchExit:
    """Classify how the program ended. If it failed, use its last lines, starting with stderr."""
    if ended.stopped:
        return LaunchExit("interrupted", "stopped by the operator")
    if ended.code == 0:
        return LaunchExit("clean", "finished")
    if by := exit_verdicts.classify_signal(ended.code):
        return by
    errors = _select_last(ended.errors.splitlines())
    launch_exit = _explain_lines(errors)
    if not launch_exit and not any(_FAILURE.search(line) for line in errors):
        # Some programs print errors on standard output.
        launch_exit = _explain_lines(
            _select_last(item.text for item in ended.last if isinstance(item, AssistantText)),
            is_output=True,
        )
    if launch_exit:
        return launch_exit
    unexplained = _CODES.get(ended.code, f"failed with exit code {ended.code}")
    return exit_verdicts.make_failed_exit(("crash", unexplained), errors[-1] if errors else "")


def _select_last(lines: Iterable[str]) -> list[str]:
    """Return the last few lines that are not part of a stack trace."""
    sentences = (exit_verdicts.normalize_sentence(line) for line in lines)
    return [line for line in sentences if line and not _STEP.match(line)][-COMMAND_LAST_LINES:]


def _explain_lines(lines: list[str], *, is_output: bool = False) -> LaunchExit | None:
    """Return the exit for the last recognized line, with a reset time found near it.

    A line of standard output must start as an error, because it may also be about the work.
    """
    tested = [place for place, line in enumerate(lines) if _TEST_SUMMARY.search(line)]
    lines = lines[tested[-1] + 1 :] if tested else lines
    telling = {
        place: verdict
        for place, line in enumerate(lines)
        # Join each line with the next, because a long sentence may be wrapped.
        if (place == len(lines) - 1 or not _TRIED_AGAIN.search(line))
        and (not is_output or message_verdicts.starts_as_error(" ".join(lines[place : place + 2])))
        and (verdict := message_verdicts.find_verdict(" ".join(lines[place : place + 2])))
    }
    if not telling:
        return None
    last = max(telling)
    first = min(place for place in telling if telling[place] == telling[last])
    end = exit_verdicts.make_failed_exit(telling[last], " ".join(lines[last:]))
    hint = (
        to_one_line(" ".join(lines[first:]), COMMAND_HINT_CHARACTERS) if end.kind == "limit" else ""
    )
    return msgspec.structs.replace(end, hint=hint)
