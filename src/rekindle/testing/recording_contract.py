"""Contract tests of what a harness reads from its recordings, intact and damaged."""

import json
from typing import Any, get_args

import msgspec

from rekindle.documents import events
from rekindle.documents.launches.launch_types import (
    ExitKind,
    FinalReport,
    LimitReport,
    ProcessResult,
    UsageReport,
    WindowUsage,
)
from rekindle.documents.transcripts.turns import (
    PromptText,
)
from rekindle.errors import (
    DocumentError,
)
from rekindle.testing import (
    expected_results,
    hostile_lines,
)
from rekindle.testing.contract_subject import (
    SESSION,
    ContractSubject,
    require_sound,
)
from rekindle.testing.expected_results import ExpectedResult
from rekindle.testing.recordings import (
    Recording,
)

_OTHER = "ffff2c3d-0000-4000-8000-00000000000f"
_KINDS = frozenset(get_args(ExitKind))
_FACTS = frozenset({"session.started", "session.ended", "prompt.submitted", "heartbeat"})
"""Events that context, recovery and heartbeats depend on."""
_WORDS_CHARACTERS = 400


class RecordingContract(ContractSubject):
    """Tests of what a harness reads from recordings."""

    def test_recordings_show_what_it_can(self) -> None:
        """At least one recording shows each feature of the harness."""
        cases = expected_results.load_expected(self.recordings)
        assert set(cases) == {one.name for one in self.kept()}
        exits, seen = (
            {one.exit[0] for one in cases.values() if one.exit},
            _find_first(cases, "seen"),
        )
        assert exits >= {"clean", "crash"}
        if self.whole.CAN.questions:
            assert any(one.answer for one in cases.values()), (
                "no recording contains an answered question"
            )
        assert "AssistantText" in seen
        if self.whole.CAN.resumes:
            assert any(one.resumes and cases[one.name].exit == ["clean"] for one in self.kept())
            assert "SessionOpened" in seen, "without this, no session can be resumed"
            assert "resume-failed" in exits
        if self.whole.CAN.hooks:
            assert _find_first(cases, "hooked") >= _FACTS
        if any(one.transcript for one in self.kept()):
            assert any(one.usage for one in cases.values())

    def test_every_recording_is_read(self) -> None:
        """The output, hooks, usage and exit of each recording are as expected."""
        cases = expected_results.load_expected(self.recordings)
        for recording in self.kept():
            for supervised in (False, True):
                found = expected_results.read_recording(
                    recording, self.whole, supervised=supervised
                )
                for name in ExpectedResult.__struct_fields__:
                    made, wanted_ = getattr(found, name), getattr(cases[recording.name], name)
                    assert made == wanted_, f"{recording.name}: {name}: {json.dumps(made)}"

    def test_a_transcript_has_what_its_session_was_asked(self) -> None:
        """A transcript contains each prompt that a hook reported, so the session can be resumed.

        If prompts have ids, a transcript that lacks a prompt is recognized.
        """
        for recording in self.kept():
            for fact in map(self.whole.read_hook, recording.hook_lines(self.whole)):
                if isinstance(fact, events.PromptSubmitted) and fact.session == recording.session:
                    lines = recording.transcript.split(b"\n")
                    assert self.whole.has_prompt(lines, fact.call), recording.name
                    sign = fact.call.encode()
                    if fact.call and sign in recording.transcript:
                        without = [line for line in lines if sign not in line]
                        assert not self.whole.has_prompt(without, fact.call), recording.name
                        assert not self.whole.has_prompt(lines, _OTHER), recording.name

    def test_an_end_is_told_in_a_line(self) -> None:
        """An exit is described in one line; a limit has the CLI's own words or a reset time."""
        for recording in self.kept():
            found = recording.exit(self.whole)
            assert found.kind in _KINDS
            assert _is_line(found.words), recording.name
            assert found.words
            assert found.kind != "limit" or found.hint or found.resets_at

    def test_usage_says_how_it_is_known(self) -> None:
        """Without a known window size, the usage is `unknown`; a given window size is used."""
        for recording in self.kept():
            for seen in recording.seen(self.whole):
                if isinstance(seen, UsageReport):
                    _require_known(seen.usage)
            if found := self.whole.usage(recording.transcript, {}):
                _require_known(found)
                told = self.whole.usage(recording.transcript, {found.model: 123_456})
                assert told is not None
                assert told.tokens == found.tokens
                assert told.window == (123_456 if found.window is None else told.window)
                assert told.known == ("reported" if found.window is None else told.known)

    def test_a_requested_end_is_not_a_crash(self) -> None:
        """A requested stop is an interruption, whatever the program printed."""
        for recording in self.kept():
            found = self.whole.classify(recording.ended(self.whole, stopped=True))
            assert found.kind == "interrupted", recording.name

    def test_a_process_that_was_killed_has_crashed(self) -> None:
        """A process killed by SIGKILL counts as crashed, because it has no final report."""
        assert self.whole.classify(ProcessResult(code=-9, session=SESSION)).kind == "crash"

    def test_another_session_than_the_one_asked_for_is_a_failed_resume(self) -> None:
        """A CLI that silently opens a new session has not resumed the old one."""
        if self.whole.CAN.resumes:
            ended = ProcessResult(code=0, session=SESSION, resumes=True, opened=_OTHER)
            assert self.whole.classify(ended).kind == "resume-failed"

    def test_a_damaged_hook_is_refused_and_nothing_else(self) -> None:
        """A damaged payload raises DocumentError or leads to a valid event."""
        for word, lines in self.told_by_hooks().items():
            first = next(line for line in lines if line.event == word)
            for payload in hostile_lines.damage_lines(line.payload for line in lines):
                for cut in (0, len(payload)):
                    line = msgspec.structs.replace(first, payload=payload, cut=cut)
                    try:
                        fact = self.whole.read_hook(line)
                    except DocumentError:
                        continue
                    assert fact is None or events.parse(events.render(fact)) == fact

    def told_by_hooks(self) -> dict[str, list[Any]]:
        """Return the recorded hook lines, by event."""
        found: dict[str, list[Any]] = {}
        for recording in self.kept():
            for line in recording.hook_lines(self.whole):
                found.setdefault(line.event, []).append(line)
        return found

    def test_a_damaged_transcript_raises_nothing(self) -> None:
        """A damaged line leads to valid passages and usage, or to none."""
        lines = (line for one in self.kept() for line in one.transcript.split(b"\n"))
        for line in hostile_lines.damage_lines(lines):
            if found := self.whole.usage(line, {}):
                _require_known(found)
            for passage in self.whole.read_transcript(line):
                require_sound(passage.what)
                assert all(map(_is_line, (passage.at, passage.message, passage.thread)))

    def test_a_transcript_tells_every_turn_that_counts(self) -> None:
        """Each turn that counts towards the budget, and each reported prompt, is in a passage."""
        for recording in self.kept():
            told: list[Any] = []
            for line in recording.transcript.split(b"\n"):
                found = [passage.what for passage in self.whole.read_transcript(line)]
                counted, used = (
                    self.whole.turn(line),
                    [one for one in found if type(one) is UsageReport],
                )
                assert used == ([counted] if counted else []), recording.name
                told += found
            asked = [one.text.strip() for one in told if isinstance(one, PromptText)]
            for fact in map(self.whole.read_hook, recording.hook_lines(self.whole)):
                # If two processes share a session, a prompt of one may be lost.
                if isinstance(fact, events.PromptSubmitted) and _contains_value(
                    fact.text, recording
                ):
                    assert fact.text.strip() in asked, recording.name

    def test_a_damaged_line_raises_nothing(self) -> None:
        """A line that is truncated, mangled, nested or huge leads to valid items, or to none."""
        for line in hostile_lines.damage_lines(line for one in self.kept() for line in one.stream):
            shown = self.whole.read_stream(line)
            assert isinstance(shown, tuple)
            for one in shown:
                require_sound(one)
                if isinstance(one, FinalReport):
                    self.judge(finished=one)
                if isinstance(one, LimitReport):
                    self.judge(refused=one)
        for text in hostile_lines.TEXTS:
            self.judge(errors=text)

    def judge(self, **facts: Any) -> None:
        """Classify a process result, and require that its exit is described in one line."""
        for resumes in (False, True):
            ended = ProcessResult(**{"code": 1, "session": SESSION, "resumes": resumes, **facts})
            found = self.whole.classify(ended)
            assert found.kind in _KINDS
            assert found.words
            assert _is_line(found.words)


def _contains_value(text: str, recording: Recording) -> bool:
    return json.dumps(text).strip('"').encode() in recording.transcript


def _find_first(cases: dict[str, ExpectedResult], name: str) -> set[str]:
    return {row[0] for one in cases.values() for row in getattr(one, name)}


def _is_line(words: str) -> bool:
    return len(words) <= _WORDS_CHARACTERS and words == " ".join(words.split())


def _require_known(usage: WindowUsage) -> None:
    require_sound(usage)
    assert usage.tokens >= 0
    assert (usage.known == "unknown") is (usage.window is None)
