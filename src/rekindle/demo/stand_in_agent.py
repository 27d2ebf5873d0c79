"""A script that replaces Claude Code in the demo, with the same options, output and hooks.

The script needs no model. It writes one chapter after another, each with a short tool call. It
saves its session in a file, so the session can be resumed. The demo runs the file by its path, so
the script imports nothing from Rekindle. The tutorial uses it as the program `rekindle-demo-agent`,
with these options:

    --chapters=N   write at most N chapters in a session, and then a relay for the next one
    --seconds=S    take S seconds for each chapter
    --ask-before=N ask a person how the story ends before chapter N is written
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
"""Seconds that a call takes if the demo will kill it. Longer than the delay after which `run`
prints a call.
"""
STATE_FOLDER = ".rekindle/demo"
"""Folder for the script's own files. Files below .rekindle do not count as work."""
SLOW_PREFIX = "slow-"
"""Prefix of the marker file that makes the first call for a chapter slow."""
WRITER_PROGRAM = (
    "import pathlib, sys, time; pathlib.Path(sys.argv[1]).touch(); time.sleep(float(sys.argv[2]));"
    " pathlib.Path(sys.argv[3]).write_text('# ' + sys.argv[3] + '\\n')"
)


def main() -> int:
    options = dict(word[2:].partition("=")[::2] for word in sys.argv[1:] if word.startswith("--"))
    is_resume = "resume" in options
    session = options.get("resume") or options["session-id"]
    state = Path(STATE_FOLDER)
    state.mkdir(parents=True, exist_ok=True)
    session_file = state / f"session-{session}"
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
    if "A person has answered: " in prompt:
        (state / "answered").touch()
    result = write_chapters(options, session, tell)
    print_record(
        type="result",
        subtype="success",
        is_error=False,
        session_id=session,
        result=result,
        total_cost_usd=0.0,
    )
    tell("SessionEnd", {"reason": "other"})
    return 0


def write_chapters(options: dict[str, str], session: str, tell: HookCaller) -> str:
    """Write as many of the missing chapters as the options allow, and return the last message."""
    missing = [n for n in range(1, CHAPTERS + 1) if not Path(f"chapter-{n}.md").exists()]
    last = CHAPTERS
    if "ask-before" in options and not Path(STATE_FOLDER, "answered").exists():
        last = int(options["ask-before"]) - 1
    now = [n for n in missing if n <= last][: int(options.get("chapters", CHAPTERS))]
    for number in now:
        seconds = float(options.get("seconds", SECONDS_A_CALL))
        run_tool(f"chapter-{number}.md", session, tell, seconds)
        missing.remove(number)
    if "chapters" not in options:
        return f"All {CHAPTERS} chapters are written."
    if missing and missing[0] > last:
        write_relay("Waiting for the operator: should the story end well?")
        return "I need to know how the story ends."
    write_relay(f"Write chapter-{missing[0]}.md" if missing else "DONE")
    return f"{CHAPTERS - len(missing)} of {CHAPTERS} chapters are written."


def write_relay(next_action: str) -> None:
    """Write the next cycle's relay to the path where Rekindle looks for the agent's draft."""
    folder = Path(os.environ["REKINDLE_FOLDER"])
    draft = folder.parents[1] / "drafts" / folder.name / "relay.md"
    draft.parent.mkdir(parents=True, exist_ok=True)
    draft.write_text(
        f"## Current Phase\nWriting\n\n## Next Action\n{next_action}\n", encoding="utf-8"
    )


def run_tool(name: str, session: str, tell: HookCaller, usual_seconds: float) -> None:
    """Run one tool call in its own process session, as Claude Code does."""
    identity = f"toolu_{os.getpid()}_{name}"
    tool = {"type": "tool_use", "id": identity, "name": "Write", "input": {"file_path": name}}
    usage = {"input_tokens": 1000}
    message = {"role": "assistant", "model": "none", "content": [tool], "usage": usage}
    print_record(type="assistant", message=message, parent_tool_use_id=None, session_id=session)
    begun = f"{STATE_FOLDER}/begun-{os.getpid()}-{name}"
    slow = Path(STATE_FOLDER, f"{SLOW_PREFIX}{name}")
    seconds = SECONDS_A_SLOW_CALL if slow.exists() else usual_seconds
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

    def call_hooks(event: str, fields: dict[str, str]) -> None:
        name, _, source = event.partition(":")
        payload = {"session_id": session, "cwd": str(Path.cwd()), "hook_event_name": name, **fields}
        for entry in hooks.get(name, []):
            if entry.get("matcher", source) not in {"", source}:
                continue
            for hook in entry["hooks"]:
                environment = {**os.environ, "CLAUDE_PID": str(os.getpid())}
                subprocess.run(  # noqa: S603 - the real CLI runs hooks in a shell too
                    ["/bin/sh", "-c", hook["command"]],
                    input=json.dumps(payload).encode(),
                    env=environment,
                    check=False,
                )

    return call_hooks


def print_record(**fields: object) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def run() -> None:
    """Run the agent as a separate program. Like Claude Code, it exits on SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
    sys.exit(main())


if __name__ == "__main__":
    run()
