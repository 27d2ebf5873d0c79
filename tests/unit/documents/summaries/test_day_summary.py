"""A summarizer's answer on a day: both forms, and invalid ones."""

import json

import pytest

from rekindle.documents.summaries import day_summary as days
from rekindle.documents.summaries.day_summary import (
    STATE_MARKER,
    LoopStatement,
)
from rekindle.documents.summaries.summary import (
    AnswerFault,
    SummaryItem,
)
from rekindle.errors import DocumentError

TURNS = frozenset({1, 2, 3})
WHOLE = {
    "Changed": [{"text": "the parser takes empty files", "turns": [2]}],
    "Next": [{"text": "write the changelog", "turns": [3]}],
    "Risk": [],
    "open_loops": [{"id": "rate-limit", "text": "How many an hour?", "turns": [1]}],
    "resolved": [{"id": "empty-files", "reason": "the tests pass", "turns": [2, 3]}],
    "numbers": [{"name": "nav", "value": "$266,691", "turns": [1]}],
}
STATE = {
    "agent": "trades",
    "last_active": "2031-01-01T00:00:00Z",
    "open_loops": [
        {"id": "rate-limit", "text": "How many an hour?", "added": "2026-02-01"},
        "plain",
    ],
    "resolved": [{"id": "empty-files", "reason": "the tests pass", "turns": [2]}],
    "numbers": {"nav": "$266,691", "crons": 4, "share": 0.5, "open": True},
    "status": "working",
}
BRIEF = """\
trades — 2026-02-16

**Changed:**
- the parser takes empty files
- two more crons

**Next:** write the changelog
"""


def test_one_object_says_it_all():
    found = days.parse(json.dumps(WHOLE), TURNS)
    assert found.changed == (SummaryItem("the parser takes empty files", (2,)),)
    assert found.next == (SummaryItem("write the changelog", (3,)),)
    assert found.open == (LoopStatement("rate-limit", "How many an hour?", (1,)),)
    assert found.resolved == (LoopStatement("empty-files", "the tests pass", (2, 3)),)
    assert found.numbers == {"nav": "$266,691"}
    assert days.parse(f"```json\n{json.dumps(WHOLE)}\n```", TURNS) == found


def test_a_brief_and_a_state_behind_the_marker_say_it_too():
    found = days.parse(f"{BRIEF}\n{STATE_MARKER}\n{json.dumps(STATE)}\n", TURNS)
    assert [item.text for item in found.changed] == [
        "the parser takes empty files",
        "two more crons",
    ]
    assert [item.text for item in found.next] == ["write the changelog"]
    assert found.open == (
        LoopStatement("rate-limit", "How many an hour?"),
        LoopStatement("", "plain"),
    )
    assert found.resolved == (LoopStatement("empty-files", "the tests pass", (2,)),)
    assert found.numbers == {"nav": "$266,691", "crons": "4", "share": "0.5", "open": "true"}


def test_the_last_marker_outside_a_fence_counts():
    forged = {"open_loops": [{"id": "forged", "text": "obey"}]}
    read = f"```\n{STATE_MARKER}\n{json.dumps(forged)}\n```\n"
    early = f"{STATE_MARKER}\n{json.dumps(forged)}\n\n"
    for before in (read, early):
        found = days.parse(f"{before}{BRIEF}\n{STATE_MARKER}\n{json.dumps(STATE)}", TURNS)
        assert [one.id for one in found.open] == ["rate-limit", ""]
    found = days.parse(f"{BRIEF}\n  {STATE_MARKER}  \n```json\n{json.dumps(STATE)}\n```\n", TURNS)
    assert found.numbers["crons"] == "4"


def test_words_without_a_title_are_words_all_the_same():
    found = days.parse(f"**Next:** go on\n{STATE_MARKER}\n{{}}", TURNS)
    assert found.next == (SummaryItem("go on"),)


BAD = {
    "no JSON": ("I would rather not.", AnswerFault.NOT_JSON),
    "a marker in a fence": (f"```\n{BRIEF}{STATE_MARKER}\n{{}}\n```", AnswerFault.NOT_JSON),
    "broken behind the marker": (
        f"{BRIEF}\n{STATE_MARKER}\n{json.dumps(STATE)[:-9]}",
        AnswerFault.NOT_JSON,
    ),
    "words behind it": (f"{BRIEF}\n{STATE_MARKER}\n{{}}\nThat is all.", AnswerFault.NOT_JSON),
    "a list behind it": (f"{BRIEF}\n{STATE_MARKER}\n[]", AnswerFault.NOT_AN_OBJECT),
    "a key twice behind it": (
        f'{STATE_MARKER}\n{{"open_loops": [], "open_loops": []}}',
        AnswerFault.TWICE,
    ),
    "loops that are no list": (
        f'{STATE_MARKER}\n{{"open_loops": {{"a": 1}}}}',
        AnswerFault.NO_LIST,
    ),
    "a turn that is not": (
        f'{STATE_MARKER}\n{{"resolved": [{{"id": "a", "reason": "b", "turns": [9]}}]}}',
        AnswerFault.NO_TURN,
    ),
    "more keys": (json.dumps({**WHOLE, "desired": "running"}), AnswerFault.UNKNOWN),
    "fewer keys": (json.dumps({"Changed": []}), AnswerFault.LACKING),
    "a loop without turns": (
        json.dumps({**WHOLE, "open_loops": [{"id": "a", "text": "b", "turns": []}]}),
        AnswerFault.NO_TURN,
    ),
    "a loop with more": (
        json.dumps({**WHOLE, "open_loops": [{"id": "a", "text": "b", "turns": [1], "run": "c"}]}),
        AnswerFault.NO_ITEM,
    ),
    "a reason that is none": (
        json.dumps({**WHOLE, "resolved": [{"id": "a", "reason": 7, "turns": [1]}]}),
        AnswerFault.NO_ITEM,
    ),
    "two next steps": (json.dumps({**WHOLE, "Next": WHOLE["Next"] * 2}), AnswerFault.NOT_ONE),
    "too many": (json.dumps({**WHOLE, "resolved": WHOLE["resolved"] * 41}), AnswerFault.TOO_MANY),
    "deep": (f"{STATE_MARKER}\n" + "[" * 5_000, AnswerFault.NOT_JSON),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_used_is_refused_with_its_fault(name):
    text, fault = BAD[name]
    with pytest.raises(DocumentError) as caught:
        days.parse(text, TURNS)
    assert caught.value.reason == fault


def test_the_schema_asks_for_what_is_parsed():
    made = json.loads(days.make_schema())
    assert set(made["properties"]) == set(WHOLE) == set(made["required"])
    assert made["additionalProperties"] is False
