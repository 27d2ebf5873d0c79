"""Contract tests of one-shot questions."""

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
"""Options that a question's command must not have, because they resume a session or set hooks."""
_GRANTED = (
    *("Bash", "Write", "Edit", "NotebookEdit", "WebFetch", "Task", "mcp__box__put", "mcp_box_*"),
    *("*", "Bash(git log:*)", "Write(*)", "--help", UNENFORCEABLE_RULE, "run_shell_command"),
)
"""Tools that no question may be granted, because they write, run commands, or are unknown."""
_UNTAME = (DASHED, f"\n{DASHED}", f'" {DASHED} "', f"' {DASHED}", f"={DASHED}", "é\0", "{")
"""Texts that could become an option, or end a quoted string early."""


class QuestionContract(ContractSubject):
    """Tests of one-shot questions and their answers."""

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
        """A question has no session and no hooks, and tells installed hooks to ignore it."""
        if not self.whole.CAN.questions:
            return
        made = self.whole.ask(self.question())
        assert made == self.whole.ask(self.question())
        assert made.argv[: len(self.program)] == self.program
        assert made.environment[ONE_SHOT_VARIABLE] == "1"
        assert LAUNCH_VARIABLE not in made.environment
        words = made.argv[len(self.program) :]
        assert not any(_RESUMING.search(word) for word in words), words
        assert HOOK_PROGRAM not in join_command(made)
        own = self.asked(program=())
        assert own is None or own.argv[0] not in {"", *self.program}
        if self.whole.HOOK_FILES is not None:
            assert own is not None
            assert own.argv[0] == self.whole.HOOK_FILES.program

    def test_a_question_may_read_at_most(self) -> None:
        """An empty tool list equals none; only tools that just read may be granted."""
        if not self.whole.CAN.questions:
            return
        alone, nothing = (self.asked(persona=one) for one in (Persona(), _make_granting()))
        assert alone == nothing
        assert alone is not None
        for rule in _GRANTED:
            for rules in ([rule], ["Read", rule]):
                try:
                    made = self.whole.ask(self.question(persona=_make_granting(*rules)))
                except (UsageError, ManifestError):
                    continue
                raise AssertionError(f"a question was granted {rule!r}: {made.argv}")
        self.asked(persona=_make_granting("Read", "Grep", "Glob"))

    def test_a_question_has_its_instructions(self) -> None:
        """Instructions and schema are in the command, or in a file that the command names."""
        if not self.whole.CAN.questions:
            return
        made = self.asked(instructions="You keep the light.", schema='{"type": "object"}')
        assert made is not None
        assert "You keep the light." in join_command(made)
        for name in made.files:
            assert re.fullmatch(r"[a-z][a-z0-9.-]*", name), name
            assert f"/scratch/{name}" in join_command(made, files=False)

    def test_nothing_that_is_asked_becomes_an_option(self) -> None:
        """Instructions, schema and persona never change the options; otherwise they are refused.

        Text inside a file is not an option.
        """
        if not self.whole.CAN.questions:
            return
        tame = self.asked(instructions="x", schema="{}")
        assert tame is not None
        for text in _UNTAME:
            for given in ({"instructions": text, "schema": "{}"}, {"instructions": "x"}):
                made = self.asked(**{"schema": text, **given})
                if made is None:
                    continue
                assert _list_options(made.argv) == _list_options(tame.argv), made
                assert not any("\0" in word for word in made.argv)
                assert set(made.files) <= set(tame.files)
            persona = Persona(
                system_prompt_file=text, permissions=Permissions(allowed_tools=[], deny=[text])
            )
            made = self.asked(persona=persona, instructions="x", schema="{}")
            assert made is None or _list_options(made.argv) == _list_options(tame.argv), made

    def test_an_answer_is_read_from_anything(self) -> None:
        """Empty output is not an answer; damaged output leads to a valid answer or none."""
        if not self.whole.CAN.questions:
            return
        assert self.whole.answer(()) is None
        streams = [one.stream for one in self.kept() if one.asked]
        longest = max(streams, key=len, default=())
        for line in hostile_lines.damage_lines(line for stream in streams for line in stream):
            for output in ([line], [*longest, line], [line, *longest]):
                found = self.whole.answer(output)
                if found is not None:
                    require_sound(found)
                    assert found.text.strip()

    def test_an_answer_that_was_cut_is_none_or_less(self) -> None:
        """Output without its final report is not an answer, if the CLI prints such a report."""
        for one in self.kept():
            if one.asked and any(isinstance(seen, FinalReport) for seen in one.seen(self.whole)):
                for length in range(len(one.stream)):
                    assert self.whole.answer(one.stream[:length]) is None


def _make_granting(*tools: str) -> Persona:
    return Persona(permissions=Permissions(allowed_tools=[*tools]))


def _list_options(argv: tuple[str, ...]) -> list[str]:
    """Return a command's arguments without values; a setting's name is part of its option."""
    return [re.sub(r"(?s)^(--config=[\w.]+|[^=]*)=.*", r"\1", word) for word in argv]
