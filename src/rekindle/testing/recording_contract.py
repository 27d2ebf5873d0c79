"""Contract tests that read intact and damaged recordings."""

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
    """Tests for what a harness reads from recordings."""

    def test_recordings_show_what_it_can(self) -> None:
        """At least one recording covers each of the harness's features."""
        cases = expected_results.load_expected(self.recordings)
        assert set(cases) == {recording.name for recording in self.kept()}
        exits, item_kinds = (
            {case.exit[0] for case in cases.values() if case.exit},
            _find_first(cases, "seen"),
        )
        assert exits >= {"clean", "crash"}
        if self.whole.CAN.questions:
            assert any(case.answer for case in cases.values()), (
                "no recording contains an answered question"
            )
        assert "AssistantText" in item_kinds
        if self.whole.CAN.resumes:
            assert any(
                recording.resumes and cases[recording.name].exit == ["clean"]
                for recording in self.kept()
            )
            assert "SessionOpened" in item_kinds, "without this, no session can be resumed"
            assert "resume-failed" in exits
        if self.whole.CAN.hooks:
            assert _find_first(cases, "hooked") >= _FACTS
        if any(recording.transcript for recording in self.kept()):
            assert any(case.usage for case in cases.values())

    def test_every_recording_is_read(self) -> None:
        """Each recording's output, hooks, usage and exit are as expected."""
        cases = expected_results.load_expected(self.recordings)
        for recording in self.kept():
            for supervised in (False, True):
                results = expected_results.read_recording(
                    recording, self.whole, supervised=supervised
                )
                for name in ExpectedResult.__struct_fields__:
                    actual, wanted_ = getattr(results, name), getattr(cases[recording.name], name)
                    assert actual == wanted_, f"{recording.name}: {name}: {json.dumps(actual)}"

    def test_a_transcript_has_what_its_session_was_asked(self) -> None:
        """A transcript contains each prompt that a hook reported, so the session can be resumed.

        If prompts have ids, a missing prompt is detected.
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
        """An exit has a one-line description. A limit has the CLI's own words or a reset time."""
        for recording in self.kept():
            launch_exit = recording.exit(self.whole)
            assert launch_exit.kind in _KINDS
            assert _is_line(launch_exit.words), recording.name
            assert launch_exit.words
            assert launch_exit.kind != "limit" or launch_exit.hint or launch_exit.resets_at

    def test_usage_says_how_it_is_known(self) -> None:
        """The usage is `unknown` without a known window size. A given window size is used."""
        for recording in self.kept():
            for item in recording.seen(self.whole):
                if isinstance(item, UsageReport):
                    _require_known(item.usage)
            if usage := self.whole.usage(recording.transcript, {}):
                _require_known(usage)
                sized_usage = self.whole.usage(recording.transcript, {usage.model: 123_456})
                assert sized_usage is not None
                assert sized_usage.tokens == usage.tokens
                assert sized_usage.window == (
                    123_456 if usage.window is None else sized_usage.window
                )
                assert sized_usage.known == (
                    "reported" if usage.window is None else sized_usage.known
                )

    def test_a_requested_end_is_not_a_crash(self) -> None:
        """A requested stop counts as an interruption, whatever the program printed."""
        for recording in self.kept():
            launch_exit = self.whole.classify(recording.ended(self.whole, stopped=True))
            assert launch_exit.kind == "interrupted", recording.name

    def test_a_process_that_was_killed_has_crashed(self) -> None:
        """A process that SIGKILL ended counts as crashed, because it has no final report."""
        assert self.whole.classify(ProcessResult(code=-9, session=SESSION)).kind == "crash"

    def test_another_session_than_the_one_asked_for_is_a_failed_resume(self) -> None:
        """If a CLI silently opens a new session, the old one was not resumed."""
        if self.whole.CAN.resumes:
            ended = ProcessResult(code=0, session=SESSION, resumes=True, opened=_OTHER)
            assert self.whole.classify(ended).kind == "resume-failed"

    def test_a_damaged_hook_is_refused_and_nothing_else(self) -> None:
        """A damaged payload raises DocumentError or gives a valid event."""
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
        lines_of: dict[str, list[Any]] = {}
        for recording in self.kept():
            for line in recording.hook_lines(self.whole):
                lines_of.setdefault(line.event, []).append(line)
        return lines_of

    def test_a_damaged_transcript_raises_nothing(self) -> None:
        """A damaged line gives valid passages and usage, or none."""
        lines = (line for recording in self.kept() for line in recording.transcript.split(b"\n"))
        for line in hostile_lines.damage_lines(lines):
            if usage := self.whole.usage(line, {}):
                _require_known(usage)
            for passage in self.whole.read_transcript(line):
                require_sound(passage.what)
                assert all(map(_is_line, (passage.at, passage.message, passage.thread)))

    def test_a_transcript_tells_every_turn_that_counts(self) -> None:
        """Each turn that counts towards the budget, and each reported prompt, is in a passage."""
        for recording in self.kept():
            passages: list[Any] = []
            for line in recording.transcript.split(b"\n"):
                contents = [passage.what for passage in self.whole.read_transcript(line)]
                counted, used = (
                    self.whole.turn(line),
                    [item for item in contents if type(item) is UsageReport],
                )
                assert used == ([counted] if counted else []), recording.name
                passages += contents
            prompts = [item.text.strip() for item in passages if isinstance(item, PromptText)]
            for fact in map(self.whole.read_hook, recording.hook_lines(self.whole)):
                # If two processes share a session, one of their prompts may be lost.
                if isinstance(fact, events.PromptSubmitted) and _contains_value(
                    fact.text, recording
                ):
                    assert fact.text.strip() in prompts, recording.name

    def test_a_damaged_line_raises_nothing(self) -> None:
        """A line that is truncated, mangled, nested or huge gives valid items, or none."""
        for line in hostile_lines.damage_lines(
            line for recording in self.kept() for line in recording.stream
        ):
            shown = self.whole.read_stream(line)
            assert isinstance(shown, tuple)
            for item in shown:
                require_sound(item)
                if isinstance(item, FinalReport):
                    self.judge(finished=item)
                if isinstance(item, LimitReport):
                    self.judge(refused=item)
        for text in hostile_lines.TEXTS:
            self.judge(errors=text)

    def judge(self, **facts: Any) -> None:
        """Classify a process result, and check that the exit has a one-line description."""
        for resumes in (False, True):
            ended = ProcessResult(**{"code": 1, "session": SESSION, "resumes": resumes, **facts})
            launch_exit = self.whole.classify(ended)
            assert launch_exit.kind in _KINDS
            assert launch_exit.words
            assert _is_line(launch_exit.words)


def _contains_value(text: str, recording: Recording) -> bool:
    return json.dumps(text).strip('"').encode() in recording.transcript


def _find_first(cases: dict[str, ExpectedResult], name: str) -> set[str]:
    return {row[0] for case in cases.values() for row in getattr(case, name)}


def _is_line(words: str) -> bool:
    return len(words) <= _WORDS_CHARACTERS and words == " ".join(words.split())


def _require_known(usage: WindowUsage) -> None:
    require_sound(usage)
    assert usage.tokens >= 0
    assert (usage.known == "unknown") is (usage.window is None)
