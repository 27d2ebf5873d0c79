"""A script that replaces Claude Code in the demo, with the same options, output and hooks.

It needs no model: it writes one chapter after another, each with a short tool call. It saves its
session in a file, so that the session can be resumed. It is started by its path, and imports
nothing from Rekindle.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

HookCaller = Callable[[str, dict[str, str]], None]

CHAPTERS = 6
SECONDS_A_CALL = 0.7
SECONDS_A_SLOW_CALL = 8.0
"""Duration of a call to be killed, in seconds; longer than `run` delays printing the call."""
SLOW_PREFIX = ".slow-"
"""Prefix of the marker file that makes the first call for a chapter slow."""
WRITER_PROGRAM = (
    "import pathlib, sys, time; pathlib.Path(sys.argv[1]).touch(); time.sleep(float(sys.argv[2]));"
    " pathlib.Path(sys.argv[3]).write_text('# ' + sys.argv[3] + '\\n')"
)


def main() -> int:
    options = dict(word[2:].partition("=")[::2] for word in sys.argv[1:] if word.startswith("--"))
    is_resume = "resume" in options
    session = options.get("resume") or options["session-id"]
    session_file = Path(f".session-{session}")
    if is_resume and not session_file.exists():
        error = f"No conversation found with session ID: {session}"
        print_record(type="result", subtype="error_during_execution", is_error=True, errors=[error])
        return 1
    prompt = sys.stdin.read()
    session_file.touch()
    tell = make_hook_caller(Path(options["settings"]), session)
    source = "resume" if is_resume else "startup"
    tell(f"SessionStart:{source}", {"source": source})
    tell("UserPromptSubmit", {"prompt": prompt, "prompt_id": str(os.getpid())})
    print_record(
        type="system", subtype="init", session_id=session, model="none", claude_code_version="demo"
    )
    for number in range(1, CHAPTERS + 1):
        name = f"chapter-{number}.md"
        if not Path(name).exists():
            run_tool(name, session, tell)
    print_record(
        type="result",
        subtype="success",
        is_error=False,
        session_id=session,
        result=f"All {CHAPTERS} chapters are written.",
        total_cost_usd=0.0,
    )
    tell("SessionEnd", {"reason": "other"})
    return 0


def run_tool(name: str, session: str, tell: HookCaller) -> None:
    """Run one tool call in its own process session, as Claude Code does."""
    identity = f"toolu_{os.getpid()}_{name}"
    tool = {"type": "tool_use", "id": identity, "name": "Write", "input": {"file_path": name}}
    usage = {"input_tokens": 1000}
    message = {"role": "assistant", "model": "none", "content": [tool], "usage": usage}
    print_record(type="assistant", message=message, parent_tool_use_id=None, session_id=session)
    begun, slow = f".begun-{os.getpid()}-{name}", Path(f"{SLOW_PREFIX}{name}")
    seconds = SECONDS_A_SLOW_CALL if slow.exists() else SECONDS_A_CALL
    slow.unlink(missing_ok=True)
    subprocess.run(  # noqa: S603 - our own arguments
        [sys.executable, "-I", "-S", "-c", WRITER_PROGRAM, begun, str(seconds), name],
        start_new_session=True,
        check=False,
    )
    result = {"type": "tool_result", "tool_use_id": identity, "content": "written"}
    print_record(type="user", message={"role": "user", "content": [result]}, session_id=session)
    tell("PostToolUse", {"tool_name": "Write", "tool_use_id": identity})


def make_hook_caller(settings: Path, session: str) -> HookCaller:
    """Return a function that calls the hooks listed in a settings file."""
    hooks = json.loads(settings.read_text(encoding="utf-8"))["hooks"]

    def tell(event: str, fields: dict[str, str]) -> None:
        name, _, source = event.partition(":")
        payload = {"session_id": session, "cwd": str(Path.cwd()), "hook_event_name": name, **fields}
        for entry in hooks.get(name, []):
            if entry.get("matcher", source) not in {"", source}:
                continue
            for one in entry["hooks"]:
                environment = {**os.environ, "CLAUDE_PID": str(os.getpid())}
                subprocess.run(  # noqa: S603 - the real CLI runs hooks in a shell too
                    ["/bin/sh", "-c", one["command"]],
                    input=json.dumps(payload).encode(),
                    env=environment,
                    check=False,
                )

    return tell


def print_record(**fields: object) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
    sys.exit(main())
