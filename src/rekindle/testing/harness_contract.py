"""What every harness keeps, built in or plugged in.

Subclass it in a test module and say which harness, and where its recordings are:

    class TestMine(HarnessContract):
        harness = mine
        recordings = Path(__file__).parent / "recordings"
        exits = {"text": "clean", "sigkill": "crash"}

pytest finds the tests by themselves; they run on recordings, at the speed of unit tests.
"""

import json
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, get_args

from rekindle.documents.event import PromptSubmitted
from rekindle.documents.hookline import HookLine
from rekindle.documents.identity import AGENT_NAME
from rekindle.documents.launch import Ended, ExitKind, Start, Used
from rekindle.errors import RekindleError
from rekindle.ports import Harness
from rekindle.testing.recording import Recording, load_all

_SESSION = "0a1b2c3d-0000-4000-8000-00000000000f"
_KINDS = frozenset(get_args(ExitKind))
_NO_SESSIONS = ("--help", "-c", "latest", "../up", "", "a b", "x\0y")
_TOLD_AT = ("SessionStart", "BeforeAgent")
_SEED = 20260409
_DAMAGED_EACH = 20


class HarnessContract:
    harness: ClassVar[Harness]
    recordings: ClassVar[Path]
    """A folder of recordings, one file a case."""
    exits: ClassVar[Mapping[str, ExitKind]]
    """How each case ended."""
    program: ClassVar[tuple[str, ...]] = ("some-program",)
    """What is started; the `command` harness has no program of its own."""

    def kept(self) -> list[Recording]:
        found = load_all(self.recordings)
        assert found, f"no recordings in {self.recordings}"
        return found

    def start(self, *, session: str = _SESSION, resumes: bool = False) -> Start:
        own = session if resumes or self.harness.CAN.names_sessions else ""
        return Start(
            session=own,
            resumes=resumes,
            hook=("/py", "-I", "-S", "/hook.pyc") if self.harness.CAN.hooks else (),
            scratch="/scratch",
            program=self.program,
        )

    def test_it_has_a_name_and_says_how_it_is_installed(self) -> None:
        """The name stands in manifests and records; whoever lacks the program is told."""
        assert AGENT_NAME.match(self.harness.NAME)
        assert self.harness.INSTALL

    def test_a_command_is_made_anew_each_time(self) -> None:
        """Nothing is left in it from the launch before: no option adds up."""
        first = self.harness.command(self.start())
        if self.harness.CAN.resumes:
            self.harness.command(self.start(resumes=True))
        assert self.harness.command(self.start()) == first
        assert first.argv[: len(self.program)] == self.program
        assert all("\0" not in word for word in first.argv)

    def test_a_session_is_given_its_id(self) -> None:
        """A new one where the CLI takes one, one that goes on always."""
        if self.harness.CAN.names_sessions and self.harness.CAN.resumes:
            assert any(_SESSION in word for word in self.harness.command(self.start()).argv)
        if self.harness.CAN.resumes:
            going_on = self.harness.command(self.start(resumes=True)).argv
            assert any(_SESSION in word for word in going_on)

    def test_only_a_session_s_id_is_resumed(self) -> None:
        """What a CLI could take for an option, a name or the newest session is refused."""
        if not self.harness.CAN.resumes:
            return
        for text in _NO_SESSIONS:
            try:
                made = self.harness.command(self.start(session=text, resumes=True))
            except RekindleError:
                continue
            raise AssertionError(f"{text!r} was taken for a session: {made.argv}")

    def test_files_stay_in_the_scratch_folder(self) -> None:
        """Their names are names, not paths."""
        for name in self.harness.command(self.start()).files:
            assert re.fullmatch(r"[a-z][a-z0-9.-]*", name), name

    def test_hooks_start_our_program_and_have_a_time_limit(self) -> None:
        """Each names the harness and its event, in words of ours, and can be written as JSON."""
        if not self.harness.CAN.hooks:
            return
        for supervised in (False, True):
            made = self.harness.hooks(("/py", "/a b/hook.pyc"), supervised=supervised, folder="/f")
            text = json.dumps(made)
            assert "'/a b/hook.pyc'" in text, "a path with a space is quoted"
            assert f" {self.harness.NAME} " in text
            assert text.count('"timeout"') == text.count('"command":')
        said = [self.harness.told(event, "what it is told") for event in _TOLD_AT]
        assert any("what it is told" in text for text in said)

    def test_every_recording_is_read(self) -> None:
        """It ends as what it was, and says so in a line."""
        found = {one.name: one.exit(self.harness) for one in self.kept()}
        assert {name: one.kind for name, one in found.items()} == dict(self.exits)
        for name, one in found.items():
            assert one.kind in _KINDS
            assert one.words, name
            assert "\n" not in one.words

    def test_its_hooks_are_read(self) -> None:
        """Each is the fact of a session, or none that we keep."""
        for recording in self.kept():
            for line in recording.hook_lines(self.harness.NAME):
                fact = self.harness.read_hook(line)
                assert fact is None or str(getattr(fact, "session", ""))

    def test_a_transcript_has_what_its_session_was_asked(self) -> None:
        """By the id that a hook told: else nobody would be let go on with it."""
        for recording in self.kept():
            facts = map(self.harness.read_hook, recording.hook_lines(self.harness.NAME))
            for fact in facts:
                if isinstance(fact, PromptSubmitted) and fact.session == recording.session:
                    lines = recording.transcript.split(b"\n")
                    assert self.harness.holds(lines, fact.call), recording.name

    def test_usage_says_how_it_is_known(self) -> None:
        """From stream or transcript; one that is not known never has a window."""
        for recording in self.kept():
            last = self.harness.usage(recording.transcript, {})
            used = [one.usage for one in recording.seen(self.harness) if isinstance(one, Used)]
            for usage in (*used, *([last] if last else [])):
                assert usage.tokens >= 0
                assert usage.known != "unknown" or usage.window is None

    def test_what_is_damaged_raises_nothing(self) -> None:
        """Lines cut, mangled, nested, huge: nothing, or what is left of them."""
        rng = random.Random(_SEED)  # noqa: S311 - damage, not secrets
        for line in _damaged(rng, self.kept()):
            assert isinstance(self.harness.read_stream(line), tuple)
            self.harness.usage(line, {})
            self.harness.holds((line,), _SESSION)

    def test_a_damaged_hook_is_refused_and_nothing_else(self) -> None:
        """What cannot be read is a DocumentError; nothing else gets out."""
        if not self.harness.CAN.hooks:
            return
        rng = random.Random(_SEED)  # noqa: S311 - as above
        lines = [line for one in self.kept() for line in one.hook_lines(self.harness.NAME)]
        for line in lines:
            cut = line.payload[: rng.randrange(len(line.payload) + 1)]
            for payload in (cut, b"[" * 5000, b'{"session_id":["x"]}', rng.randbytes(50)):
                try:
                    self.harness.read_hook(_with(line, payload))
                except RekindleError:
                    continue

    def test_an_end_that_we_asked_for_is_no_crash(self) -> None:
        """Whatever the program made of it."""
        for recording in self.kept():
            found = self.harness.classify(recording.ended(self.harness, stopped=True))
            assert found.kind == "interrupted", recording.name

    def test_a_process_that_was_killed_has_crashed(self) -> None:
        """SIGKILL leaves no account of itself."""
        assert self.harness.classify(Ended(code=-9, session=_SESSION)).kind == "crash"

    def test_another_session_than_the_one_asked_for_is_a_failed_resume(self) -> None:
        """A CLI that opens a new one in silence must not be believed."""
        if self.harness.CAN.resumes:
            other = _SESSION.replace("0a1b", "ffff")
            ended = Ended(code=0, session=_SESSION, resumes=True, opened=other)
            assert self.harness.classify(ended).kind == "resume-failed"


def _damaged(rng: random.Random, kept: list[Recording]) -> list[bytes]:
    found = [b"", b"\0", b"null", b"[" * 100_000, b'{"type":' + b"9" * 5_000, b"\xff\xfe", b"{}"]
    for recording in kept:
        for line in rng.sample(recording.stream, min(_DAMAGED_EACH, len(recording.stream))):
            found.append(line[: rng.randrange(len(line) + 1)])
            torn = bytearray(line or b"x")
            torn[rng.randrange(len(torn))] = rng.randrange(256)
            found.append(bytes(torn))
    return found


def _with(line: HookLine, payload: bytes) -> HookLine:
    return HookLine(
        harness=line.harness, event=line.event, source=line.source, ts=line.ts, payload=payload
    )
