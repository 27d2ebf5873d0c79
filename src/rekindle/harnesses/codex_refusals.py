"""The calls that Codex refused: its stream does not report them, only its rollout does."""

import re
from collections.abc import Iterable, Iterator

from rekindle.documents.launch import Called, RefusedCall
from rekindle.harnesses.codex_transcript import CALLS, GIVEN, called
from rekindle.harnesses.foreign import mapping, parsed, text, word

_REFUSED = re.compile(
    r"approval policy is Never; reject|rejected by user approval settings"
    r"|Process exited with code [1-9](?s:.*)(?P<unwritable>Read-only file system)"
)
"""How the output of a call shows that the sandbox, or the approval policy, refused it."""


def refused_calls(transcript: Iterable[bytes]) -> Iterator[RefusedCall]:
    """Yield the calls of a rollout that nothing permits."""
    calls: dict[str, Called] = {}
    for line in transcript:
        if b"_call" not in line:
            continue
        record = parsed(line)
        payload = mapping(record.get("payload"))
        kind, name = text(payload.get("type")), word(payload.get("call_id"))
        if record.get("type") != "response_item" or not name:
            continue
        if kind in CALLS:
            calls[name] = called(kind, payload)
        elif kind in GIVEN and name in calls:
            refused = _REFUSED.search(text(payload.get("output")))
            if refused is None:
                continue
            call = calls[name]
            is_write = call.tool == "apply_patch" or refused["unwritable"]
            permission = "Write" if is_write else "Bash"
            yield RefusedCall(call.tool, call.about, call.arguments, name, permission)
