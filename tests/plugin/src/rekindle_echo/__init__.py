"""A harness for `echo-agent`, which reads a prompt and says each of its lines again.

It keeps a session in a file of its own (`--session=ID` begins one, `--resume=ID` goes on with it),
and has no hooks: Rekindle follows what it prints. It has no tools either, so that a persona which
allows none is kept already; any other is refused. In a terminal it speaks to a person, not in JSON,
and so it does where it is asked one question (`--ask`), of which it keeps nothing.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rekindle.documents.event import AnyEvent
from rekindle.documents.hookline import HookLine
from rekindle.documents.hooksettings import Installation, Muted
from rekindle.documents.launch import (
    Brake,
    Capabilities,
    Command,
    Ended,
    Exit,
    Finished,
    Opened,
    Said,
    Seen,
    Start,
    Usage,
    Used,
)
from rekindle.documents.question import ASKED, Answer, Question
from rekindle.documents.transcript import Asides, Passage
from rekindle.errors import UnenforceableError, UsageError

NAME = "echo"
INSTALL = "install it: it comes with this package"
CAN = Capabilities(hooks=False, launch_hooks=False)
HOOK_FILES = None
PASSED_ON = ("ECHO_",)
NEVER_PASSED_ON = ()
_SESSION = re.compile(r"[0-9a-f-]{36}\Z")


def command(start: Start) -> Command:
    if not _SESSION.match(start.session):
        raise UsageError(f"{start.session!r} is no session of echo", hint="leave it to Rekindle")
    option = "resume" if start.resumes else "session"
    argv = [*(start.program or ("echo-agent",)), f"--{option}={start.session}"]
    if permissions := start.persona.permissions:
        for rule in (*(permissions.allowed_tools or ()), *(permissions.deny or ())):
            raise UnenforceableError("echo-agent", rule, hint="it has no tools: name none")
        argv.append("--no-tools")
    if start.persona.system_prompt_file and not start.resumes:
        argv.append(f"--system={start.persona.system_prompt_file}")
    if not start.interactive:
        argv.append("--json")
    elif start.prompt:
        # Its own word in front: what begins with a dash or a slash is no option and no command.
        argv.append(f"--prompt=Task: {start.prompt}")
    return Command(tuple(argv))


def ask(question: Question) -> Command:
    permissions = question.persona.permissions
    for rule in (permissions.allowed_tools or ()) if permissions else ():
        raise UnenforceableError("echo-agent", rule, hint="it has no tools: name none")
    argv, files = [*(question.program or ("echo-agent",)), "--ask"], {}
    if question.instructions:
        files["system.md"] = question.instructions
        argv.append(f"--system={question.scratch}/system.md")
    return Command(tuple(argv), {ASKED: "1"}, files)


def answer(output: Iterable[bytes]) -> Answer | None:
    lines = [line.removesuffix(b"\n") for line in output]
    said = b"\n".join(lines).decode("utf-8", "replace").strip()
    return Answer(said) if said else None


def hooks(program: Sequence[str], *, supervised: bool, folder: str = "") -> dict[str, Any]:
    return {}


def muted(found: Installation) -> Muted | None:
    return None


def told(event: str, text: str) -> str:
    return text


def read_hook(line: HookLine) -> AnyEvent | None:
    return None


def read_stream(line: bytes) -> tuple[Seen, ...]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return ()
    match found:
        case {"opened": str(session)} if _SESSION.match(session):
            return (Opened(session),)
        case {"said": str(text)}:
            # Half of a character, which JSON lets through, could not be written again.
            return (Said(text.encode("utf-8", "replace").decode()),)
        case {"done": str(session)} if _SESSION.match(session):
            return (Finished(session=session, ok=True, reason="done"),)
        case _:
            return ()


def usage(tail: bytes, windows: Mapping[str, int]) -> Usage | None:
    return None


def turn(line: bytes) -> Used | None:
    return None


def read_transcript(line: bytes) -> tuple[Passage, ...]:
    return ()


def asides(transcript: str, session: str) -> Asides | None:
    return None


def brake(*, interactive: bool) -> Brake | None:
    """It cannot be stopped between two turns."""
    return None


def measure(program: Sequence[str]) -> Command | None:
    """Nothing tells how large its window is."""
    return None


def measured(output: Iterable[bytes]) -> dict[str, int]:
    return {}


def holds(transcript: Iterable[bytes], prompt: str) -> bool:
    return True


def classify(ended: Ended) -> Exit:
    if ended.stopped:
        return Exit("interrupted", "stopped, as the operator said")
    if ended.resumes and ended.opened not in {"", ended.session}:
        return Exit("resume-failed", "another session was opened")
    if ended.finished is not None:
        return Exit("clean", "finished")
    if ended.resumes and "no such session" in ended.errors:
        return Exit("resume-failed", "there is no such session any more")
    return Exit("crash", f"ended with {ended.code}")
