"""A summarizer's answer, checked against the request."""

import json

import pytest

from rekindle.documents.summaries.summary import (
    AnswerFault,
    Summary,
    SummaryItem,
    extract_json,
    find_quoted_source,
    list_asked_sections,
    list_carried_items,
    make_line,
    make_quotation,
    make_schema,
    parse,
    render_bullets,
    render_code,
    render_sections,
    strip_quotation,
)
from rekindle.errors import DocumentError
from rekindle.thresholds.texts import ITEM_CHARACTERS, SUMMARY_ITEMS

TURNS = frozenset({1, 2, 3})


def answer(kind="brief", **sections):
    names = {name: [item("done", [1])] for name in list_asked_sections(kind)}
    return json.dumps(names | sections)


def item(text, turns):
    return {"text": text, "turns": turns}


def test_an_answer_is_read_section_by_section():
    found = parse(answer(Changed=[item(" - two\nlines ", [3, 1, 3])], Risk=[]), "brief", TURNS)
    assert found.kind == "brief"
    assert list(found.sections) == list(list_asked_sections("brief"))
    assert found.sections["Changed"] == (SummaryItem("two lines", (1, 3)),)
    assert found.sections["Risk"] == ()


def test_an_item_without_text_is_left_out():
    found = parse(answer(Changed=[item(" ", [1]), item("x", [2])]), "brief", TURNS)
    assert found.sections["Changed"] == (SummaryItem("x", (2,)),)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("no JSON", AnswerFault.NOT_JSON),
        ("[]", AnswerFault.NOT_AN_OBJECT),
        ('{"Changed": [], "Changed": []}', AnswerFault.TWICE),
        (answer(More=[]), AnswerFault.UNKNOWN),
        ("{}", AnswerFault.LACKING),
        (answer(Changed="x"), AnswerFault.NO_LIST),
        (answer(Changed=[item("x", [1])] * (SUMMARY_ITEMS + 1)), AnswerFault.TOO_MANY),
        (answer(Next=[item("x", [1]), item("y", [1])]), AnswerFault.NOT_ONE),
        (answer(Changed=["x"]), AnswerFault.NO_ITEM),
        (answer(Changed=[{"text": "x"}]), AnswerFault.NO_ITEM),
        (answer(Changed=[item(3, [1])]), AnswerFault.NO_ITEM),
        (answer(Changed=[item("x", 1)]), AnswerFault.NO_ITEM),
        (answer(Changed=[item("x", [])]), AnswerFault.NO_TURN),
        (answer(Changed=[item("x", [4])]), AnswerFault.NO_TURN),
        (answer(Changed=[item("x", [True])]), AnswerFault.NO_TURN),
    ],
)
def test_an_answer_that_cannot_be_used(text, fault):
    with pytest.raises(DocumentError) as caught:
        parse(text, "brief", TURNS)
    assert caught.value.reason == fault


def test_only_some_sections_may_be_empty():
    many = answer(Changed=[item("x", [1])] * SUMMARY_ITEMS)
    assert len(parse(many, "brief", TURNS).sections["Changed"]) == SUMMARY_ITEMS
    parse(answer("relay", Metrics=[]), "relay", TURNS)
    for kind, section in (("relay", "Key Decisions Made"), ("checkpoint", "Completed Work")):
        with pytest.raises(DocumentError, match="must not be empty"):
            parse(answer(kind, **{section: []}), kind, TURNS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" {} ", b"{}"),
        ("```json\n{}\n```", b"{}\n"),
        ("```\n{}```", b"{}"),
        ("```json\n{}", b"```json\n{}"),
        ("{}```", b"{}```"),
    ],
)
def test_the_object_in_an_answer(text, expected):
    """A fence around all of it is taken off, and nothing else."""
    assert extract_json(text) == expected


def test_the_schema_of_an_answer():
    relay = json.loads(make_schema("relay"))
    assert relay["required"] == list(list_asked_sections("relay"))
    assert relay["additionalProperties"] is False
    item_schema = relay["properties"]["Metrics"]["items"]
    assert item_schema["required"] == ["text", "turns"]
    assert item_schema["additionalProperties"] is False
    assert item_schema["properties"]["turns"]["minItems"] == 1
    limits = {name: each["maxItems"] for name, each in relay["properties"].items()}
    assert limits["Next Action"] == limits["Current Phase"] == 1
    assert limits["Metrics"] == SUMMARY_ITEMS
    assert "Modified Files" not in list_asked_sections("checkpoint")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- * 1. x", "x"),
        ("2) x", "x"),
        ("a - b", "a - b"),
        ("===STATE_JSON=== x", "STATE_JSON x"),
        ("== a ==", "a"),
        ("=a=", "=a="),
        ("a\nb", "a b"),
    ],
)
def test_a_line_is_nothing_but_text(text, expected):
    assert make_line(text) == expected


def test_a_quotation_is_never_longer_than_an_item():
    assert make_quotation("the agent, turn 3", "“so” it is") == "the agent, turn 3: “'so' it is”"
    long = make_quotation("me", "x" * 2 * ITEM_CHARACTERS)
    assert len(long) == ITEM_CHARACTERS
    assert long.endswith("”")
    assert len(make_quotation("me", "x" * 50, 20)) == 20 + len("me: “”")


@pytest.mark.parametrize(
    ("text", "words", "source"),
    [
        ("the agent, turn 3: “so it is”", "so it is", "the agent, turn 3"),
        ("so it is", "so it is", ""),
        ("a: “b” c", "a: “b” c", ""),
    ],
)
def test_a_quotation_is_taken_apart(text, words, source):
    assert (strip_quotation(text), find_quoted_source(text)) == (words, source)


def test_a_file_s_name_as_code():
    assert render_code("a`b\nc") == "`a´b c`"


def test_what_an_earlier_session_left_over():
    """Its turns are not those of this session."""
    text = "- one (turns 3, 7-9)\n\n- none\n- the agent, turn 4: “two” (turn 4)\nthree (turn x)"
    assert list_carried_items(text) == ("one", "the agent, before: “two”", "three (turn x)")


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        ((), "- x"),
        ((3,), "- x (turn 3)"),
        ((3, 4), "- x (turns 3-4)"),
        ((1, 3, 4, 5, 8), "- x (turns 1, 3-5, 8)"),
    ],
)
def test_the_turns_of_an_item(turns, expected):
    assert render_bullets((SummaryItem("x", turns),)) == expected


def test_the_texts_of_the_sections():
    """In their order, without empty ones, with those that git gave."""
    summary = Summary(
        "checkpoint", {"Remaining Work": (SummaryItem("b"), SummaryItem("c")), "Completed Work": ()}
    )
    more = {"Modified Files": "`a`"}
    assert render_sections(summary, more) == {"Modified Files": "`a`", "Remaining Work": "- b\n- c"}
