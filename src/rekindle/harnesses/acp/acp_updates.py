"""Turn an agent's updates into the bridge's own lines.

The lines are JSON objects, each with a `type`:

| type | content |
|---|---|
| `opened` | `session`, `how` (`new`, `load` or `resume`), `agent`, `version`, `model` |
| `said` | `text`: whole lines, because agents send a few letters at a time |
| `alive` | nothing; the agent is thinking, or its tool prints something |
| `called` | `id`, `tool`, `arguments` |
| `decided` | `id`, `decision` (`allow`, `reject` or `ask`), and the tool and arguments |
| `returned` | `id`, `ok`, `refused` |
| `used` | `tokens` and `window` of the context, `model`; `usd` of this turn so far, if reported |
| `limited` | `resets_at` of a usage limit |
| `ended` | see `acp_bridge` |
"""

import math
import time
from collections.abc import Callable
from typing import Any

from rekindle.harnesses.acp.acp_calls import AcpCall
from rekindle.thresholds.bridge_limits import (
    ACP_CLOSING_CHARACTERS,
    ACP_SIGN_SECONDS,
    ACP_TEXT_CHARACTERS,
)

Print = Callable[[dict[str, Any]], None]
_SIGNS = frozenset({"agent_thought_chunk", "plan", "current_mode_update"})


class AcpUpdates:
    """Reads the updates of one turn."""

    def __init__(self, write: Print, spent: float = 0.0) -> None:
        """Print lines with `write`. `spent` is the session's cost that is counted already."""
        self._print, self._spent = write, spent
        self._is_counted = spent > 0
        self.calls: dict[str, AcpCall] = {}
        self.usd: float | None = None
        """Cost of this turn so far, if the agent reports it."""
        self.model = ""
        self.longest_context = 0
        self.finished_calls = 0
        """Number of calls that ended with success."""
        self.last_call: AcpCall | None = None
        """The last call that was reported."""
        self._done: set[str] = set()
        """Ids of the calls that have ended. Some agents describe a call again afterwards."""
        self.closing = ""
        """Start of the text that followed the last tool call."""
        self.closing_length = 0
        self._text = ""
        self._signed_at = 0.0
        self.is_replay = False
        """Whether the agent is repeating an old conversation."""

    def take(self, update: dict[str, Any]) -> None:
        """Print an update, unless it is a part of an old conversation."""
        kind = update.get("sessionUpdate")
        if kind == "usage_update":
            self._take_usage(update)
        elif self.is_replay:
            # Copilot ends an interrupted call only after it has loaded the session.
            self._done.add(str(update.get("toolCallId") or ""))
        elif kind == "agent_message_chunk":
            content = update.get("content")
            if isinstance(content, dict) and isinstance(text := content.get("text"), str):
                self._say(text)
        elif kind in {"tool_call", "tool_call_update"}:
            self._take_call(update)
        elif kind in _SIGNS:
            self._sign()

    def find_call(self, update: dict[str, Any]) -> AcpCall:
        """Return the call that an update is about, with the update's fields."""
        number = str(update.get("toolCallId") or "")
        call = self.calls.setdefault(number, AcpCall(number))
        call.add(update)
        return call

    def report(self, call: AcpCall) -> None:
        """Print that a call has started, once."""
        if not call.is_reported:
            self.flush()
            call.is_reported = True
            self.last_call = call
            self.closing, self.closing_length = "", 0
            self._print({"type": "called", **call.render()})

    def flush(self) -> None:
        """Print the text that has no line break yet."""
        text, self._text = self._text, ""
        if text.strip():
            self._print({"type": "said", "text": text})

    def _say(self, text: str) -> None:
        self.closing_length += len(text)
        self.closing += text[: max(0, ACP_CLOSING_CHARACTERS - len(self.closing))]
        self._text += text
        whole, line, rest = self._text.rpartition("\n")
        if line:
            self._text = rest
            if whole.strip():
                self._print({"type": "said", "text": whole})
        elif len(self._text) >= ACP_TEXT_CHARACTERS:
            self.flush()
        else:
            self._sign()

    def _take_call(self, update: dict[str, Any]) -> None:
        if update.get("toolCallId") in self._done:
            return
        call = self.find_call(update)
        if call.is_described:
            self.report(call)
        if call.is_over:
            self._done.add(call.number)
            del self.calls[call.number]
            is_done = call.status == "completed" and not call.is_refused
            self.finished_calls += is_done
            ended = {"id": call.number, "ok": is_done, "refused": call.is_refused}
            self._print({"type": "returned", **ended})
        else:
            self._sign()

    def _take_usage(self, update: dict[str, Any]) -> None:
        self._take_cost(update.get("cost"))
        if not self.is_replay:
            tokens = update.get("used")
            if isinstance(tokens, int):
                self.longest_context = max(self.longest_context, tokens)
            line = {"type": "used", "tokens": tokens, "window": update.get("size")}
            self._print({**line, "usd": self.usd, "model": self.model})
        if resets_at := _find_reset(update):
            self._print({"type": "limited", "resets_at": resets_at})

    def _take_cost(self, cost: object) -> None:
        """Take the cost of the whole session, of which only the new part counts."""
        if not isinstance(cost, dict) or cost.get("currency") != "USD":
            return
        total = cost.get("amount")
        if not isinstance(total, int | float):
            return
        if self.is_replay:
            self._spent = self._spent if self._is_counted else total
            return
        if self.usd is None and total < self._spent and not math.isclose(total, self._spent):
            self._spent = 0.0  # this agent forgets the cost when it exits
        self.usd = max(0.0, total - self._spent)

    def _sign(self) -> None:
        now = time.monotonic()
        if now - self._signed_at >= ACP_SIGN_SECONDS:
            self._signed_at = now
            self._print({"type": "alive"})


def _find_reset(update: dict[str, Any]) -> int | None:
    """Return when Claude's limit resets, if the agent reports that it was reached."""
    meta = update.get("_meta")
    limit = meta.get("_claude/rateLimit") if isinstance(meta, dict) else None
    if not isinstance(limit, dict) or limit.get("status") != "rejected":
        return None
    resets_at = limit.get("resetsAt")
    return int(resets_at) if isinstance(resets_at, int | float) else None
