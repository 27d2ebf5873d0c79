"""Contract tests for one-shot questions."""

import re
from typing import Any

from rekindle.documents.hooks.hook_settings import (
    HOOK_PROGRAM,
)
from rekindle.documents.launches.launch_types import (
    LAUNCH_VARIABLE,
    FinalReport,
)
from rekindle.documents.launches.launch_types import ProgramCommand as Made
from rekindle.documents.launches.one_shot import (
    ONE_SHOT_VARIABLE,
    OneShotQuestion,
)
from rekindle.documents.manifest import Permissions, Persona
from rekindle.errors import (
    ManifestError,
    UsageError,
)
from rekindle.testing import (
    hostile_lines,
)
from rekindle.testing.contract_subject import (
    DASHED,
    UNENFORCEABLE_RULE,
    ContractSubject,
    join_command,
    require_sound,
)

_RESUMING = re.compile(r"resume|continue|session-id|hooks?\.json|settings=")
"""Options that a question's command must not have, because they resume sessions or set hooks."""
_GRANTED = (
    *("Bash", "Write", "Edit", "NotebookEdit", "WebFetch", "Task", "mcp__box__put", "mcp_box_*"),
    *("*", "Bash(git log:*)", "Write(*)", "--help", UNENFORCEABLE_RULE, "run_shell_command"),
)
"""Tools that no question may use, because they write, run commands or are unknown."""
_UNTAME = (DASHED, f"\n{DASHED}", f'" {DASHED} "', f"' {DASHED}", f"={DASHED}", "é\0", "{")
"""Texts that could become an option, or end a quoted string early."""


class QuestionContract(ContractSubject):
    """Tests for one-shot questions and their answers."""

    def question(self, **more: Any) -> OneShotQuestion:
        return OneShotQuestion(**{"scratch": "/scratch", "program": self.program, **more})

    def asked(self, **more: Any) -> Made | None:
        """Return the command for a question, or None if the harness refuses it with a hint."""
        try:
            return self.whole.ask(self.question(**more))
        except (UsageError, ManifestError) as error:
            refused = error
        assert refused.hint, f"{refused}: the hint does not say what to do instead"
        return None

    def test_a_question_is_not_a_session(self) -> None:
        """A question has no session and no hooks, and makes installed hooks ignore it."""
        if not self.whole.CAN.questions:
            return
        command = self.whole.ask(self.question())
        assert command == self.whole.ask(self.question())
        assert command.argv[: len(self.program)] == self.program
        assert command.environment[ONE_SHOT_VARIABLE] == "1"
        assert LAUNCH_VARIABLE not in command.environment
        words = command.argv[len(self.program) :]
        assert not any(_RESUMING.search(word) for word in words), words
        assert HOOK_PROGRAM not in join_command(command)
        own = self.asked(program=())
        assert own is None or own.argv[0] not in {"", *self.program}
        if self.whole.HOOK_FILES is not None:
            assert own is not None
            assert own.argv[0] == self.whole.HOOK_FILES.program

    def test_a_question_may_read_at_most(self) -> None:
        """An empty list of tools means no tools. Only read-only tools may be granted."""
        if not self.whole.CAN.questions:
            return
        alone, nothing = (self.asked(persona=persona) for persona in (Persona(), _make_granting()))
        assert alone == nothing
        assert alone is not None
        for rule in _GRANTED:
            for rules in ([rule], ["Read", rule]):
                try:
                    command = self.whole.ask(self.question(persona=_make_granting(*rules)))
                except (UsageError, ManifestError):
                    continue
                raise AssertionError(f"a question was granted {rule!r}: {command.argv}")
        self.asked(persona=_make_granting("Read", "Grep", "Glob"))

    def test_a_question_has_its_instructions(self) -> None:
        """The command contains the instructions and the schema, or names files with them."""
        if not self.whole.CAN.questions:
            return
        command = self.asked(instructions="You keep the light.", schema='{"type": "object"}')
        assert command is not None
        assert "You keep the light." in join_command(command)
        for name in command.files:
            assert re.fullmatch(r"[a-z][a-z0-9.-]*", name), name
            assert f"/scratch/{name}" in join_command(command, files=False)

    def test_nothing_that_is_asked_becomes_an_option(self) -> None:
        """Instructions, schema and persona are refused if they would change the options.

        Text inside a file is not an option.
        """
        if not self.whole.CAN.questions:
            return
        tame = self.asked(instructions="x", schema="{}")
        assert tame is not None
        for text in _UNTAME:
            for parts in ({"instructions": text, "schema": "{}"}, {"instructions": "x"}):
                command = self.asked(**{"schema": text, **parts})
                if command is None:
                    continue
                assert _list_options(command.argv) == _list_options(tame.argv), command
                assert not any("\0" in word for word in command.argv)
                assert set(command.files) <= set(tame.files)
            persona = Persona(
                system_prompt_file=text, permissions=Permissions(allowed_tools=[], deny=[text])
            )
            command = self.asked(persona=persona, instructions="x", schema="{}")
            assert command is None or _list_options(command.argv) == _list_options(tame.argv), (
                command
            )

    def test_an_answer_is_read_from_anything(self) -> None:
        """Empty output is not an answer. Damaged output gives a valid answer or none."""
        if not self.whole.CAN.questions:
            return
        assert self.whole.answer(()) is None
        streams = [recording.stream for recording in self.kept() if recording.asked]
        longest = max(streams, key=len, default=())
        for line in hostile_lines.damage_lines(line for stream in streams for line in stream):
            for output in ([line], [*longest, line], [line, *longest]):
                answer = self.whole.answer(output)
                if answer is not None:
                    require_sound(answer)
                    assert answer.text.strip()

    def test_an_answer_that_was_cut_is_none_or_less(self) -> None:
        """If the CLI prints a final report, output without one is not an answer."""
        for recording in self.kept():
            if recording.asked and any(
                isinstance(item, FinalReport) for item in recording.seen(self.whole)
            ):
                for length in range(len(recording.stream)):
                    assert self.whole.answer(recording.stream[:length]) is None


def _make_granting(*tools: str) -> Persona:
    return Persona(permissions=Permissions(allowed_tools=[*tools]))


def _list_options(argv: tuple[str, ...]) -> list[str]:
    """Return a command's arguments without their values. A setting's name is part of its option."""
    return [re.sub(r"(?s)^(--config=[\w.]+|[^=]*)=.*", r"\1", word) for word in argv]
