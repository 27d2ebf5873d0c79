"""Decisions that a relay puts up for choice again."""

import json
from datetime import date
from pathlib import Path

from rekindle.documents import relay as relays
from rekindle.policy.relay.redebate import find_redebates

TABLES = json.loads(Path(__file__).with_name("redebate.json").read_text())


def test_the_decisions_that_are_debated_again():
    """Each with its day, the line that asks, where it is, and the words for the agent."""
    for row, expected in TABLES["relays"].items():
        decisions, before, after = json.loads(row)
        settled = [
            (text, date.fromisoformat(day) if day else None, subject)
            for text, day, subject in decisions
        ]
        found = [
            [one.decision, one.made and one.made.isoformat(), one.line, one.where, one.words]
            for one in find_redebates(settled, relays.parse(before), relays.parse(after))
        ]
        assert found == expected, row


def test_a_line_with_three_of_four_words_is_about_the_decision():
    """That is exactly the share at which a line is about the same subject."""
    before = "## Next Action\nKnead the dough.\n"
    settled = [("Stone oven rye loaves", None, "stone oven rye loaves")]
    for question, count in (("stone oven rye", 1), ("stone oven", 0)):
        after = f"{before}\n## Open Questions\n- Reconsider {question}?\n"
        found = find_redebates(settled, relays.parse(before), relays.parse(after))
        assert len(list(found)) == count, question
