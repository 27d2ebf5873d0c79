"""The tests that every harness must pass, built-in or from a plugin.

Subclass it in a test module, with the harness and the folder of its recordings:

    class TestMine(HarnessContract):
        harness = mine
        recordings = Path(__file__).parent / "recordings"

pytest collects the inherited tests; they run on the recordings, as fast as unit tests. The expected
results are beside the recordings, in `expected.json`: see `rekindle.testing.expected_results`. A
test of a feature that the CLI lacks, by its `Capabilities`, is skipped.
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
"""Events that context, recovery and heartbeats depend on."""
_NOBODYS_RULE = "Bash(\0)"
"""Rule that no CLI can enforce, or even be given."""
_DASHED = "--no-option"
_RESUMING = re.compile(r"resume|continue|session-id|hooks?\.json|settings=")
"""Options that a question must not have: to resume a session, or to set hooks."""
_NARROW = ("Bash(git log:*)", "Bash(git push:*)")
"""Rules for parts of a tool, which must give different commands, or be refused."""
_TASK = "Ship the parser"
_MEANT_OTHERWISE = (f"--{_TASK}", f"/{_TASK}", f"!{_TASK}", f"\n /{_TASK}")
"""Prompts that a CLI in a terminal would take as an option or a command."""
_SESSION_MARKS = (
    *("CLAUDE_CODE_SESSION_ID", "CLAUDE_PID", "CODEX_THREAD_ID", "CODEX_SESSION_ID"),
    *("CODEX_SANDBOX", "GEMINI_CLI", "GEMINI_SESSION_ID"),
)
"""Variables of a CLI's session, in which Rekindle may have been started."""
_KEYS = (
    *("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "GEMINI_API_KEY"),
    *("GOOGLE_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "GH_TOKEN", "GITLAB_TOKEN"),
    *("NPM_TOKEN", "PYPI_TOKEN", "DOCKER_PASSWORD", "DATABASE_URL", "SLACK_TOKEN", "HF_TOKEN"),
)
"""Credentials in typical environments; a harness that needs one lists it in `keys`."""
_WORDS_CHARACTERS = 400
_GRANTED = (
    *("Bash", "Write", "Edit", "NotebookEdit", "WebFetch", "Task", "mcp__box__put", "mcp_box_*"),
    *("*", "Bash(git log:*)", "Write(*)", "--help", _NOBODYS_RULE, "run_shell_command"),
)
"""Tools that no question may be granted: they write, run commands, or are unknown."""
_UNTAME = (_DASHED, f"\n{_DASHED}", f'" {_DASHED} "', f"' {_DASHED}", f"={_DASHED}", "é\0", "{")
"""Texts that could become an option, or end a quoted text early."""


class HarnessContract:
    harness: ClassVar[HarnessEssentials]
    """Module or object with the six required members; its optional members are tested too."""
    recordings: ClassVar[Path]
    """Folder with one recording per case, and their `expected.json`."""
    program: ClassVar[tuple[str, ...]] = ("some-program",)
    """Program to start; the `command` harness has none of its own."""
    keys: ClassVar[tuple[str, ...]] = ()
    """Prefixes of the credentials that its program uses; those of other programs must not be passed
    on.
    """

    @property
    def whole(self) -> Harness:
        """Return the harness with defaults for its optional members, as Rekindle uses it."""
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
        """Yield arguments for fresh and resumed sessions, in a terminal and without one."""
        for interactive in (False, True):
            yield {"interactive": interactive}
            if self.whole.CAN.resumes:
                yield {"interactive": interactive, "resumes": True}

    # Description and environment

    def test_it_has_a_name_and_says_how_it_is_installed(self) -> None:
        """Manifests contain the name; users without the program see how to install it."""
        assert AGENT_NAME.match(self.whole.NAME)
        assert self.whole.INSTALL
        assert (self.whole.HOOK_FILES is not None) is self.whole.CAN.hooks
        assert hasattr(self.harness, "ask") is self.whole.CAN.questions

    def test_its_environment_is_its_own(self) -> None:
        """It gets its configuration, without credentials of others or marks of ours."""
        passed_on, never = self.whole.PASSED_PREFIXES, self.whole.BLOCKED_VARIABLES
        assert all(_VARIABLE.match(name) for name in (*passed_on, *never))
        others = [key for key in _KEYS if not key.startswith(self.keys or "-")]
        marks = (*_SESSION_MARKS, LAUNCH_VARIABLE, ONE_SHOT_VARIABLE, "REKINDLE_AGENT")
        unwanted = dict.fromkeys((*never, *marks, *others, "UNRELATED_KEY"), "x")
        ours = {**unwanted, **_ALWAYS_PASSED_ON}
        assert environment.select_variables(ours, passed_on, never) == _ALWAYS_PASSED_ON
        for how in self.starts():
            assert not set(self.whole.command(self.start(**how)).environment) & set(ours)

    # Commands of launches

    def test_a_command_is_built_again_each_time(self) -> None:
        """No option remains from an earlier launch."""
        first = self.whole.command(self.start())
        if self.whole.CAN.resumes:
            self.whole.command(self.start(resumes=True))
        assert self.whole.command(self.start()) == first
        assert all("\0" not in word for word in first.argv)

    def test_the_program_is_the_one_asked_for(self) -> None:
        """The given program is used, else the CLI's own; without either, nothing can be started."""
        for how in self.starts():
            made = self.whole.command(self.start(**how))
            assert made.argv[: len(self.program)] == self.program
        own = self.made(program=())
        assert own is None or own.argv[0] not in {"", *self.program}
        if self.whole.HOOK_FILES is not None:
            assert own is not None
            assert own.argv[0] == self.whole.HOOK_FILES.program

    def test_a_session_is_given_its_id(self) -> None:
        """The command has the session's id, and differs for a fresh and a resumed session.

        Otherwise a session that is gone would be silently replaced by a new one.
        """
        if not self.whole.CAN.resumes:
            return
        fresh = self.whole.command(self.start()).argv
        going_on = self.whole.command(self.start(resumes=True)).argv
        assert _names(fresh, _SESSION) is self.whole.CAN.names_sessions
        assert _names(going_on, _SESSION)
        assert fresh != going_on

    def test_only_a_session_s_id_is_passed_on(self) -> None:
        """A text that a CLI could take as an option, a name or the newest session is refused."""
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
        """Files have plain names, not paths, and the program gets their location."""
        read_only = Persona(permissions=Permissions(allowed_tools=[]))
        for more in ({}, {"persona": read_only}):
            made = self.made(**more) or Made(())
            for name in made.files:
                assert re.fullmatch(r"[a-z][a-z0-9.-]*", name), name
                assert f"/scratch/{name}" in _join_command(made, files=False)

    def test_a_prompt_in_a_terminal_is_a_prompt(self) -> None:
        """A prompt is not an option or a command of the CLI, and a terminal gets another command.

        Only a program without sessions may get no prompt, because how it takes one is unknown.
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

    # Personas

    def made(self, **more: Any) -> Made | None:
        """Return the command for a launch; None if it is refused, with a hint."""
        try:
            return self.whole.command(self.start(**more))
        except (UsageError, UnenforceableError) as error:
            refused = error
        assert refused.hint, f"{refused}: what can be done instead?"
        return None

    def test_permissions_are_kept_or_refused(self) -> None:
        """Each permission changes the command, also of a resumed session; none is ignored."""
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
        """A rule that cannot be enforced is refused by name, whether it allows or denies."""
        for rules in ({"allowed_tools": [_NOBODYS_RULE]}, {"deny": ["Bash", _NOBODYS_RULE]}):
            start = self.start(persona=Persona(permissions=Permissions(**rules)))
            try:
                made = self.whole.command(start)
            except UnenforceableError:
                continue
            raise AssertionError(f"{_NOBODYS_RULE!r} was taken for a permission: {made.argv}")

    def test_a_system_prompt_is_given_or_refused(self) -> None:
        """The command has the file of the system prompt, or its text."""
        file, words = "/personas/keeper.md", "You keep the light."
        made = self.made(persona=Persona(system_prompt_file=file), instructions=words)
        assert made is None or file in _join_command(made) or words in _join_command(made)

    def test_nothing_that_is_given_becomes_an_option(self) -> None:
        """A value that starts with a dash is one word with its option, or refused."""
        for persona in (
            Persona(system_prompt_file=_DASHED),
            Persona(permissions=Permissions(allowed_tools=[_DASHED])),
            Persona(permissions=Permissions(deny=[_DASHED])),
        ):
            for how in self.starts():
                made = self.made(persona=persona, instructions=_DASHED, **how)
                assert made is None or not _begins(made.argv, _DASHED), made

    # One-shot questions

    def question(self, **more: Any) -> OneShotQuestion:
        return OneShotQuestion(**{"scratch": "/scratch", "program": self.program, **more})

    def asked(self, **more: Any) -> Made | None:
        """Return the command for a question; None if it is refused, with a hint."""
        try:
            return self.whole.ask(self.question(**more))
        except (UsageError, ManifestError) as error:
            refused = error
        assert refused.hint, f"{refused}: what can be done instead?"
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
        assert HOOK_PROGRAM not in _join_command(made)
        own = self.asked(program=())
        assert own is None or own.argv[0] not in {"", *self.program}
        if self.whole.HOOK_FILES is not None:
            assert own is not None
            assert own.argv[0] == self.whole.HOOK_FILES.program

    def test_a_question_may_read_at_most(self) -> None:
        """An empty list of tools equals none; tools that only read may be granted, others never."""
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
        assert "You keep the light." in _join_command(made)
        for name in made.files:
            assert re.fullmatch(r"[a-z][a-z0-9.-]*", name), name
            assert f"/scratch/{name}" in _join_command(made, files=False)

    def test_nothing_that_is_asked_becomes_an_option(self) -> None:
        """Instructions, schema and persona never change the options, or are refused.

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
        """Empty output is not an answer; damaged output gives a valid answer or none."""
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
        """A CLI with a final report has not answered before it."""
        for one in self.kept():
            if one.asked and any(isinstance(seen, FinalReport) for seen in one.seen(self.whole)):
                for length in range(len(one.stream)):
                    assert self.whole.answer(one.stream[:length]) is None

    # Hooks

    def test_hooks_are_ours_and_never_stand_in_the_way(self) -> None:
        """Each hook is recognized as ours, has a timeout, and succeeds if our program is gone."""
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
        """The command of a launch contains all hooks."""
        if not self.whole.CAN.launch_hooks:
            return
        for how in self.starts():
            whole = _join_command(self.whole.command(self.start(**how)))
            for _, _, hook in list_wanted(self.whole.hooks(_HOOK, supervised=True)):
                found = parse_hook_command(hook["command"])
                assert found is not None
                assert f" {self.whole.NAME} {found.event}" in whole

    def test_where_it_is_stopped_it_has_a_hook(self) -> None:
        """A brake needs a hook of the launch at its event."""
        brake = self.whole.brake(interactive=False)
        if brake is None:
            return
        found = list_wanted(self.whole.hooks(_HOOK, supervised=True))
        words = [parse_hook_command(hook["command"]) for _, _, hook in found]
        assert brake.event in {word.event for word in words if word}
        assert brake.signs
        assert brake.counts

    def test_a_session_can_be_told(self) -> None:
        """A hook can add a text to the session, and the text arrives unchanged."""
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
        """An event has the time, session and launch of its record; a cut one, its session."""
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

    # Recordings

    def test_recordings_show_what_it_can(self) -> None:
        """Each feature of the harness is in at least one recording."""
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
        """A transcript has each prompt that a hook reported, so that the session can be resumed.

        If prompts have ids, a transcript without one is recognized.
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
        """An exit is described in one line, a limit in the CLI's own words with its end."""
        for recording in self.kept():
            found = recording.exit(self.whole)
            assert found.kind in _KINDS
            assert _is_line(found.words), recording.name
            assert found.words
            assert found.kind != "limit" or found.hint or found.resets_at

    def test_usage_says_how_it_is_known(self) -> None:
        """Without a known window the usage is `unknown`; a reported window fills it in."""
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
        """A stop is an interruption, whatever the program printed."""
        for recording in self.kept():
            found = self.whole.classify(recording.ended(self.whole, stopped=True))
            assert found.kind == "interrupted", recording.name

    def test_a_process_that_was_killed_has_crashed(self) -> None:
        """A process killed by SIGKILL has no final report."""
        assert self.whole.classify(ProcessResult(code=-9, session=_SESSION)).kind == "crash"

    def test_another_session_than_the_one_asked_for_is_a_failed_resume(self) -> None:
        """A CLI that silently opens a new session has not resumed the old one."""
        if self.whole.CAN.resumes:
            ended = ProcessResult(code=0, session=_SESSION, resumes=True, opened=_OTHER)
            assert self.whole.classify(ended).kind == "resume-failed"

    # Damaged input

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
        """Return the recorded lines of hooks, by event."""
        found: dict[str, list[Any]] = {}
        for recording in self.kept():
            for line in recording.hook_lines(self.whole):
                found.setdefault(line.event, []).append(line)
        return found

    def test_a_damaged_transcript_raises_nothing(self) -> None:
        """A damaged line gives valid passages and usage, or none."""
        lines = (line for one in self.kept() for line in one.transcript.split(b"\n"))
        for line in hostile_lines.damage_lines(lines):
            if found := self.whole.usage(line, {}):
                _require_known(found)
            for passage in self.whole.read_transcript(line):
                _require_sound(passage.what)
                assert all(map(_is_line, (passage.at, passage.message, passage.thread)))

    def test_a_transcript_tells_every_turn_that_counts(self) -> None:
        """Each turn of the budget, and each reported prompt, is in a passage."""
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
                # A process that shares its session with another may lose a prompt.
                if isinstance(fact, events.PromptSubmitted) and _contains_value(
                    fact.text, recording
                ):
                    assert fact.text.strip() in asked, recording.name

    def test_a_damaged_line_raises_nothing(self) -> None:
        """A line that is cut, mangled, nested or huge gives valid items, or none."""
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
        """Require that any exit can be described in one line."""
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
    """Return the words of a command without values; the name of a setting is part of its option."""
    return [re.sub(r"(?s)^(--config=[\w.]+|[^=]*)=.*", r"\1", word) for word in argv]


def _begins(argv: tuple[str, ...], text: str) -> bool:
    return any(word.startswith(text) for word in argv)


def _ends(argv: tuple[str, ...], text: str) -> bool:
    """Return whether a word, or the value of an option, is this text."""
    return any(word == text or word.endswith(f"={text}") for word in argv)


def _join_command(made: Made, *, files: bool = True) -> str:
    """Return all texts that the program gets with its command."""
    return "\n".join(
        (*made.argv, *made.environment.values(), *(made.files.values() if files else ()))
    )


def _list_texts(printed: str) -> list[str]:
    """Return the texts in a hook's output: the output itself, and the strings of its JSON."""
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
    """Require that each field has its type and can be encoded, without lone surrogates."""
    msgspec.convert(json.loads(msgspec.json.encode(one)), type(one))
