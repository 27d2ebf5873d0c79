"""Summarize turns with a model, or without one if its answer is unusable.

A summary is only ever stored as a document. It cannot start programs or change budgets.
"""

import secrets
from collections import deque
from collections.abc import Callable, Iterable
from datetime import date, datetime
from typing import Generic, Literal, TypeVar

import msgspec

from rekindle.documents import brief, checkpoint, events, relay
from rekindle.documents.brief import BriefLabel
from rekindle.documents.checkpoint import CheckpointSection
from rekindle.documents.launches.one_shot import OneShotAnswer
from rekindle.documents.relay import RelayField
from rekindle.documents.summaries import summary as summaries
from rekindle.documents.summaries.summary import Summary, SummaryKind
from rekindle.documents.transcripts.turns import Turn
from rekindle.errors import DocumentError, OverBudgetError, SummaryError
from rekindle.policy.summaries import summary_request as policy
from rekindle.policy.summaries.attribution import attribute_lines
from rekindle.policy.summaries.summary_request import SummaryRequest
from rekindle.policy.supervision.budget import RunSpending
from rekindle.policy.text.token_estimate import estimate_unrounded
from rekindle.summarizers import mechanical_summary
from rekindle.summarizers.mechanical_summary import KnownWork, TurnDigest

T = TypeVar("T")


class SummaryResult(msgspec.Struct, frozen=True, kw_only=True):
    summary: Summary
    how: Literal["headless", "mechanical"]
    words: str = ""
    """Reason why no model wrote the summary; empty if one did."""
    turns: int = 0
    """Number of turns that were summarized."""
    usd: float = 0.0
    tokens: int = 0
    """Tokens used, including those for unusable answers."""

    @property
    def was_asked(self) -> bool:
        """Whether a model was asked."""
        return self.how == "headless" or bool(self.words)


class Summarizer:
    def __init__(
        self,
        ask: Callable[[SummaryRequest], OneShotAnswer] | None,
        *,
        cap: int,
        words: str = "",
        nonce: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> None:
        """Create a summarizer.

        `ask` sends a request to a model, and raises SummaryError if there is no answer. If `ask` is
        None, no model is used. `words` are extra instructions for the model.
        """
        self._ask, self._cap, self._words, self._nonce = ask, cap, words, nonce

    def make(self, kind: SummaryKind, turns: Iterable[Turn], work: KnownWork) -> SummaryResult:
        """Summarize redacted turns, reading them one by one.

        Raises:
            OverBudgetError: The turns exceed the summarizer's input cap.
        """
        gist = TurnDigest()
        main = gist.of(turns)
        if self._ask is None:
            deque(main, maxlen=0)
            return self._summarize_without_model(kind, gist, work)
        request = policy.build_request(
            kind,
            main,
            nonce=self._nonce(),
            cap=self._cap,
            carried=work.carried,
            words=self._words,
        )
        plain = self._summarize_without_model(kind, gist, work)
        return self._ask_model(self._ask, request, plain) if gist.turns else plain

    def ask_once(self, build: Callable[[str], SummaryRequest]) -> OneShotAnswer:
        """Ask the model once. `build` gets a random number, which marks data in the request.

        Raises:
            SummaryError: There is no model, or it gave no answer.
            OverBudgetError: The request exceeds the summarizer's input cap.
        """
        if self._ask is None:
            raise SummaryError("no model is set up for summaries")
        request = build(self._nonce())
        text = self._words + request.instructions + request.schema + request.prompt
        if (size := estimate_unrounded(text)) > self._cap:
            raise OverBudgetError(int(size), self._cap)
        return self._ask(request)

    def _summarize_without_model(
        self, kind: SummaryKind, gist: TurnDigest, work: KnownWork
    ) -> SummaryResult:
        summary = mechanical_summary.summarize_digest(kind, gist, work)
        return SummaryResult(summary=summary, how="mechanical", turns=gist.turns)

    def _ask_model(
        self,
        ask: Callable[[SummaryRequest], OneShotAnswer],
        request: SummaryRequest,
        plain: SummaryResult,
    ) -> SummaryResult:
        reply = ask_twice(
            ask, request, lambda text: summaries.parse(text, request.kind, request.numbers)
        )
        spent = {"usd": reply.usd, "tokens": reply.tokens}
        if reply.found is None:
            return msgspec.structs.replace(plain, words=reply.words, **spent)
        attributed = attribute_lines(reply.found, request)
        return msgspec.structs.replace(plain, summary=attributed, how="headless", **spent)


class ModelReply(msgspec.Struct, Generic[T]):
    found: T | None
    words: str
    """Reason why there is no usable answer; empty if there is one."""
    usd: float
    tokens: int
    """Tokens used, including those for unusable answers."""
    is_unusable: bool = False
    """Whether the model gave an answer, or charged for one, that could not be used."""


def ask_twice(
    ask: Callable[[SummaryRequest], OneShotAnswer],
    request: SummaryRequest,
    parse: Callable[[str], T],
) -> ModelReply[T]:
    """Ask a model, and ask again if `parse` raises DocumentError."""
    usd, tokens, words, next_request = 0.0, 0, "", request
    for _ in range(2):
        try:
            answer = ask(next_request)
            usd, tokens = usd + (answer.usd or 0.0), tokens + (answer.tokens or 0)
            return ModelReply(parse(answer.text), "", usd, tokens)
        except SummaryError as error:
            # The request itself failed, so asking again would not help.
            usd, tokens = usd + error.usd, tokens + error.tokens
            return ModelReply(None, str(error), usd, tokens, is_unusable=bool(usd or tokens))
        except DocumentError as error:
            words = f"the summarizer's answer {error.reason}"
            next_request = policy.build_retry(request, error.reason, request.spent + usd)
    return ModelReply(None, words, usd, tokens, is_unusable=True)


def make_summary_event(
    result: SummaryResult, *, ts: datetime, spent: RunSpending | None = None, seconds: float = 0.0
) -> events.SummaryMade:
    """Return the event for a summary. `spent` is the run's spending before the summary."""
    return events.SummaryMade(
        ts=ts,
        document=result.summary.kind,
        how=result.how,
        words=result.words,
        turns=result.turns,
        usd=result.usd,
        tokens=result.tokens,
        seconds=seconds,
        run_usd=spent.usd + result.usd if spent else None,
        run_tokens=spent.tokens + result.tokens if spent else None,
        unpriced=spent.unpriced if spent else 0,
        is_estimated=spent.is_estimated if spent else None,
    )


def render_document(result: SummaryResult, work: KnownWork, *, name: str, day: date) -> str:
    """Render a summary as a document. The list of changed files comes from git."""
    files = "\n".join(f"- {summaries.render_code(path)}" for path in work.changed)
    kind = result.summary.kind
    sections = summaries.render_sections(result.summary, {CheckpointSection.MODIFIED_FILES: files})
    if kind == "checkpoint":
        parts = {part: sections[part] for part in CheckpointSection if part in sections}
        return checkpoint.render(checkpoint.compose(parts))
    if kind == "relay":
        fields = {field: sections[field] for field in RelayField if field in sections}
        return relay.render(relay.compose(fields))
    labels = {label: sections[label] for label in BriefLabel if label in sections}
    return brief.render(brief.compose(name, day, labels))
