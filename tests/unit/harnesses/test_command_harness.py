"""Any program in our words."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.documents.launches.launch_types import (
    AssistantText,
    LaunchSpec,
    ProcessResult,
)
from rekindle.documents.manifest import Permissions, Persona
from rekindle.errors import UnenforceableError, UsageError
from rekindle.harnesses import command_harness
from rekindle.thresholds.texts import COMMAND_LINE_CHARACTERS

CLI_ONLY = {
    "hooks",
    "render_hook_output",
    "read_hook",
    "usage",
    "read_transcript",
    "brake",
    "PASSED_PREFIXES",
}
SESSION = "6f1c2a34-0000-4000-8000-00000000abcd"


def test_the_program_is_run_as_it_is_in_the_manifest():
    """Nothing is added to it, and it is given only its prompt."""
    made = command_harness.command(
        LaunchSpec(session=SESSION, program=("./agent", "--once"), hook=("hook",))
    )
    assert (made.argv, made.environment, made.files) == (("./agent", "--once"), {}, {})
    assert not CLI_ONLY & set(vars(command_harness))


def test_in_a_terminal():
    """The program starts as it is: how it would take a prompt is unknown."""
    start = LaunchSpec(session=SESSION, program=("./agent",), interactive=True, prompt="Ship it.")
    assert command_harness.command(start).argv == ("./agent",)


@pytest.mark.parametrize(
    "persona",
    [
        Persona(permissions=Permissions(allowed_tools=[])),
        Persona(system_prompt_file="persona.md"),
        Persona(model="small"),
        Persona(temperature=0),
    ],
)
def test_a_persona_that_could_not_be_enforced(persona):
    """It is refused: a rule that is trusted but not enforced must not pass silently."""
    with pytest.raises(UsageError, match="cannot enforce a persona's"):
        command_harness.command(LaunchSpec(session=SESSION, program=("./agent",), persona=persona))


def test_a_permission_that_could_not_be_enforced():
    """It is refused by its name."""
    persona = Persona(permissions=Permissions(deny=["Bash"]))
    with pytest.raises(UnenforceableError) as refused:
        command_harness.command(LaunchSpec(session=SESSION, program=("./agent",), persona=persona))
    assert refused.value.rule == "Bash"


def test_no_program():
    """There is nothing to start."""
    with pytest.raises(UsageError, match="no program"):
        command_harness.command(LaunchSpec(session=SESSION))


@given(st.binary())
def test_any_line_is_something_said(line):
    """On one line, without what a terminal would obey, and never too long."""
    for said in command_harness.read_stream(line):
        assert isinstance(said, AssistantText)
        assert 0 < len(said.text) <= COMMAND_LINE_CHARACTERS
        assert not re.search(r"[\x00-\x1f\x7f-\x9f]", said.text)
    assert command_harness.read_stream(b"") == command_harness.read_stream(b"  \t") == ()
    assert len(command_harness.read_stream(b"x" * 10_000_000)[0].text) <= COMMAND_LINE_CHARACTERS


@pytest.mark.parametrize(
    ("code", "errors", "kind", "told"),
    [
        (0, "429 too many requests", "clean", "finished"),
        (1, "", "crash", "failed with exit code 1"),
        (1, "bye\nerror: too many requests\n", "limit", "error: too many requests"),
        (1, "401: unauthorized, trying again\nSegfault", "crash", "Segfault"),
        (2, "the model is overloaded", "overload", "overloaded"),
        (1, "Error: 429 Too Many Requests\n    at a (b.js:1)\n\nNode.js v22\n", "limit", "429"),
        (1, "Rate limit exceeded.\nTry again\nin 5 minutes.\n", "limit", "Rate limit exceeded"),
        (1, "invalid api key\nRate limit exceeded.\nbye\n", "limit", "Rate limit exceeded"),
        (1, "error: unauthorized\n" + "on and on\n" * 20, "crash", "on and on"),
        (1, "assert x == 1\nE  expected 'unauthorized' but got 'ok'\n", "crash", "expected"),
        (2, "AssertionError: overloaded function returned 3\n", "crash", "AssertionError"),
        (1, "connect ECONNREFUSED", "network", "could not be reached"),
        (1, "connect ECONNREFUSED fe80::1:443", "network", "could not be reached"),
        (1, "connect ECONNREFUSED 127.0.0.1:5432", "crash", "exit code 1"),
        (1, "Error: connect ECONNREFUSED ::1:6379", "crash", "exit code 1"),
        (1, "psql: connection refused at localhost:5432", "crash", "exit code 1"),
        (1, "dial tcp [::1]:8080: ECONNRESET", "crash", "exit code 1"),
        (3, "Traceback\nValueError: x\n", "crash", "ValueError: x"),
        (126, "", "crash", "cannot be executed"),
        (127, "sh: agent: not found", "crash", "was not found: sh: agent: not found"),
        (-2, "", "interrupted", "SIGINT"),
        (143, "too many requests", "interrupted", "SIGTERM"),
        (-9, "", "crash", "SIGKILL"),
    ],
)
def test_its_exit_is_classified(code, errors, kind, told):
    """Its code decides first, then its last output."""
    found = command_harness.classify(ProcessResult(code=code, session=SESSION, errors=errors))
    assert found.kind == kind
    assert told in found.words
    assert bool(found.hint) is (kind == "limit")


@pytest.mark.parametrize(
    ("errors", "last", "kind"),
    [
        ("", ["Working", "Rate limit exceeded.", "Please wait 5 minutes."], "limit"),
        ("warning: no colours\n", ["error: invalid api key"], "auth"),
        # Its standard error says what went wrong: what it talked of before is talk.
        ("Traceback\nValueError: x\n", ["error: invalid api key"], "crash"),
        ("error: too many requests", ["error: invalid api key"], "limit"),
        ("", ["I made it say: 'unauthorized' where it was 'ok'"], "crash"),
        ("", [], "crash"),
    ],
)
def test_what_it_said_last(errors, last, kind):
    """Some print their errors where they print everything else."""
    said = tuple(map(AssistantText, last))
    ended = ProcessResult(code=1, session=SESSION, errors=errors, last=said)
    found = command_harness.classify(ended)
    assert found.kind == kind
    assert ("5 minutes" in found.hint) is (kind == "limit" and not errors)


def test_a_stop_by_the_operator():
    """Whatever it ends with then."""
    found = command_harness.classify(ProcessResult(code=1, session=SESSION, stopped=True))
    assert found.kind == "interrupted"
