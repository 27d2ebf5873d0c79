"""What every harness keeps, built in or plugged in.

Subclass it in a test module and say which harness, and where its recordings are:

    class TestMine(HarnessContract):
        harness = mine
        recordings = Path(__file__).parent / "recordings"

pytest finds the tests by themselves; they run on the recordings, at the speed of unit tests. What
a harness should make of each recording stands beside them, in `expected.json`: see
`rekindle.testing.expected_results`. What a CLI cannot do, by its `Capabilities`, is not asked for.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, get_args

import msgspec

from rekindle.documents import events
from rekindle.documents.events import AnyEvent
from rekindle.documents.hooks.hook_settings import (
    HOOK_PROGRAM,
    HookCommand,
    list_wanted,
    parse_hook_command,
)
from rekindle.documents.launches.cli_output import (
    LAUNCH_VARIABLE,
    ExitKind,
    FinalReport,
    LaunchSpec,
    LimitReport,
    OutputItem,
    ProcessResult,
    UsageReport,
    WindowUsage,
)
from rekindle.documents.launches.cli_output import ProgramCommand as Made
from rekindle.documents.launches.one_shot import (
    ONE_SHOT_VARIABLE,
    OneShotAnswer,
    OneShotQuestion,
)
from rekindle.documents.manifest import Permissions, Persona
from rekindle.documents.transcripts.turns import (
    PassageContent,
    PromptText,
)
from rekindle.errors import (
    DocumentError,
    ManifestError,
    RekindleError,
    UnenforceableError,
    UsageError,
)
from rekindle.formats.identifiers import AGENT_NAME
from rekindle.policy.setup import environment
from rekindle.ports import (
    Harness,
    HarnessEssentials,
    complete_harness,
)
from rekindle.testing import (
    expected_results,
    hostile_lines,
)
from rekindle.testing.expected_results import ExpectedResult
from rekindle.testing.recordings import (
    Recording,
    load_recordings,
)

_SESSION = "0a1b2c3d-0000-4000-8000-00000000000f"
_OTHER = "ffff2c3d-0000-4000-8000-00000000000f"
_KINDS = frozenset(get_args(ExitKind))
_NO_SESSIONS = ("--help", "-c", "latest", "../up", "", "a b", "x\0y")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{2,}\Z")
_ALWAYS_PASSED_ON = {"PATH": "/bin", "HOME": "/home/user"}
_HOOK = ("/a b/python", "-I", f"/a b/{HOOK_PROGRAM}")
_GONE = ("/nowhere/python", f"/nowhere/{HOOK_PROGRAM}")
_FACTS = frozenset({"session.started", "session.ended", "prompt.submitted", "heartbeat"})
"""What priming, recovery and the signs of life are made from."""
_NOBODYS_RULE = "Bash(\0)"
"""What no CLI can be held to: it cannot even be told."""
_DASHED = "--no-option"
_RESUMING = re.compile(r"resume|continue|session-id|hooks?\.json|settings=")
"""What a question must not say: that it goes on, or whose hooks are to run."""
_NARROW = ("Bash(git log:*)", "Bash(git push:*)")
"""Parts of a tool: to be kept apart from each other and from the whole, or refused."""
_TASK = "Ship the parser"
_MEANT_OTHERWISE = (f"--{_TASK}", f"/{_TASK}", f"!{_TASK}", f"\n /{_TASK}")
"""Prompts that a CLI in a terminal would take for an option, or for a command."""
_SESSION_MARKS = (
    *("CLAUDE_CODE_SESSION_ID", "CLAUDE_PID", "CODEX_THREAD_ID", "CODEX_SESSION_ID"),
    *("CODEX_SANDBOX", "GEMINI_CLI", "GEMINI_SESSION_ID"),
)
"""By these a CLI knows that it runs inside a session: ours may have been started from one."""
_KEYS = (
    *("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "GEMINI_API_KEY"),
    *("GOOGLE_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "GH_TOKEN", "GITLAB_TOKEN"),
    *("NPM_TOKEN", "PYPI_TOKEN", "DOCKER_PASSWORD", "DATABASE_URL", "SLACK_TOKEN", "HF_TOKEN"),
)
"""What lies about in people's environments; whose harness needs one says so in `keys`."""
_WORDS_CHARACTERS = 400
_GRANTED = (
    *("Bash", "Write", "Edit", "NotebookEdit", "WebFetch", "Task", "mcp__box__put", "mcp_box_*"),
    *("*", "Bash(git log:*)", "Write(*)", "--help", _NOBODYS_RULE, "run_shell_command"),
)
"""What no question may be granted: it writes, runs, or nobody knows what it does."""
_UNTAME = (_DASHED, f"\n{_DASHED}", f'" {_DASHED} "', f"' {_DASHED}", f"={_DASHED}", "é\0", "{")
"""Words that could pass for an option, or end a text before its end."""


