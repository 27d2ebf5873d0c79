"""Turns become a summary: by a model that is asked once and once more, else without one.

Nothing of it can say what is to run, or what may be spent: a document is all that it becomes.
"""

import secrets
from collections import deque
from collections.abc import Callable, Iterable
from datetime import date, datetime
from typing import Generic, Literal, TypeVar

import msgspec

from rekindle.documents import brief, checkpoint, relay
from rekindle.documents import event as events
from rekindle.documents import summary as summaries
from rekindle.documents.brief import Label
from rekindle.documents.checkpoint import Part
from rekindle.documents.question import Answer
from rekindle.documents.relay import Field
from rekindle.documents.summary import Kind, Summary
from rekindle.documents.transcript import Turn
from rekindle.errors import DocumentError, SummaryError
from rekindle.policy import summarize as policy
from rekindle.policy.attribution import attributed
from rekindle.policy.budget import Spent
from rekindle.policy.summarize import Request
from rekindle.summarizers import mechanical
from rekindle.summarizers.mechanical import Gist, Known

T = TypeVar("T")


class Made(msgspec.Struct, frozen=True, kw_only=True):
    summary: Summary
    how: Literal["headless", "mechanical"]
    words: str = ""
    """Why no model has made it."""
    turns: int = 0
    """How many it was made of."""
    usd: float = 0.0
    tokens: int = 0
    """What asking has cost, whether or not the answer could be used."""

    @property
    def was_asked(self) -> bool:
        """Whether a model was asked for it: it has made it, or there is a reason why not."""
        return self.how == "headless" or bool(self.words)


class Summarize:
    def __init__(
        self,
        ask: Callable[[Request], Answer] | None,
        *,
        cap: int,
        words: str = "",
        nonce: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> None:
        """`ask` raises a SummaryError where nothing is answered; None: nobody is asked.

        `words` is what its model is told beside the request.
        """
        self._ask, self._cap, self._words, self._nonce = ask, cap, words, nonce

    def make(self, kind: Kind, turns: Iterable[Turn], known: Known) -> Made:
        """A summary of these turns, which are without secrets; they are taken one by one.

        Raises:
            OverBudgetError: They are more than a summarizer may be given.
        """
        gist = Gist()
        main = gist.of(turns)
        if self._ask is None:
            deque(main, maxlen=0)
            return self._plain(kind, gist, known)
        request = policy.request(
            kind,
            main,
            nonce=self._nonce(),
            cap=self._cap,
            carried=known.carried,
            words=self._words,
        )
        plain = self._plain(kind, gist, known)
        return self._asked(self._ask, request, plain) if gist.turns else plain

    def _plain(self, kind: Kind, gist: Gist, known: Known) -> Made:
        summary = mechanical.summary_of(kind, gist, known)
        return Made(summary=summary, how="mechanical", turns=gist.turns)

    def _asked(self, ask: Callable[[Request], Answer], request: Request, plain: Made) -> Made:
        reply = answered(
            ask, request, lambda text: summaries.parse(text, request.kind, request.numbers)
        )
        spent = {"usd": reply.usd, "tokens": reply.tokens}
        if reply.found is None:
            return msgspec.structs.replace(plain, words=reply.words, **spent)
        found = attributed(reply.found, request)
        return msgspec.structs.replace(plain, summary=found, how="headless", **spent)


class Reply(msgspec.Struct, Generic[T]):
    found: T | None
    words: str
    """Why there is none."""
    usd: float
    tokens: int
    """What asking has cost, whether or not the answer could be used."""
    is_unusable: bool = False
    """There was an answer, or what there was of it has cost something."""


def answered(
    ask: Callable[[Request], Answer], request: Request, parse: Callable[[str], T]
) -> Reply[T]:
    """Ask, and once more where the answer cannot be used: of that, `parse` raises a `Fault`."""
    usd, tokens, words, next_request = 0.0, 0, "", request
    for _ in range(2):
        try:
            answer = ask(next_request)
            usd, tokens = usd + (answer.usd or 0.0), tokens + (answer.tokens or 0)
            return Reply(parse(answer.text), "", usd, tokens)
        except SummaryError as error:
            # It was not the answer that could not be used.
            usd, tokens = usd + error.usd, tokens + error.tokens
            return Reply(None, str(error), usd, tokens, is_unusable=bool(usd or tokens))
        except DocumentError as error:
            words = f"the summarizer's answer {error.reason}"
            next_request = policy.again(request, error.reason, request.spent + usd)
    return Reply(None, words, usd, tokens, is_unusable=True)


def noted(
    made: Made, *, ts: datetime, spent: Spent | None = None, seconds: float = 0.0
) -> events.SummaryMade:
    """What the log says of a summary; `spent` is what its run had spent before, if it has one."""
    return events.SummaryMade(
        ts=ts,
        document=made.summary.kind,
        how=made.how,
        words=made.words,
        turns=made.turns,
        usd=made.usd,
        tokens=made.tokens,
        seconds=seconds,
        run_usd=spent.usd + made.usd if spent else None,
        run_tokens=spent.tokens + made.tokens if spent else None,
        unpriced=spent.unpriced if spent else 0,
    )


def document(made: Made, known: Known, *, name: str, day: date) -> str:
    """The document that a summary was made for; which files changed, git has said."""
    files = "\n".join(f"- {summaries.code(path)}" for path in known.changed)
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
