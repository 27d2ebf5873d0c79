"""Contract tests for the commands that a harness builds."""

import re
from typing import Any

from rekindle.documents.launches.launch_types import (
    LAUNCH_VARIABLE,
)
from rekindle.documents.launches.launch_types import ProgramCommand as Made
from rekindle.documents.launches.one_shot import (
    ONE_SHOT_VARIABLE,
)
from rekindle.documents.manifest import Permissions, Persona
from rekindle.errors import (
    RekindleError,
    UnenforceableError,
)
from rekindle.formats.identifiers import AGENT_NAME
from rekindle.policy.setup import environment
from rekindle.testing.contract_subject import (
    DASHED,
    SESSION,
    UNENFORCEABLE_RULE,
    ContractSubject,
    join_command,
)

_NO_SESSIONS = ("--help", "-c", "latest", "../up", "", "a b", "x\0y")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{2,}\Z")
_ALWAYS_PASSED_ON = {"PATH": "/bin", "HOME": "/home/user"}
_NARROW = ("Bash(git log:*)", "Bash(git push:*)")
"""Rules for parts of a tool, which must lead to different commands or be refused."""
_TASK = "Ship the parser"
_MEANT_OTHERWISE = (f"--{_TASK}", f"/{_TASK}", f"!{_TASK}", f"\n /{_TASK}")
"""Prompts that a CLI in a terminal would treat as an option or a command."""
_SESSION_MARKS = (
    *("CLAUDE_CODE_SESSION_ID", "CLAUDE_PID", "CODEX_THREAD_ID", "CODEX_SESSION_ID"),
    *("CODEX_SANDBOX", "GEMINI_CLI", "GEMINI_SESSION_ID"),
)
"""Variables that a CLI sets in its sessions."""
_KEYS = (
    *("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "GEMINI_API_KEY"),
    *("GOOGLE_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "GH_TOKEN", "GITLAB_TOKEN"),
    *("NPM_TOKEN", "PYPI_TOKEN", "DOCKER_PASSWORD", "DATABASE_URL", "SLACK_TOKEN", "HF_TOKEN"),
)
"""Credential variables from typical environments. A harness lists those that it needs in `keys`."""


class LaunchContract(ContractSubject):
    """Tests for a harness's environment, commands and personas."""

    def test_it_has_a_name_and_says_how_it_is_installed(self) -> None:
        """The harness has a name for manifests, and tells users how to install its program."""
        assert AGENT_NAME.match(self.whole.NAME)
        assert self.whole.INSTALL
        assert (self.whole.HOOK_FILES is not None) is self.whole.CAN.hooks
        assert hasattr(self.harness, "ask") is self.whole.CAN.questions

    def test_its_environment_is_its_own(self) -> None:
        """The CLI gets its own configuration, but no credentials of other programs."""
        passed_on, never = self.whole.PASSED_PREFIXES, self.whole.BLOCKED_VARIABLES
        assert all(_VARIABLE.match(name) for name in (*passed_on, *never))
        others = [key for key in _KEYS if not key.startswith(self.keys or "-")]
        marks = (*_SESSION_MARKS, LAUNCH_VARIABLE, ONE_SHOT_VARIABLE, "REKINDLE_AGENT")
        unwanted = dict.fromkeys((*never, *marks, *others, "UNRELATED_KEY"), "x")
        ours = {**unwanted, **_ALWAYS_PASSED_ON}
        assert environment.select_variables(ours, passed_on, never) == _ALWAYS_PASSED_ON
        for how in self.starts():
            assert not set(self.whole.command(self.start(**how)).environment) & set(ours)

    def test_a_command_is_built_again_each_time(self) -> None:
        """No option is left over from an earlier launch."""
        first = self.whole.command(self.start())
        if self.whole.CAN.resumes:
            self.whole.command(self.start(resumes=True))
        assert self.whole.command(self.start()) == first
        assert all("\0" not in word for word in first.argv)

    def test_the_program_is_the_one_asked_for(self) -> None:
        """The launch uses the given program or the CLI's own. Without either, it is refused."""
        for how in self.starts():
            command = self.whole.command(self.start(**how))
            given = command.argv[-len(self.program) :] if self.whole.CAN.asks else command.argv
            assert given[: len(self.program)] == self.program
        own = self.made(program=())
        assert own is None or own.argv[0] not in {"", *self.program}
        if self.whole.HOOK_FILES is not None:
            assert own is not None
            assert own.argv[0] == self.whole.HOOK_FILES.program

    def test_a_session_is_given_its_id(self) -> None:
        """The command contains the session's id, and differs for fresh and resumed sessions.

        Otherwise, a new session could silently replace a missing one.
        """
        if not self.whole.CAN.resumes:
            return
        fresh = self.whole.command(self.start()).argv
        going_on = self.whole.command(self.start(resumes=True)).argv
        assert _names_session(fresh, SESSION) is self.whole.CAN.names_sessions
        assert _names_session(going_on, SESSION)
        assert fresh != going_on

    def test_only_a_session_s_id_is_passed_on(self) -> None:
        """A text that a CLI could treat as an option, a name or the newest session is refused."""
        if not self.whole.CAN.resumes:
            return
        for resumes in (True, False) if self.whole.CAN.names_sessions else (True,):
            for text in _NO_SESSIONS:
                try:
                    command = self.whole.command(self.start(session=text, resumes=resumes))
                except RekindleError:
                    continue
                raise AssertionError(f"{text!r} was accepted as a session: {command.argv}")

    def test_files_stay_in_the_scratch_folder(self) -> None:
        """Files have plain names, not paths, and the program gets their folder's path."""
        read_only = Persona(permissions=Permissions(allowed_tools=[]))
        for more in ({}, {"persona": read_only}):
            command = self.made(**more) or Made(())
            for name in command.files:
                assert re.fullmatch(r"[a-z][a-z0-9.-]*", name), name
                assert f"/scratch/{name}" in join_command(command, files=False)

    def test_a_prompt_in_a_terminal_is_a_prompt(self) -> None:
        """A prompt never becomes an option or a command, and a terminal gets a different command.

        Only a program without sessions may get no prompt, because Rekindle does not know how to
        pass one.
        """
        if not self.whole.CAN.resumes:
            return
        for resumes in (False, True):
            headless = self.whole.command(self.start(resumes=resumes))
            for prompt in (_TASK, *_MEANT_OTHERWISE):
                command = self.made(resumes=resumes, interactive=True, prompt=prompt)
                if command is None:
                    continue
                assert _TASK in join_command(command), command
                assert [word for word in command.argv if _TASK not in word] != list(headless.argv)
                if prompt != _TASK:
                    assert not _ends_argument(command.argv, prompt), command

    def test_permissions_are_kept_or_refused(self) -> None:
        """Each permission changes the command, even for a resumed session."""
        for how in self.starts():

            def make_command(*, _how: Any = how, **rules: list[str]) -> Made | None:
                return self.made(persona=Persona(permissions=Permissions(**rules)), **_how)

            alone = self.whole.command(self.start(**how))
            nothing, reads = (
                make_command(allowed_tools=[]),
                make_command(allowed_tools=["Read", "Grep"]),
            )
            shell, writes = (
                make_command(allowed_tools=["Bash"]),
                make_command(allowed_tools=["Write", "Edit"]),
            )
            no_shell, no_writes = make_command(deny=["Bash"]), make_command(deny=["Write", "Edit"])
            both = make_command(allowed_tools=["Bash"], deny=["Bash"])
            parts = [make_command(allowed_tools=[rule]) for rule in _NARROW]
            no_parts = [make_command(deny=[rule]) for rule in _NARROW]
            for group in (
                (alone, nothing, shell, writes),
                (alone, reads, shell, writes),
                (alone, no_shell, no_writes),
                (alone, shell, both),
                (alone, shell, *parts),
                (alone, no_shell, *no_parts),
            ):
                commands = [command for command in group if command is not None]
                assert all(commands.count(command) == 1 for command in commands), commands

    def test_a_permission_that_cannot_be_kept_is_refused(self) -> None:
        """If a rule cannot be enforced, the refusal names it, whether the rule allows or denies."""
        for rules in (
            {"allowed_tools": [UNENFORCEABLE_RULE]},
            {"deny": ["Bash", UNENFORCEABLE_RULE]},
        ):
            start = self.start(persona=Persona(permissions=Permissions(**rules)))
            try:
                command = self.whole.command(start)
            except UnenforceableError:
                continue
            raise AssertionError(
                f"{UNENFORCEABLE_RULE!r} was accepted as a permission: {command.argv}"
            )

    def test_a_system_prompt_is_given_or_refused(self) -> None:
        """The command contains the system prompt's file path or its text."""
        file, words = "/personas/keeper.md", "You keep the light."
        command = self.made(persona=Persona(system_prompt_file=file), instructions=words)
        assert command is None or file in join_command(command) or words in join_command(command)

    def test_nothing_that_is_given_becomes_an_option(self) -> None:
        """A value that starts with a dash is in the same argument as its option, or is refused."""
        for persona in (
            Persona(system_prompt_file=DASHED),
            Persona(permissions=Permissions(allowed_tools=[DASHED])),
            Persona(permissions=Permissions(deny=[DASHED])),
        ):
            for how in self.starts():
                command = self.made(persona=persona, instructions=DASHED, **how)
                assert command is None or not _starts_argument(command.argv, DASHED), command


def _names_session(argv: tuple[str, ...], session: str) -> bool:
    return any(word == session or word.endswith(f"={session}") for word in argv)


def _starts_argument(argv: tuple[str, ...], text: str) -> bool:
    return any(word.startswith(text) for word in argv)


def _ends_argument(argv: tuple[str, ...], text: str) -> bool:
    """Return whether an argument, or an option's value, is the given text."""
    return any(word == text or word.endswith(f"={text}") for word in argv)