class HarnessContract:
    harness: ClassVar[HarnessEssentials]
    """A module or an object with the six members; what else it has is tested too."""
    recordings: ClassVar[Path]
    """A folder of recordings, one file a case, with their `expected.json`."""
    program: ClassVar[tuple[str, ...]] = ("some-program",)
    """What is started; the `command` harness has no program of its own."""
    keys: ClassVar[tuple[str, ...]] = ()
    """How the keys begin that its program logs in with: no other program's may be passed on."""

    @property
    def whole(self) -> Harness:
        """The harness as Rekindle uses it."""
        return complete_harness(self.harness)

    def kept(self) -> tuple[Recording, ...]:
        found = load_recordings(self.recordings)
        assert found, f"no recordings in {self.recordings}"
        return found

    def start(self, *, session: str = _SESSION, resumes: bool = False, **more: Any) -> LaunchSpec:
        own = session if resumes or self.whole.CAN.names_sessions else ""
        hook = _HOOK if self.whole.CAN.hooks else ()
        given = {"hook": hook, "scratch": "/scratch", "program": self.program, **more}
        return LaunchSpec(session=own, resumes=resumes, **given)

    def starts(self) -> Iterator[dict[str, Any]]:
        """Of a fresh session and of one that goes on, in a terminal and without one."""
        for interactive in (False, True):
            yield {"interactive": interactive}
            if self.whole.CAN.resumes:
                yield {"interactive": interactive, "resumes": True}

    # What it is

    def test_it_has_a_name_and_says_how_it_is_installed(self) -> None:
        """The name stands in manifests and records; whoever lacks the program is told."""
        assert AGENT_NAME.match(self.whole.NAME)
        assert self.whole.INSTALL
        assert (self.whole.HOOK_FILES is not None) is self.whole.CAN.hooks
        assert hasattr(self.harness, "ask") is self.whole.CAN.questions

    def test_its_environment_is_its_own(self) -> None:
        """It gets what it is set up with: no other program's keys, and no mark of ours."""
        passed_on, never = self.whole.PASSED_PREFIXES, self.whole.BLOCKED_VARIABLES
        assert all(_VARIABLE.match(name) for name in (*passed_on, *never))
        others = [key for key in _KEYS if not key.startswith(self.keys or "-")]
        marks = (*_SESSION_MARKS, LAUNCH_VARIABLE, ONE_SHOT_VARIABLE, "REKINDLE_AGENT")
        unwanted = dict.fromkeys((*never, *marks, *others, "UNRELATED_KEY"), "x")
        ours = {**unwanted, **_ALWAYS_PASSED_ON}
        assert environment.select_variables(ours, passed_on, never) == _ALWAYS_PASSED_ON
        for how in self.starts():
            assert not set(self.whole.command(self.start(**how)).environment) & set(ours)

    # How it is started

    def test_a_command_is_made_anew_each_time(self) -> None:
        """Nothing is left in it from the launch before: no option adds up."""
        first = self.whole.command(self.start())
        if self.whole.CAN.resumes:
            self.whole.command(self.start(resumes=True))
        assert self.whole.command(self.start()) == first
        assert all("\0" not in word for word in first.argv)

    def test_the_program_is_the_one_asked_for(self) -> None:
        """Another in its place, or the CLI's own; without either nothing can be started."""
        for how in self.starts():
            made = self.whole.command(self.start(**how))
            assert made.argv[: len(self.program)] == self.program
        own = self.made(program=())
        assert own is None or own.argv[0] not in {"", *self.program}
        if self.whole.HOOK_FILES is not None:
            assert own is not None
            assert own.argv[0] == self.whole.HOOK_FILES.program

    def test_a_session_is_given_its_id(self) -> None:
        """A new one where the CLI takes one, one that goes on always, and it is told which of both.

        Else a session that is gone would be begun anew in silence.
        """
        if not self.whole.CAN.resumes:
            return
        fresh = self.whole.command(self.start()).argv
        going_on = self.whole.command(self.start(resumes=True)).argv
        assert _names(fresh, _SESSION) is self.whole.CAN.names_sessions
        assert _names(going_on, _SESSION)
        assert fresh != going_on

    def test_only_a_session_s_id_is_passed_on(self) -> None:
        """What a CLI could take for an option, a name or the newest session is refused."""
        if not self.whole.CAN.resumes:
            return
        for resumes in (True, False) if self.whole.CAN.names_sessions else (True,):
            for text in _NO_SESSIONS:
                try:
                    made = self.whole.command(self.start(session=text, resumes=resumes))
                except RekindleError:
                    continue
                raise AssertionError(f"{text!r} was taken for a session: {made.argv}")

    def test_files_stay_in_the_scratch_folder(self) -> None:
        """Their names are names, not paths; and the program is told where they are."""
        read_only = Persona(permissions=Permissions(allowed_tools=[]))
        for more in ({}, {"persona": read_only}):
            made = self.made(**more) or Made(())
            for name in made.files:
                assert re.fullmatch(r"[a-z][a-z0-9.-]*", name), name
                assert f"/scratch/{name}" in _join_command(made, files=False)

    def test_a_prompt_in_a_terminal_is_a_prompt(self) -> None:
        """No option, and no command of the CLI; and it is started otherwise than without one.

        Only a program that keeps no sessions may be left without it: nobody knows how it is told.
        """
        if not self.whole.CAN.resumes:
            return
        for resumes in (False, True):
            headless = self.whole.command(self.start(resumes=resumes))
            for prompt in (_TASK, *_MEANT_OTHERWISE):
                made = self.made(resumes=resumes, interactive=True, prompt=prompt)
                if made is None:
                    continue
                assert _TASK in _join_command(made), made
                assert [word for word in made.argv if _TASK not in word] != list(headless.argv)
                if prompt != _TASK:
                    assert not _ends(made.argv, prompt), made

    # What a persona asks for

    def made(self, **more: Any) -> Made | None:
        """The command for a start; None, where it is refused in words that name the reason."""
        try:
            return self.whole.command(self.start(**more))
        except (UsageError, UnenforceableError) as error:
            refused = error
        assert refused.hint, f"{refused}: what can be done instead?"
        return None

    def test_permissions_are_kept_or_refused(self) -> None:
        """Each makes another command of it, in a session that goes on too; none is ignored."""
        for how in self.starts():

            def given(*, _how: Any = how, **rules: list[str]) -> Made | None:
                return self.made(persona=Persona(permissions=Permissions(**rules)), **_how)

            alone = self.whole.command(self.start(**how))
            nothing, reads = given(allowed_tools=[]), given(allowed_tools=["Read", "Grep"])
            shell, writes = given(allowed_tools=["Bash"]), given(allowed_tools=["Write", "Edit"])
            no_shell, no_writes = given(deny=["Bash"]), given(deny=["Write", "Edit"])
            both = given(allowed_tools=["Bash"], deny=["Bash"])
            parts = [given(allowed_tools=[one]) for one in _NARROW]
            no_parts = [given(deny=[one]) for one in _NARROW]
            for group in (
                (alone, nothing, shell, writes),
                (alone, reads, shell, writes),
                (alone, no_shell, no_writes),
                (alone, shell, both),
                (alone, shell, *parts),
                (alone, no_shell, *no_parts),
            ):
                known = [one for one in group if one is not None]
                assert all(known.count(one) == 1 for one in known), known

    def test_a_permission_that_cannot_be_kept_is_refused(self) -> None:
        """By its name, whether it is to be allowed or denied: nobody may trust what is not held."""
        for rules in ({"allowed_tools": [_NOBODYS_RULE]}, {"deny": ["Bash", _NOBODYS_RULE]}):
            start = self.start(persona=Persona(permissions=Permissions(**rules)))
            try:
                made = self.whole.command(start)
            except UnenforceableError:
                continue
            raise AssertionError(f"{_NOBODYS_RULE!r} was taken for a permission: {made.argv}")

    def test_a_system_prompt_is_given_or_refused(self) -> None:
        """By its file or by its words; both come with the start."""
        file, words = "/personas/keeper.md", "You keep the light."
        made = self.made(persona=Persona(system_prompt_file=file), instructions=words)
        assert made is None or file in _join_command(made) or words in _join_command(made)

    def test_nothing_that_is_given_becomes_an_option(self) -> None:
        """A name or a text that begins with a dash is joined to its option, or refused."""
        for persona in (
            Persona(system_prompt_file=_DASHED),
            Persona(permissions=Permissions(allowed_tools=[_DASHED])),
            Persona(permissions=Permissions(deny=[_DASHED])),
        ):
            for how in self.starts():
                made = self.made(persona=persona, instructions=_DASHED, **how)
                assert made is None or not _begins(made.argv, _DASHED), made

    # What it is asked

    def question(self, **more: Any) -> OneShotQuestion:
        return OneShotQuestion(**{"scratch": "/scratch", "program": self.program, **more})

    def asked(self, **more: Any) -> Made | None:
        """The command for a question; None, where it is refused in words that name the reason."""
        try:
            return self.whole.ask(self.question(**more))
        except (UsageError, ManifestError) as error:
            refused = error
        assert refused.hint, f"{refused}: what can be done instead?"
        return None

    def test_a_question_is_no_session(self) -> None:
        """None is named, begun or gone on with, no hook comes with it, and our own are told so."""
        if not self.whole.CAN.questions:
            return
        made = self.whole.ask(self.question())
        assert made == self.whole.ask(self.question())
        assert made.argv[: len(self.program)] == self.program
        assert made.environment[ONE_SHOT_VARIABLE] == "1"
        assert LAUNCH_VARIABLE not in made.environment
        words = made.argv[len(self.program) :]
        assert not any(_RESUMING.search(word) for word in words), words
        assert HOOK_PROGRAM not in _join_command(made)
        own = self.asked(program=())
        assert own is None or own.argv[0] not in {"", *self.program}
        if self.whole.HOOK_FILES is not None:
            assert own is not None
            assert own.argv[0] == self.whole.HOOK_FILES.program

    def test_a_question_may_read_at_most(self) -> None:
        """Nothing is as good as nothing said; to read is another command or refused; no more is."""
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
        """By its command or by a file, which the program is told of; so with a schema."""
        if not self.whole.CAN.questions:
            return
        made = self.asked(instructions="You keep the light.", schema='{"type": "object"}')
        assert made is not None
        assert "You keep the light." in _join_command(made)
        for name in made.files:
            assert re.fullmatch(r"[a-z][a-z0-9.-]*", name), name
            assert f"/scratch/{name}" in _join_command(made, files=False)

    def test_nothing_that_is_asked_becomes_an_option(self) -> None:
        """Whatever instructions, schema and persona say: the options stay; or it is refused.

        What stands in a file is no option.
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
        """Nothing is no answer; whatever else was printed raises nothing, and is sound."""
        if not self.whole.CAN.questions:
            return
        assert self.whole.answer(()) is None
        streams = [one.stream for one in self.kept() if one.asked]
        longest = max(streams, key=len, default=())
        for line in hostile_lines.damage_lines(line for stream in streams for line in stream):
            for output in ([line], [*longest, line], [line, *longest]):
                found = self.whole.answer(output)
                if found is not None:
                    _require_sound(found)
                    assert found.text.strip()

    def test_an_answer_that_was_cut_is_none_or_less(self) -> None:
        """A CLI that says when it is done has answered only then."""
        for one in self.kept():
            if one.asked and any(isinstance(seen, FinalReport) for seen in one.seen(self.whole)):
                for length in range(len(one.stream)):
                    assert self.whole.answer(one.stream[:length]) is None

    # What its hooks tell

    def test_hooks_are_ours_and_never_stand_in_the_way(self) -> None:
        """Each is found again as ours, has a time limit, and succeeds where our program is gone."""
        if not self.whole.CAN.hooks:
            return
        for supervised in (False, True):
            for folder in ("", "/a folder"):
                made = self.whole.hooks(_HOOK, supervised=supervised, folder=folder)
                for _, _, hook in list_wanted(json.loads(json.dumps(made))):
                    found = parse_hook_command(hook["command"])
                    assert found is not None, hook
                    told = HookCommand(_HOOK[0], _HOOK[-1], self.whole.NAME, found.event, folder)
                    assert found == told
                    assert hook["timeout"] >= 1
        gone = list_wanted(self.whole.hooks(_GONE, supervised=True))
        lines = [f"({hook['command']}) || exit 1" for _, _, hook in gone]
        shell = ["/bin/sh", "-c", "\n".join(lines)]
        ended = subprocess.run(shell, capture_output=True, check=False)  # noqa: S603 - as the CLI starts it
        assert ended.returncode == 0, "a hook that fails must not block the CLI"

    def test_a_launch_has_its_hooks(self) -> None:
        """All of them, wherever the CLI takes them from."""
        if not self.whole.CAN.launch_hooks:
            return
        for how in self.starts():
            whole = _join_command(self.whole.command(self.start(**how)))
            for _, _, hook in list_wanted(self.whole.hooks(_HOOK, supervised=True)):
                found = parse_hook_command(hook["command"])
                assert found is not None
                assert f" {self.whole.NAME} {found.event}" in whole

    def test_where_it_is_stopped_it_has_a_hook(self) -> None:
        """A brake that no hook of a launch is there for would never be put on."""
        brake = self.whole.brake(interactive=False)
        if brake is None:
            return
        found = list_wanted(self.whole.hooks(_HOOK, supervised=True))
        words = [parse_hook_command(hook["command"]) for _, _, hook in found]
        assert brake.event in {word.event for word in words if word}
        assert brake.signs
        assert brake.counts

    def test_a_session_can_be_told(self) -> None:
        """One of its hooks prints a text so that it arrives as it is."""
        if not self.whole.CAN.hooks:
            return
        text = 'First line, "quoted"\n\\ second: é'
        found = list_wanted(self.whole.hooks(_HOOK, supervised=False))
        words = [parse_hook_command(hook["command"]) for _, _, hook in found]
        hook_events = {word.event.partition(":")[0] for word in words if word}
        assert any(
            text in _list_texts(self.whole.told(hook_event, text)) for hook_event in hook_events
        )

    def test_a_hook_s_fact_keeps_what_ours_has_seen(self) -> None:
        """When it was, whose session it is, which launch; and its session where it was cut."""
        for line in (line for one in self.kept() for line in one.hook_lines(self.whole)):
            seen = {"launch": "4f1c", "process": "1 2 3", "visitor": True}
            whole = self.whole.read_hook(msgspec.structs.replace(line, **seen))
            cut = self.whole.read_hook(msgspec.structs.replace(line, cut=len(line.payload)))
            assert (whole is None) is (cut is None)
            if whole is None or cut is None:
                continue
            assert (type(whole), _select_type(whole, "session")) == (
                type(cut),
                _select_type(cut, "session"),
            )
            assert whole.ts == line.ts
            own = {**seen, "harness": self.whole.NAME}
            assert {name: _select_type(whole, name, own[name]) for name in own} == own

    # What it makes of recordings

    def test_recordings_show_what_it_can(self) -> None:
        """Nothing that it is relied on for is without one."""
        cases = expected_results.load_expected(self.recordings)
        assert set(cases) == {one.name for one in self.kept()}
        exits, seen = (
            {one.exit[0] for one in cases.values() if one.exit},
            _find_first(cases, "seen"),
        )
        assert exits >= {"clean", "crash"}
        if self.whole.CAN.questions:
            assert any(one.answer for one in cases.values()), "has it ever answered a question?"
        assert "AssistantText" in seen
        if self.whole.CAN.resumes:
            assert any(one.resumes and cases[one.name].exit == ["clean"] for one in self.kept())
            assert "SessionOpened" in seen, "without it, no session is gone on with"
            assert "resume-failed" in exits
        if self.whole.CAN.hooks:
            assert _find_first(cases, "hooked") >= _FACTS
        if any(one.transcript for one in self.kept()):
            assert any(one.usage for one in cases.values())

    def test_every_recording_is_read(self) -> None:
        """As what it was: what it showed, what its hooks told, how full it was, how it ended."""
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
        """By the id that a hook told: else nobody would be let go on with it.

        Where the CLI gives its prompts ids, a transcript that lost one does not have it.
        """
        for recording in self.kept():
            for fact in map(self.whole.read_hook, recording.hook_lines(self.whole)):
                if isinstance(fact, events.PromptSubmitted) and fact.session == recording.session:
                    lines = recording.transcript.split(b"\n")
                    assert self.whole.holds(lines, fact.call), recording.name
                    sign = fact.call.encode()
                    if fact.call and sign in recording.transcript:
                        without = [line for line in lines if sign not in line]
                        assert not self.whole.holds(without, fact.call), recording.name
                        assert not self.whole.holds(lines, _OTHER), recording.name

    def test_an_end_is_told_in_a_line(self) -> None:
        """And a limit in the CLI's own words, which say when it ends."""
        for recording in self.kept():
            found = recording.exit(self.whole)
            assert found.kind in _KINDS
            assert _is_line(found.words), recording.name
            assert found.words
            assert found.kind != "limit" or found.hint or found.resets_at

    def test_usage_says_how_it_is_known(self) -> None:
        """Where the window is not known nothing is decided by it, until somebody has told it."""
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

    def test_an_end_that_we_asked_for_is_no_crash(self) -> None:
        """Whatever the program made of it."""
        for recording in self.kept():
            found = self.whole.classify(recording.ended(self.whole, stopped=True))
            assert found.kind == "interrupted", recording.name

    def test_a_process_that_was_killed_has_crashed(self) -> None:
        """SIGKILL leaves no account of itself."""
        assert self.whole.classify(ProcessResult(code=-9, session=_SESSION)).kind == "crash"

    def test_another_session_than_the_one_asked_for_is_a_failed_resume(self) -> None:
        """A CLI that opens a new one in silence must not be believed."""
        if self.whole.CAN.resumes:
            ended = ProcessResult(code=0, session=_SESSION, resumes=True, opened=_OTHER)
            assert self.whole.classify(ended).kind == "resume-failed"

    # What nobody should send

    def test_a_damaged_hook_is_refused_and_nothing_else(self) -> None:
        """What cannot be read is a DocumentError; nothing else gets out, and nothing unsound."""
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
        """Everything that the hooks of each word were told."""
        found: dict[str, list[Any]] = {}
        for recording in self.kept():
            for line in recording.hook_lines(self.whole):
                found.setdefault(line.event, []).append(line)
        return found

    def test_a_damaged_transcript_raises_nothing(self) -> None:
        """And tells nothing that cannot be."""
        lines = (line for one in self.kept() for line in one.transcript.split(b"\n"))
        for line in hostile_lines.damage_lines(lines):
            if found := self.whole.usage(line, {}):
                _require_known(found)
            for passage in self.whole.read_transcript(line):
                _require_sound(passage.what)
                assert all(map(_is_line, (passage.at, passage.message, passage.thread)))

    def test_a_transcript_tells_every_turn_that_counts(self) -> None:
        """In the normal form as towards the budget, and what was asked as a hook told it."""
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
                # A process that shares its session with another may lose it.
                if isinstance(fact, events.PromptSubmitted) and _contains_value(
                    fact.text, recording
                ):
                    assert fact.text.strip() in asked, recording.name

    def test_a_damaged_line_raises_nothing(self) -> None:
        """Cut, mangled, nested, huge, any value a wrong one: nothing, or what is left of it."""
        for line in hostile_lines.damage_lines(line for one in self.kept() for line in one.stream):
            shown = self.whole.read_stream(line)
            assert isinstance(shown, tuple)
            for one in shown:
                _require_sound(one)
                if isinstance(one, FinalReport):
                    self.judge(finished=one)
                if isinstance(one, LimitReport):
                    self.judge(refused=one)
        for text in hostile_lines.TEXTS:
            self.judge(errors=text)

    def judge(self, **facts: Any) -> None:
        """However it ended, it can be told in a line."""
        for resumes in (False, True):
            ended = ProcessResult(**{"code": 1, "session": _SESSION, "resumes": resumes, **facts})
            found = self.whole.classify(ended)
            assert found.kind in _KINDS
            assert found.words
            assert _is_line(found.words)


