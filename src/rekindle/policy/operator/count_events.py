"""Count an agent's events for the metrics."""

from collections.abc import Collection, Iterable, Mapping

from msgspec.structs import replace

from rekindle.documents import events
from rekindle.documents.events import AnyEvent, UnknownEvent
from rekindle.documents.screens.metrics_text import AgentCounts
from rekindle.policy.exits.stop_reasons import EXIT_KINDS, REACTIONS, find_reaction
from rekindle.policy.stall.verdict import StallKind

NO_VERDICT = "none"
"""Label of a cycle without an earlier one to compare with."""
OTHER = "other"
"""Label for words that this version does not know."""
_VERDICTS = frozenset({*StallKind, NO_VERDICT})
_CAUSES = frozenset({"threshold", "person", "repetition"})
NOTHING_COUNTED = AgentCounts(
    # Prometheus's `increase()` notices the first failure only if its counter was 0 before.
    launches={kind: 0 for kind in EXIT_KINDS if REACTIONS[find_reaction(kind)].counts}
)


def count_events(before: AgentCounts, happened: Iterable[AnyEvent | UnknownEvent]) -> AgentCounts:
    """Return the counts after more events of the same log.

    Events from an older generation do not count, because their host has lost the agent.
    """
    counts, gen = before, before.gen
    for event in happened:
        if event.gen >= gen:
            counts, gen = _count_event(counts, event), event.gen
    return replace(counts, gen=gen)


def _count_event(counts: AgentCounts, event: AnyEvent | UnknownEvent) -> AgentCounts:  # noqa: PLR0911 - one case per kind
    match event:
        case events.RunStarted():
            return replace(
                counts, past_tokens=counts.tokens, past_usd=counts.usd, run_tokens=0, run_usd=0.0
            )
        case events.CycleEnded():
            word = event.verdict or NO_VERDICT
            return replace(counts, cycles=_add_one(counts.cycles, word, _VERDICTS))
        case events.HandoffTriggered():
            return replace(counts, handoffs=_add_one(counts.handoffs, event.by, _CAUSES))
        case events.LaunchEnded():
            launches = _add_one(counts.launches, event.exit, EXIT_KINDS)
            return replace(
                _add_spending(counts, event.run_tokens, event.run_usd), launches=launches
            )
        case events.ReviewMade():
            return _add_spending(counts, event.run_tokens, event.run_usd)
        case events.SummaryMade(run_tokens=int(tokens), run_usd=float(usd)):
            return _add_spending(counts, tokens, usd)
        case events.SpendRecorded():
            return _add_spending(counts, event.tokens, event.usd)
        case _:
            return counts


def _add_one(numbers: Mapping[str, int], word: str, known: Collection[str]) -> Mapping[str, int]:
    label = str(word) if word in known else OTHER
    return {**numbers, label: numbers.get(label, 0) + 1}


def _add_spending(counts: AgentCounts, tokens: int, usd: float) -> AgentCounts:
    """Return the counts with a run's total so far.

    A total that is lower than an earlier estimate is ignored, because a counter must not decrease.
    """
    return replace(
        counts, run_tokens=max(counts.run_tokens, tokens), run_usd=max(counts.run_usd, usd)
    )
