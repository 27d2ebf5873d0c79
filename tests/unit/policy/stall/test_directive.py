"""The requests of relays: the open lines of a directive, and the names in them."""

import json
from pathlib import Path

import msgspec

from rekindle.documents import relay as relays
from rekindle.policy.stall import directive

TABLES = json.loads(Path(__file__).with_name("directive.json").read_text())


def test_what_a_relay_asks_for():
    """Heading, open, done and unattended lines; the head; names, tasks, and whether it ends."""
    for text, expected in TABLES["asks"].items():
        asked = directive.read_directive(relays.parse(text))
        found = asked and [
            flatten(asked)[:-1],
            flatten(asked.head),
            asked.names,
            sorted(asked.tasks),
            asked.asks_to_continue,
            asked.is_open_ended,
        ]
        assert found == expected, text


def flatten(value):
    """Return a struct as a list of its values."""
    if isinstance(value, msgspec.Struct):
        return [flatten(each) for each in msgspec.structs.astuple(value)]
    return [flatten(each) for each in value] if isinstance(value, tuple) else value
