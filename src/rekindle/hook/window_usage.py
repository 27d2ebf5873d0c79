"""Measure a session's context-window usage from its transcript."""

import os
import time

from rekindle.hook.payload import TOOL_TAIL_BYTES, find_number, find_text
from rekindle.hook.timeouts import WRITTEN_SECONDS

STEP_BYTES = 128 * 1024
TRANSCRIPT_BYTES = 8 * 1024 * 1024
"""Number of bytes at a transcript's end to search for the window's usage."""


def measure_window(rule: dict[bytes, list[bytes]], payload: bytes) -> tuple[int, int] | None:
    """Return the used and total window size, or None if the window is not full enough to stop."""
    if not is_main_thread(rule, payload):
        return None
    path, limit = find_text(payload, b"transcript_path"), read_first(rule, b"limit")
    if call := read_first(rule, b"call"):
        wait_for_calls(path, payload, call)
    if is_at_work(rule, path):
        return None
    settled, window = read_first(rule, b"settled"), read_first(rule, b"window")
    if limit == b"0" and not settled:
        return 0, 0
    start = read_first(rule, b"after")
    line = find_usage_line(path, rule.get(b"sign", []), start, read_first(rule, b"void"))
    used, size = read_fullness(line, start, rule.get(b"count", []), window, settled)
    limit = limit or find_limit(rule, line)
    most = int(limit.rstrip(b"%") or b"0")
    is_full = used * 100 >= most * size > 0 if window else used >= most
    # `used` is 0 if the usage is unknown, or while a sub-agent has a call in progress.
    return (used, size) if used and limit and is_full else None


def is_main_thread(rule: dict[bytes, list[bytes]], payload: bytes) -> bool:
    """Return whether a payload comes from the session itself, not from a sub-agent."""
    own, below = read_first(rule, b"own"), read_first(rule, b"below")
    if own and find_text(payload, b"transcript_path") != own:
        return False
    return not (below and b'"' + below + b'":' in payload[:TOOL_TAIL_BYTES])


def read_first(rule: dict[bytes, list[bytes]], word: bytes) -> bytes:
    return rule.get(word, [b""])[0]


def find_limit(rule: dict[bytes, list[bytes]], line: bytes) -> bytes:
    """Return the limit for the model in a line, or "" if its window size is unknown."""
    for key in rule.get(b"model", []):
        if model := find_text(line, key):
            for entry in rule.get(b"limits", []):
                tokens, _, name = entry.partition(b" ")
                if name == model:
                    return tokens
            return b""
    return b""


def is_at_work(rule: dict[bytes, list[bytes]], path: bytes) -> bool:
    """Return whether a stop would interrupt a tool call of the session or of a sub-agent."""
    if calls := rule.get(b"calls"):
        begins, over = calls
        tail = read_tail(path)
        position = tail.find(begins)
        while position >= 0:
            name = tail[position + len(begins) :].partition(b'"')[0]
            if over + name + b'"' not in tail:
                return True
            position = tail.find(begins, position + 1)
    asides = read_first(rule, b"asides")
    folder = path.rpartition(b".")[0] + b"/" + asides
    if not asides or not os.path.isdir(folder):  # noqa: PTH112 - pathlib slows the start
        return False
    for parent, _, names in os.walk(folder):
        for name in names:
            last = read_tail(parent + b"/" + name).rstrip().rpartition(b"\n")[2]
            # A finished sub-agent's last line is its final message, without a tool call.
            is_over = b'"type":"assistant"' in last and b'"type":"tool_use"' not in last
            if name.endswith(b".jsonl") and not is_over:
                return True
    return False


def read_tail(path: bytes) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        size = os.fstat(fd).st_size
        return os.pread(fd, STEP_BYTES, max(0, size - STEP_BYTES))
    finally:
        os.close(fd)


def find_usage_line(path: bytes, signs: list[bytes], start: bytes, void: bytes) -> bytes:
    """Return the last transcript line that reports usage, or "" if there is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        end_of_file = os.fstat(fd).st_size
        tail = b""
        while len(tail) < min(end_of_file, TRANSCRIPT_BYTES):
            more = min(end_of_file - len(tail), max(len(tail), STEP_BYTES))
            tail = os.pread(fd, more, end_of_file - len(tail) - more) + tail
            for line in reversed(tail.split(b"\n")[1 if len(tail) < end_of_file else 0 :]):
                if void and line.startswith(void):
                    return b""
                if start in line and all(sign in line for sign in signs):
                    return line
        return b""
    finally:
        os.close(fd)


def read_fullness(
    line: bytes, start: bytes, counts: list[bytes], window: bytes, settled: bytes
) -> tuple[int, int]:
    """Return the used and total window size in a line. A missing number is 0."""
    # The text after `settled` is a call's input, which could look like counts.
    position = line.rfind(start, 0, line.find(settled) if settled else len(line))
    if position < 0 or (settled and settled not in line):
        return 0, 0
    used = sum(find_number(line, key, position) for key in counts)
    return used, find_number(line, window, 0) if window else 0


def wait_for_calls(path: bytes, payload: bytes, key: bytes) -> None:
    """Wait for the transcript to contain the finished calls, which the CLI writes a bit later."""
    sign = b'"' + key + b'":"'
    position = payload.rfind(sign)
    call = payload[position + len(sign) :].partition(b'"')[0] if position >= 0 else b""
    deadline = time.monotonic() + WRITTEN_SECONDS
    while call and time.monotonic() < deadline:
        # Search only for the id, because the results after it can be megabytes long.
        if find_usage_line(path, [b'"' + call + b'"'], b'"', b""):
            return
        time.sleep(0.01)
