"""The public modules that work without a project folder."""

from datetime import UTC, datetime

from rekindle import events, relays, stalls
from rekindle.documents import events as documents

NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)
TEXT = "## What We Did This Cycle\nBuilt the form.\n\n## Next Action\nShip the form.\n"


def test_the_names_are_a_promise():
    assert relays.__all__ == [
        "MOST_TOKENS",
        "Relay",
        "RelayField",
        "RelayFinding",
        "RelayKind",
        "RelayReport",
        "RemovedText",
        "TrimResult",
        "check",
        "compose",
        "parse",
        "render",
        "trim",
    ]
    assert stalls.__all__ == [
        "StallKind",
        "StallVerdict",
        "StuckStretch",
        "find_stretches",
        "replay",
        "verdict",
    ]
    assert {kind.__name__ for kind in documents.EVENT_KINDS} <= set(events.__all__)
    for module in (relays, stalls, events):
        assert all(hasattr(module, name) for name in module.__all__)


def test_a_relay_is_checked_and_trimmed():
    parsed = relays.parse(TEXT)
    assert relays.check(parsed).usable
    assert not relays.check(relays.parse("Nothing here.")).usable
    assert relays.trim(parsed).relay == parsed
    assert relays.render(parsed) == TEXT


def test_a_history_of_relays_is_replayed():
    assert stalls.verdict(TEXT, TEXT).verdict == "stalled"
    verdicts = stalls.replay([TEXT] * 9)
    assert [stretch.cycles for stretch in stalls.find_stretches(verdicts)] == [8]


def test_an_event_is_parsed():
    event = events.LoopAdded(ts=NOW, id="a", text="b")
    assert events.parse(events.render(event)) == event
