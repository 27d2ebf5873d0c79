"""A harness for `echo-agent`, which reads a prompt and repeats each line.

`--session=ID` starts a session and `--resume=ID` resumes it. The program has no tools, so this
harness refuses a persona that allows or denies one. In a terminal, the program prints text instead
of JSON.
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
            raise UnenforceableError("echo-agent", rule, hint="remove it: echo-agent has no tools")
        argv.append("--no-tools")
    if start.persona.system_prompt_file and not start.resumes:
        argv.append(f"--system={start.persona.system_prompt_file}")
    if not start.interactive:
        argv.append("--json")
    elif start.prompt:
        # The prefix keeps a prompt that begins with a dash or a slash from being an option.
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
            # JSON allows unpaired surrogates, which cannot be encoded as UTF-8.
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