def _contains_value(text: str, recording: Recording) -> bool:
    return json.dumps(text).strip('"').encode() in recording.transcript


def _names(argv: tuple[str, ...], session: str) -> bool:
    return any(word == session or word.endswith(f"={session}") for word in argv)


def _make_granting(*tools: str) -> Persona:
    return Persona(permissions=Permissions(allowed_tools=[*tools]))


def _list_options(argv: tuple[str, ...]) -> list[str]:
    """What a command line says, but for the values: of a setting, the name is an option's too."""
    return [re.sub(r"(?s)^(--config=[\w.]+|[^=]*)=.*", r"\1", word) for word in argv]


def _begins(argv: tuple[str, ...], text: str) -> bool:
    return any(word.startswith(text) for word in argv)


def _ends(argv: tuple[str, ...], text: str) -> bool:
    """Whether a word is that text, or an option's value is."""
    return any(word == text or word.endswith(f"={text}") for word in argv)


def _join_command(made: Made, *, files: bool = True) -> str:
    """All that the program is told by its command."""
    return "\n".join(
        (*made.argv, *made.environment.values(), *(made.files.values() if files else ()))
    )


def _list_texts(printed: str) -> list[str]:
    """The texts of what a hook prints: as it is, or somewhere in a JSON text."""
    found = [printed]
    try:
        waiting = [json.loads(printed)]
    except ValueError:
        return found
    while waiting:
        match waiting.pop():
            case dict() as fields:
                waiting += fields.values()
            case str() as text:
                found.append(text)
    return found


def _select_type(fact: AnyEvent, name: str, absent: Any = None) -> Any:
    return getattr(fact, name, absent)


def _find_first(cases: dict[str, ExpectedResult], name: str) -> set[str]:
    return {row[0] for one in cases.values() for row in getattr(one, name)}


def _is_line(words: str) -> bool:
    return len(words) <= _WORDS_CHARACTERS and words == " ".join(words.split())


def _require_known(usage: WindowUsage) -> None:
    _require_sound(usage)
    assert usage.tokens >= 0
    assert (usage.known == "unknown") is (usage.window is None)


def _require_sound(one: OutputItem | WindowUsage | PassageContent | OneShotAnswer) -> None:
    """Each field is of its type, and can be written: no half of a character is in it."""
    msgspec.convert(json.loads(msgspec.json.encode(one)), type(one))
