"""The errors of each vendor's API, with the headers that a subscriber of it gets."""

import time
from dataclasses import dataclass, replace
from typing import Final

from loopback import anthropic, openai
from loopback.script import Fail


@dataclass(frozen=True, slots=True)
class Refusals:
    """The errors of one API."""

    cli: str
    window: int
    """Tokens of the window that the CLI assumes for its model."""

    def overloaded(self) -> Fail:
        return anthropic.OVERLOADED if self.cli == "claude-code" else openai.OVERLOADED

    def unauthorized(self) -> Fail:
        if self.cli == "codex":
            return openai.UNAUTHORIZED
        expired = (
            "OAuth token has expired. Please obtain a new token or refresh your existing token."
        )
        return replace(anthropic.UNAUTHORIZED, message=expired)

    def too_long(self) -> Fail:
        return (
            openai.too_long() if self.cli == "codex" else anthropic.too_long(1_012_345, 1_000_000)
        )

    def limit(self, resets: float) -> Fail:
        """Return the refusal of a subscriber whose five hours are used up."""
        at = int(resets)
        if self.cli == "codex":
            return openai.usage_limit(at, max(0, at - int(time.time())))
        unified = "anthropic-ratelimit-unified"
        headers = {
            "x-should-retry": "false",
            f"{unified}-status": "rejected",
            f"{unified}-reset": str(at),
            f"{unified}-representative-claim": "five_hour",
            f"{unified}-5h-status": "rejected",
            f"{unified}-5h-utilization": "1.0",
            f"{unified}-5h-reset": str(at),
        }
        words = "This request would exceed your account's rate limit. Please try again later."
        return replace(anthropic.RATE_LIMITED, message=words, headers=headers)


REFUSALS: Final = {
    "claude-code": Refusals("claude-code", 1_000_000),
    "codex": Refusals("codex", 258_400),
}
