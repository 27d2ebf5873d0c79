"""A dialect with the ids and encrypted blocks of a vendor's real API.

The scripted model numbers its answers. A real one gives them random ids, and encrypts what it
thought: both end up in the CLI's transcript.
"""

import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from look_alikes import digits, encrypted, letters, sealed
from loopback.anthropic import Anthropic
from loopback.gemini import Gemini
from loopback.log import Request
from loopback.openai import OpenAI
from loopback.script import Answer
from loopback.wire import Reply

_NUMBERED: Final = re.compile(r"\b(fc|call|msg|resp|toolu|req)_(\d{6}(?:_\d+)?)\b")
_THOUGHT: Final = "Read the next lines."


def _openai_id(rng: random.Random, kind: str) -> str:
    return f"call_{letters(rng, 24)}" if kind == "call" else f"{kind}_{digits(rng, 50)}"


def _anthropic_id(rng: random.Random, kind: str) -> str:
    return f"req_011C{letters(rng, 20)}" if kind == "req" else f"{kind}_01{letters(rng, 22)}"


class Lifelike:
    """Another dialect, with random ids and with thoughts."""

    def __init__(self, dialect: Any, seed: int) -> None:
        self._dialect = dialect
        self._rng = random.Random(seed)
        self._ids: dict[str, str] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dialect, name)

    def say(self, request: Request, answer: Answer) -> Reply:
        reply = self._dialect.say(request, answer)
        chunks = [chunk.decode() for chunk in reply.chunks]
        if reply.stream:
            chunks = _THINK[type(self._dialect)](self._rng, chunks)
        headers = {name: self._draw_ids(value) for name, value in reply.headers.items()}
        named = [self._draw_ids(chunk).encode() for chunk in chunks]
        return replace(reply, chunks=named, headers=headers)

    def _draw_ids(self, text: str) -> str:
        draw = _anthropic_id if isinstance(self._dialect, Anthropic) else _openai_id

        def named(match: re.Match[str]) -> str:
            return self._ids.setdefault(match[0], draw(self._rng, match[1]))

        return _NUMBERED.sub(named, text)


def _event(data: dict[str, Any]) -> str:
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n"


def _think_openai(rng: random.Random, chunks: list[str]) -> list[str]:
    summary = [{"type": "summary_text", "text": _THOUGHT}]
    item = {"type": "reasoning", "id": f"rs_{digits(rng, 50)}", "summary": summary}
    done = {**item, "encrypted_content": encrypted(rng)}
    kinds = {"added": item, "done": done}
    events = [
        _event({"type": f"response.output_item.{kind}", "output_index": 0, "item": each})
        for kind, each in kinds.items()
    ]
    return [*chunks[:1], *events, *chunks[1:]]


def _think_anthropic(rng: random.Random, chunks: list[str]) -> list[str]:
    block = {"type": "thinking", "thinking": "", "signature": ""}
    deltas = [
        {"type": "thinking_delta", "thinking": _THOUGHT},
        {"type": "signature_delta", "signature": sealed(rng)},
    ]
    events = [
        {"type": "content_block_start", "content_block": block},
        *({"type": "content_block_delta", "delta": delta} for delta in deltas),
        {"type": "content_block_stop"},
    ]
    later = [
        re.sub(r'"index": (\d+)', lambda match: f'"index": {int(match[1]) + 1}', chunk)
        if chunk.startswith("event: content_block")
        else chunk
        for chunk in chunks[2:]
    ]
    return [*chunks[:2], *(_event({**event, "index": 0}) for event in events), *later]


def _think_gemini(rng: random.Random, chunks: list[str]) -> list[str]:
    thinking = []
    for chunk in chunks:
        data = json.loads(chunk.removeprefix("data: "))
        for candidate in data["candidates"]:
            for part in candidate["content"]["parts"]:
                part["thoughtSignature"] = sealed(rng)
                part.get("functionCall", {}).pop("id", None)  # the CLI makes its own
        thinking.append(f"data: {json.dumps(data)}\r\n\r\n")
    return thinking


_THINK: Final[dict[type, Callable[[random.Random, list[str]], list[str]]]] = {
    OpenAI: _think_openai,
    Anthropic: _think_anthropic,
    Gemini: _think_gemini,
}
