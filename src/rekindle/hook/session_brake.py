"""Stop a session between two turns if its context window is nearly full."""

import os
import time

from rekindle.hook.host_facts import is_name, read_file
from rekindle.hook.timeouts import BRAKING_SECONDS, HOLD_SECONDS, call_after, exit_now
from rekindle.hook.window_usage import is_main_thread, measure_window, read_first

RULE_BYTES = 64 * 1024
"""Maximum size of a rule. A person's message in it has a few thousand characters."""


def brake_session(event: str, launch: str, payload: bytes) -> None:
    """Stop a session between two turns if its context window is nearly full.

    The supervisor's rule defines which session to stop, where and how. The hook measures the
    window, because the CLI does nothing else while it waits for the hook. Turns of a sub-agent do
    not count, because the main thread is still waiting for it. The agent cannot write to the rule's
    folder, because the CLI obeys the answer in the rule.
    """
    rules = os.environ.get("REKINDLE_RULES", "")
    if not rules or not is_name(launch):
        return
    marks = os.environ.get("REKINDLE_MARKS") or rules
    rule = read_rule(f"{rules}/brake-{launch}", event)
    if rule:
        call_after(BRAKING_SECONDS, exit_now)
    fullness = measure_window(rule, payload) if rule else None
    if fullness is None:
        tell_agent(read_rule(f"{rules}/notice-{launch}", event), f"{marks}/told-{launch}", payload)
        return
    mark = f"{marks}/braked-{launch}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(mark, flags, 0o600)
    os.write(fd, b"%d %d\n" % fullness + payload)
    os.close(fd)
    if answer := read_first(rule, b"answer"):
        os.write(1, answer)
    else:
        hold_call(mark, f"{marks}/taken-{launch}")


def read_rule(path: str, event: str) -> dict[bytes, list[bytes]]:
    """Return the supervisor's rule in a file, or an empty one if there is none for the event."""
    rule: dict[bytes, list[bytes]] = {}
    try:
        for line in read_file(path, RULE_BYTES).split(b"\n"):
            word, _, value = line.partition(b" ")
            rule.setdefault(word, []).append(value)
    except OSError:
        return {}
    return rule if rule.get(b"event") == [event.encode()] else {}


def tell_agent(rule: dict[bytes, list[bytes]], told: str, payload: bytes) -> None:
    """Give the agent the supervisor's message, unless it already has it. Sub-agents do not get it.

    Each message has its own mark, a file whose name begins with `told`. Only the hook that creates
    the mark prints the message, so a session never gets it twice.
    """
    if not rule or not is_main_thread(rule, payload):
        return
    call_after(BRAKING_SECONDS, exit_now)  # a timeout after the mark would lose the message
    mark = f"{told}-{read_first(rule, b'mark').decode()}"
    try:
        os.close(os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except OSError:
        return
    os.write(1, read_first(rule, b"answer"))


def hold_call(mark: str, taken_mark: str) -> None:
    """Hold a call until the supervisor has ended the session.

    After a timeout, the hook removes the mark, unless the supervisor has just taken it. Otherwise,
    a late supervisor could end the session while the call is running.
    """

    def give_up(*_: object) -> None:
        try:
            os.unlink(mark)  # noqa: PTH108 - pathlib slows the start
        except OSError:
            call_after(HOLD_SECONDS, exit_now)  # the supervisor is about to end the session
        else:
            os._exit(0)

    call_after(HOLD_SECONDS, give_up)
    while os.access(mark, os.F_OK) or os.access(taken_mark, os.F_OK):
        time.sleep(0.02)
