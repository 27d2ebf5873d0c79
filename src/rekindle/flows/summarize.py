"""Turns become a summary: by a model that is asked once and once more, else without one.

Nothing of it can say what is to run, or what may be spent: a document is all that it becomes.
"""

import secrets
from collections.abc import Callable, Sequence
from datetime import date
from typing import Literal

import msgspec

from rekindle.documents import brief, checkpoint, relay
from rekindle.documents import summary as summaries
from rekindle.documents.brief import Label
from rekindle.documents.checkpoint import Part
from rekindle.documents.question import Answer
from rekindle.documents.relay import Field
from rekindle.documents.summary import Kind, Summary
from rekindle.documents.transcript import Turn
from rekindle.errors import DocumentError, SummaryError
from rekindle.policy import summarize as policy
from rekindle.policy.summarize import Request
from rekindle.summarizers import mechanical
from rekindle.summarizers.mechanical import Known


class Made(msgspec.Struct, frozen=True, kw_only=True):
    summary: Summary
    how: Literal["headless", "mechanical"]
    words: str = ""
    """Why no model has made it."""
    usd: float = 0.0
    tokens: int = 0
    """What asking has cost, whether or not the answer could be used."""


class Summarize:
    def __init__(
        self,
        ask: Callable[[Request], Answer] | None,
        *,
        cap: int,
        nonce: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> None:
        """`ask` raises a SummaryError where nothing is answered; None: nobody is asked."""
        self._ask, self._cap, self._nonce = ask, cap, nonce

    def make(self, kind: Kind, turns: Sequence[Turn], known: Known) -> Made:
        """A summary of these turns, which are without secrets.

        Raises:
            OverBudgetError: They are more than a summarizer may be given.
        """
        plain = Made(summary=mechanical.summarize(kind, turns, known), how="mechanical")
        main = [turn for turn in turns if not turn.thread]
        if self._ask is None or not main:
            return plain
        carried = "\n".join(f"- {each}" for each in known.carried)
        request = policy.request(kind, main, nonce=self._nonce(), cap=self._cap, carried=carried)
        usd, tokens, fault = 0.0, 0, ""
        for _ in range(2):
            try:
                answer = self._ask(policy.again(request, fault) if fault else request)
                usd, tokens = usd + (answer.usd or 0.0), tokens + (answer.tokens or 0)
                found = summaries.parse(answer.text, kind, request.numbers)
            except SummaryError as error:
                fault = str(error)
                break  # it was not the answer that could not be used
            except DocumentError as error:
                fault = error.reason
                continue
            summary = policy.attributed(found, main)
            return Made(summary=summary, how="headless", usd=usd, tokens=tokens)
        return msgspec.structs.replace(plain, words=fault, usd=usd, tokens=tokens)


def document(made: Made, known: Known, *, name: str, day: date) -> str:
    """The document that a summary was made for; which files changed, git has said."""
    files = "\n".join(f"- `{summaries.line(path).replace('`', '´')}`" for path in known.changed)
    kind = made.summary.kind
    found = summaries.contents(made.summary, {Part.MODIFIED_FILES: files})
    if kind == "checkpoint":
        parts = {part: found[part] for part in Part if part in found}
        return checkpoint.render(checkpoint.compose(parts))
    if kind == "relay":
        fields = {field: found[field] for field in Field if field in found}
        return relay.render(relay.compose(fields))
    labels = {label: found[label] for label in Label if label in found}
    return brief.render(brief.compose(name, day, labels))
