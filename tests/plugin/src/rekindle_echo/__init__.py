"""A harness for `echo-agent`, which reads a prompt and repeats each of its lines.

It keeps a session in a file of its own: `--session=ID` begins one, `--resume=ID` resumes it. It has
no tools, so a persona that allows none is kept already, and any other is refused. In a terminal it
prints text for a person, not JSON.
"""

import json
import re

from rekindle.documents.launches.launch_types import (
    AssistantText,
    Capabilities,
    FinalReport,
    LaunchExit,
    LaunchSpec,
    OutputItem,
    ProcessResult,
    ProgramCommand,
    SessionOpened,
)
from rekindle.errors import UnenforceableError, UsageError

NAME = "echo"
INSTALL = "install it: it comes with this package"
CAN = Capabilities(hooks=False, launch_hooks=False, questions=False)
_SESSION = re.compile(r"[0-9a-f-]{36}\Z")


def command(start: LaunchSpec) -> ProgramCommand:
    if not _SESSION.match(start.session):
        raise UsageError(f"{start.session!r} is not a session of echo", hint="leave it to Rekindle")
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
        # A word in front, because a prompt may begin with a dash or a slash.
        argv.append(f"--prompt=Task: {start.prompt}")
    return ProgramCommand(tuple(argv))


def read_stream(line: bytes) -> tuple[OutputItem, ...]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return ()
    match found:
        case {"opened": str(session)} if _SESSION.match(session):
            return (SessionOpened(session),)
        case {"said": str(text)}:
            # JSON lets half of a character through, which could not be written again.
            return (AssistantText(text.encode("utf-8", "replace").decode()),)
        case {"done": str(session)} if _SESSION.match(session):
            return (FinalReport(session=session, ok=True, reason="done"),)
        case _:
            return ()


def classify(ended: ProcessResult) -> LaunchExit:
    if ended.stopped:
        return LaunchExit("interrupted", "stopped by the operator")
    if ended.resumes and ended.opened not in {"", ended.session}:
        return LaunchExit("resume-failed", "another session was opened")
    if ended.finished is not None:
        return LaunchExit("clean", "finished")
    if ended.resumes and "no such session" in ended.errors:
        return LaunchExit("resume-failed", "the session is gone")
    return LaunchExit("crash", f"exited with {ended.code}")
