"""Read an agent CLI's payload, and find values in JSON without parsing it."""

import os

from rekindle.hook.special_events import BRAKE_EVENTS

HEAD_BYTES = 192 * 1024
TAIL_BYTES = 64 * 1024
"""Number of bytes to keep from the end of a large payload. Both ends can contain ids."""
TOOL_HEAD_BYTES = 6 * 1024
TOOL_TAIL_BYTES = 2 * 1024
"""Number of bytes to keep from the end of a tool call, whose input and output are not needed."""
READ_BYTES = 32 * 1024 * 1024
"""Maximum number of bytes of a payload to read. The rest is ignored."""


def find_payload_limits(event: str) -> tuple[int, int]:
    """Return how many bytes of a payload's start and end to keep."""
    is_tool = event.startswith("PostTool") and event not in BRAKE_EVENTS
    return (TOOL_HEAD_BYTES, TOOL_TAIL_BYTES) if is_tool else (HEAD_BYTES, TAIL_BYTES)


def read_payload(fd: int, most: int = HEAD_BYTES, last: int = TAIL_BYTES) -> tuple[bytes, int]:
    """Return the CLI's payload, without the middle if it is too long, and its full size."""
    head = b""
    tail = b""
    size = 0
    while size < READ_BYTES:
        piece = os.read(fd, 1024 * 1024)
        if not piece:
            break
        size += len(piece)
        room = most - len(head)
        head += piece[:room]
        tail = (tail + piece[room:])[-last:]
    return head + tail, size


def find_number(line: bytes, key: bytes, place: int) -> int:
    """Return the first number after a JSON key, starting at an offset, or 0 if there is none."""
    sign = b'"' + key + b'":'
    position = line.find(sign, place)
    if position < 0:
        return 0
    digits = line[position + len(sign) : position + len(sign) + 20].lstrip()
    length = 0
    while digits[length : length + 1].isdigit():
        length += 1
    return int(digits[:length] or b"0")


def find_text(text: bytes, key: bytes) -> bytes:
    """Return the text after a JSON key, or "" if it is missing or contains escapes."""
    sign = b'"' + key + b'"'
    position = text.find(sign)
    value = text[position + len(sign) :].lstrip(b": ") if position >= 0 else b""
    content = value[1:].partition(b'"')[0] if value.startswith(b'"') else b""
    return b"" if b"\\" in content else content
