"""Hold a tool call until a person has decided about it. Every failure refuses the call.

    python -I -S gate-HASH.pyc HARNESS RULES_FILE || exit 2

If the CLI's settings are shared by all sessions, the command names the event instead of the file,
and the launch names the file in an environment variable.

The gate is a program of its own, because its failures must refuse a call, while the hook's must
not. It writes a request for the supervisor, which asks a person and writes the decision. In a
sandbox, the agent can write a request, but no decision. A decision names the request and the hash
of the call and its folder, so it permits exactly one call, once.
"""

import os
import sys
import time

from rekindle.hook.ask_rules import find_other_spelling, is_asked
from rekindle.hook.host_facts import is_name, read_file

RULES_BYTES = 1024 * 1024
CALL_BYTES = 4 * 1024 * 1024
"""Maximum size of a payload. A longer call is refused."""
POLL_SECONDS = 0.02
BEAT_SECONDS = 1.0
"""Interval at which the gate shows the supervisor that it is still waiting."""
REFUSING = 2
"""Exit code that refuses a call in every CLI."""
ALLOW_OUTPUT = {
    "claude-code": '{"hookSpecificOutput":{"hookEventName":"PermissionRequest",'
    '"decision":{"behavior":"allow"}}}',
    "gemini": '{"decision":"allow"}',
}
"""Output that permits a call. Other CLIs permit it if there is no output."""
WRITING = ("Write", "Edit", "write_file", "replace")
"""Tools that can write only a file, such as the draft."""
DESCRIBED_TOOLS = ("Bash", "run_shell_command")
"""Tools whose `description` has no effect. It often differs when a model repeats a call."""
SPELLING = (
    "A person must approve this command. Make a call that contains only this command, and write it "
    "so that it starts with `{}`. For another folder, use `cd` in a call before it."
)
CONTINUE = "Continue with work that does not need it, and report what is left."


def main(arguments: list[str]) -> None:
    harness = arguments[1]
    named = arguments[2]
    path = named if named.startswith("/") else os.environ.get("GEMINI_CLI_REKINDLE_GATE", "")
    if not path:
        leave()  # the session of a person, or of a persona without `ask` rules
    import json  # noqa: PLC0415 - not needed for a person's session

    rules = json.loads(read_file(path, RULES_BYTES))
    payload = json.loads(read_all(0))
    tool, given = payload["tool_name"], payload["tool_input"]
    if not isinstance(tool, str) or not isinstance(given, dict):
        raise TypeError
    if harness == "claude-code:PreToolUse":
        text = find_other_spelling(rules["ask"], tool, str(given.get("command", "")))
        if not text:
            leave()  # the CLI's own rules ask about the call, if a person must approve it
        os.write(2, SPELLING.format(text).encode())
        os._exit(REFUSING)
    if not is_asked(rules["ask"], tool, given):
        leave()  # the CLI's other rules decide
    if rules["draft"] and tool in WRITING and given.get("file_path") == rules["draft"]:
        permit(harness)
    folder = payload["cwd"]
    if not isinstance(folder, str):
        raise TypeError
    note = {}
    if tool in DESCRIBED_TOOLS and "description" in given:
        note["description"] = given.pop("description")
    call = json.dumps({"arguments": given, "cwd": folder, "tool": tool}, sort_keys=True).encode()
    shown = json.dumps(note).encode()
    decision, words = hold_call(call, shown, path.rpartition("/")[0], rules["seconds"])
    if decision == "allow":
        permit(harness)
    refuse(harness, words)


def read_all(fd: int) -> bytes:
    data = b""
    while piece := os.read(fd, 1024 * 1024):
        data += piece
        if len(data) > CALL_BYTES:
            raise ValueError
    return data


def hold_call(call: bytes, shown: bytes, folder: str, seconds: float) -> tuple[str, str]:
    """Return the decision about a call, and its reason. Without an answer, the call is refused.

    The person also sees `shown`, but an approval is not bound to it.
    """
    import hashlib  # noqa: PLC0415 - not needed for most calls

    began, deadline = time.time(), time.monotonic() + seconds
    launch, code = os.environ["REKINDLE_LAUNCH"], os.urandom(16).hex()
    if not is_name(launch):
        raise ValueError
    digest = hashlib.sha256(call).hexdigest()
    marks = os.environ.get("REKINDLE_MARKS") or folder
    request, answer = f"{marks}/ask-{launch}-{code}", f"{folder}/answer-{launch}-{code}"
    write_request(request, b"%d\n%b\n%b" % (int(began), call, shown))
    beat = time.monotonic()
    try:
        # Compare both clocks, because a suspended host stops only one of them.
        while time.monotonic() < deadline and abs(time.time() - began) < seconds:
            decision, words = read_answer(answer, digest)
            if decision:
                return decision, words
            if time.monotonic() - beat >= BEAT_SECONDS:
                beat = time.monotonic()
                os.utime(request)
            time.sleep(POLL_SECONDS)
    finally:
        os.unlink(request)  # noqa: PTH108 - pathlib slows the start
    return "", "A person was asked for permission and has not answered yet."


def write_request(path: str, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    # The supervisor does not read a name that starts with a dot.
    folder, _, name = path.rpartition("/")
    fd = os.open(f"{folder}/.{name}", flags, 0o600)
    try:
        while data:
            data = data[os.write(fd, data) :]
    finally:
        os.close(fd)
    os.rename(f"{folder}/.{name}", path)  # noqa: PTH104 - pathlib slows the start


def read_answer(path: str, digest: str) -> tuple[str, str]:
    """Return the decision about this call and its reason, or two empty texts if there is none."""
    try:
        first, _, words = read_file(path, RULES_BYTES).decode().partition("\n")
    except FileNotFoundError:
        return "", ""
    decision, _, named = first.partition(" ")
    if decision != "deny" and named != digest:
        return "deny", "The approval was for another call."
    return decision, words


def permit(harness: str) -> None:
    if output := ALLOW_OUTPUT.get(harness):
        os.write(1, output.encode())
    leave()


def leave() -> None:
    os._exit(0)


def refuse(harness: str, words: str) -> None:
    """Refuse the call and tell the model why. Claude Code takes the reason only as JSON."""
    words = f"{words} {CONTINUE}"
    if harness == "claude-code":
        import json  # noqa: PLC0415 - as above

        decision = {"behavior": "deny", "message": words}
        output = {
            "hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}
        }
        os.write(1, json.dumps(output).encode())
        leave()
    os.write(2, words.encode())
    os._exit(REFUSING)


if __name__ == "__main__":
    try:
        main(sys.argv)
    finally:
        os._exit(REFUSING)
