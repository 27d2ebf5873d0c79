"""Find calls that Codex refused. They are in its rollout, but not in its stream."""

import re
from collections.abc import Iterable, Iterator

from rekindle.documents.launches.launch_types import (
    RefusedCall,
    ToolCallStarted,
)
from rekindle.harnesses.codex.codex_rollout import (
    CALL_ITEMS,
    RESULT_ITEMS,
    read_call,
)
from rekindle.harnesses.untrusted_json import (
    parse_object,
    to_mapping,
    to_text,
    to_word,
)

_REFUSED = re.compile(
    r"approval policy is Never; reject|rejected by user approval settings"
    r"|Process exited with code [1-9](?s:.*)(?P<unwritable>Read-only file system)"
)
"""Output of a call that was refused by the sandbox or the approval policy."""


def refused_calls(transcript: Iterable[bytes]) -> Iterator[RefusedCall]:
    """Yield the calls in a rollout that were not permitted."""
    calls: dict[str, ToolCallStarted] = {}
    for line in transcript:
        if b"_call" not in line:
            continue
        record = parse_object(line)
        payload = to_mapping(record.get("payload"))
        kind, name = to_text(payload.get("type")), to_word(payload.get("call_id"))
        if record.get("type") != "response_item" or not name:
            continue
        if kind in CALL_ITEMS:
            calls[name] = read_call(kind, payload)
        elif kind in RESULT_ITEMS and name in calls:
            refused = _REFUSED.search(to_text(payload.get("output")))
            if refused is None:
                continue
            call = calls[name]
            is_write = call.tool == "apply_patch" or refused["unwritable"]
            permission = "Write" if is_write else "Bash"
            yield RefusedCall(call.tool, call.about, call.arguments, name, permission)
