"""The deliberation of a relay: its options, its winner and its doubts."""

import json
from pathlib import Path

from rekindle.documents import relay as relays
from rekindle.policy.relay.deliberation import (
    find_option_lists,
    find_options,
    find_winners,
    names_doubts,
    rejects_topic,
)

TABLES = json.loads(Path(__file__).with_name("deliberation.json").read_text())


def test_what_a_relay_has_come_to():
    """Options, lists of options, winners, whether it is doubted, and whether it is refused."""
    for row, expected in TABLES["relays"].items():
        text, earlier = json.loads(row)
        relay = relays.parse(text)
        before = relays.parse(earlier) if earlier else None
        found = [
            list(find_options(relay, before)),
            [list(each) for each in find_option_lists(relay)],
            list(find_winners(relay, before)),
            names_doubts(relay),
            rejects_topic(relay, before),
        ]
        assert found == expected, row
