"""The relay: fields as they are really headed, a directive, and every other byte."""

import time
from datetime import date

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rekindle.documents import relay
from rekindle.documents.relay import (
    Relay,
    RelayField,
)
from rekindle.errors import NewerSchemaError, RekindleError
from sampling import examples

RELAY = """\
<!-- rekindle: relay 1 -->
# Consensus

## Current Phase
Building

## What We Did This Cycle
- wrote the parser

## Key Decisions Made
- JWT over sessions: simpler deployment (2026-04-09)
- Postgres over SQLite: concurrent writes (2026-04-10)

## Failed Approaches
- regexes: too slow

## Active Projects
- profile page

## Metrics
tests: 12

## Next Action
Add the endpoint

## Open Questions
- How fast?

## Our own section
kept
"""

TAME = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=60).filter(
    lambda text: not text.lstrip().startswith(tuple("#`~<>=-+*_|\ufeff0123456789"))
)
PIECES = st.lists(
    st.sampled_from(
        [
            *(
                "## Next Action\n",
                "### Next Actions (Cycle #12)\n",
                "# Next Step\n",
                "Do it\n",
                "TBD\n",
            ),
            *(
                "## Key Decisions\n",
                "- a: b (2026-01-02)\n",
                "- c\n  more\n",
                "```\n",
                "<!-- x -->\n",
            ),
            *("## Current Phase\r\n", "Open Questions\n===\n", "\n", "## Other\n", "---\n", "x"),
        ]
    ),
    max_size=20,
).map("".join)


def directive(text: str) -> str | None:
    return relay.parse(text).next_action


# Text and back.


@given(PIECES | st.text(max_size=200))
@settings(max_examples=examples(200))
def test_a_relay_is_its_own_text(text):
    """Rendering what was parsed gives the text, and parsing that gives the relay."""
    parsed = relay.parse(text)
    assert relay.render(parsed) == text
    assert relay.parse(relay.render(parsed)) == parsed


@given(st.binary(max_size=200) | PIECES.map(lambda text: text.encode("utf-8", "replace")))
@example(b"\xff\xfe")
@example(b"\xed\xa0\x80")
@example(b"\x00# Next Action")
@example(b"<!-- rekindle: relay 99999999999999999999 -->")
@example(b"## Key Decisions\n- x (9999-99-99)\n- y (0000-00-00)\n")
def test_any_bytes_are_a_relay_or_refused(data):
    """Bytes parse, with every property readable, or raise one of our own errors."""
    try:
        parsed = relay.parse(data)
    except RekindleError:
        return
    assert relay.render(parsed).encode() == data
    assert parsed.next_action is None or parsed.next_action.strip()
    assert all(decision.source for decision in parsed.decisions)


@given(st.dictionaries(st.sampled_from(RelayField), TAME))
def test_a_composed_relay_reads_back(fields):
    """Each field reads back as it was written."""
    composed = relay.compose(fields)
    assert relay.parse(relay.render(composed)) == composed
    for field in RelayField:
        content = composed.content(field)
        assert (content is not None) == (field in fields)
        assert (content or "").strip() == fields.get(field, "").strip()


def test_a_composed_relay_has_the_canonical_headings_in_order():
    """The order is the specification's, whatever order the fields came in."""
    composed = relay.compose(dict.fromkeys(reversed(RelayField), "x"))
    assert relay.render(composed).startswith("<!-- rekindle: relay 1 -->\n")
    assert [section.heading for section in composed.outline.sections] == [
        "## Current Phase\n",
        "## What We Did This Cycle\n",
        "## Key Decisions Made\n",
        "## Failed Approaches\n",
        "## Active Projects\n",
        "## Metrics\n",
        "## Next Action\n",
        "## Open Questions\n",
    ]


# Fields.


def test_all_eight_fields_are_found():
    """Each field has its own text."""
    parsed = relay.parse(RELAY)
    assert {field: (parsed.content(field) or "").strip()[:9] for field in RelayField} == {
        RelayField.CURRENT_PHASE: "Building",
        RelayField.WHAT_WE_DID: "- wrote t",
        RelayField.KEY_DECISIONS: "- JWT ove",
        RelayField.FAILED_APPROACHES: "- regexes",
        RelayField.ACTIVE_PROJECTS: "- profile",
        RelayField.METRICS: "tests: 12",
        RelayField.NEXT_ACTION: "Add the e",
        RelayField.OPEN_QUESTIONS: "- How fas",
    }


@pytest.mark.parametrize("field", RelayField)
@pytest.mark.parametrize(
    "dress",
    [
        "# {}",
        "###### {}",
        "## {}:",
        "## {}：",
        "## **{}**",
        "## __{}__",
        "## _{}_",
        "## `{}`",
        "## 🚀 {}",
        "## {} 🚀",
        "## 7. {}",
        "## 7) {}",
        "## 7️⃣ {}",
        "## [{}](#there)",
        "## {} (Cycle #12)",
        "## {} — Cycle 12",
        "## {} - 2026-04-09",
        "## {} for cycle 12",
        "## {} 12",
        "## {} ##",
        "   ## {}  ",
        "\ufeff## {}",
        "## {}\r",
        "{}\n===",
    ],
)
def test_a_heading_names_its_field_however_it_is_dressed(field, dress):
    """Level, emphasis, numbers, emoji, suffixes and line ends do not hide a field."""
    for name in (field.value, field.upper(), field.lower(), field.replace(" ", "  ")):
        parsed = relay.parse(f"{dress.format(name)}\nword\n")
        assert (parsed.content(field) or "").strip() == "word", name


@pytest.mark.parametrize(
    ("title", "field"),
    [
        ("Next Actions", RelayField.NEXT_ACTION),
        ("Open Question", RelayField.OPEN_QUESTIONS),
        ("Key Decisions", RelayField.KEY_DECISIONS),
        ("Key Decision", RelayField.KEY_DECISIONS),
        ("Active Project", RelayField.ACTIVE_PROJECTS),
        ("What We Did", RelayField.WHAT_WE_DID),
        ("What We Did in Cycle 9", RelayField.WHAT_WE_DID),
        ("Next Actionable", None),
        ("Next Action Heroes", None),
        ("Our Next Action", None),
        ("Metricsy", None),
        ("Questions", None),
        ("", None),
        ("🚀", None),
        ("7.", None),
    ],
)
def test_only_a_fields_own_name_names_it(title, field):
    """Plurals and short forms count; longer words and other names do not."""
    assert relay.match_field(title) is field


@pytest.mark.parametrize(
    "text",
    [
        "```\n## Next Action\nx\n```\n",
        "~~~md\n## Next Action\nx\n",
        "<!--\n## Next Action\nx\n-->\n",
        "> ## Next Action\n> x\n",
        "- ## Next Action\n  x\n",
        "    ## Next Action\n    x\n",
        "---\n## Next Action\n---\n",
        "##Next Action\nx\n",
        "**Next Action**\nx\n",
    ],
)
def test_text_outside_a_heading_is_not_a_field(text):
    """A fence, a comment, a quote or an item may mention a field without being one."""
    assert relay.parse(text).places(RelayField.NEXT_ACTION) == []
    assert directive(text) is None


# The directive.


def test_the_shallowest_and_then_the_topmost_section_governs():
    """Only one of several Next Actions is the directive."""
    assert directive("### Next Action\na\n## Next Action\nb\n## Next Action\nc\n") == "b"
    assert directive("## Next Action (Cycle #2)\na\n## Next Action\nb\n") == "a"
    places = relay.parse("### Next Action\n# Next Action\n## Next Action\n").places(
        RelayField.NEXT_ACTION
    )
    assert places == [1, 2, 0]


def test_a_directive_runs_to_the_next_heading_of_its_level_or_above():
    """Text under deeper headings belongs to it."""
    assert directive("## Next Action\na\n### b\nc\n## Open Questions\nd\n") == "a\n### b\nc"
    assert directive("### Next Actions for now\na\n# Other\nb\n") == "a"
    assert (
        directive("## Next Action\n```\n## Open Questions\n```\n") == "```\n## Open Questions\n```"
    )


@pytest.mark.parametrize(
    "title",
    [
        "Next Steps",
        "🔜 What’s Next",
        "Next Recommended Action",
        "Next Cycle (13)",
        "下一步",
        "下一步行动：",
        "下一步计划与安排",
    ],
)
def test_a_stand_in_directs_only_where_there_is_no_next_action(title):
    """Hand-over files of other habits have a directive too."""
    assert directive(f"## {title}\na\n") == "a"
    assert directive(f"# {title}\na\n### Next Action\nb\n") == "b"
    assert directive(f"## {title}\na\n## Next Action\nTBD\n") is None


@pytest.mark.parametrize(
    "content",
    [
        *(
            "",
            "\n \n",
            "TBD",
            "tbd.",
            "**TBD**",
            "- TBD",
            "TODO",
            "None",
            "_none_",
            "N/A",
            "n/a.",
            "na",
        ),
        *("---", "- - -", "…", "?", "nothing", "Pending", "unknown", "To be determined"),
        *("待定", "无", "暂无。", "没有", "> TBD", "- [ ]", "🚧", "`TBD`"),
    ],
)
def test_a_placeholder_is_not_a_directive(content):
    """Blank, TBD and similar words direct nothing."""
    assert relay.is_placeholder(content)
    assert directive(f"## Next Action\n{content}\n## Open Questions\n") is None


@pytest.mark.parametrize(
    "content", ["Nothing fits: rewrite it", "TBD: ask Ann", "1", "Noneuclid", "无线", "x"]
)
def test_words_are_a_directive(content):
    """A directive may begin like a placeholder."""
    assert directive(f"## Next Action\n\n{content}\n\n") == content


# Decisions.


def test_a_decision_has_its_text_its_rationale_and_its_day():
    """The specification's form is read whole."""
    first, second = relay.parse(RELAY).decisions
    assert (first.text, first.rationale) == ("JWT over sessions", "simpler deployment")
    assert (first.made, second.made) == (date(2026, 4, 9), date(2026, 4, 10))
    assert first.source == "- JWT over sessions: simpler deployment (2026-04-09)\n"


@pytest.mark.parametrize(
    ("item", "text", "rationale", "made"),
    [
        ("- a — b", "a", "b", None),
        ("* a - b", "a", "b", None),
        ("1. a because b", "a", "b", None),
        ("- a：b", "a", "b", None),
        ("- a", "a", "", None),
        ("- a-b: c: d", "a-b", "c: d", None),
        ("- **a**: b [2026-01-02]", "**a**", "b", date(2026, 1, 2)),
        ("- 2026-01-02: a (2026-13-45)", "2026-01-02", "a", date(2026, 1, 2)),
        ("- a:\n  b\n  (2026-01-02)", "a", "b", date(2026, 1, 2)),
        ("- build 12026-01-021", "build 12026-01-021", "", None),
    ],
)
def test_a_decision_is_read_however_it_is_put(item, text, rationale, made):
    """Colons, dashes and because give the reason; the last possible date is its day."""
    (decision,) = relay.parse(f"## Key Decisions\n{item}\n").decisions
    assert (decision.text, decision.rationale, decision.made) == (text, rationale, made)


def test_decisions_are_read_from_all_their_sections_once():
    """A section below another of its kind is not read twice."""
    text = "## Key Decisions\n- a\n### Key Decisions (Cycle 2)\n- b\n## Key Decisions Made\n- c\n"
    assert [decision.text for decision in relay.parse(text).decisions] == ["a", "b", "c"]


def test_a_heading_or_a_rule_does_not_belong_to_the_decision_above_it():
    """Only the item's own lines are the decision."""
    text = "## Key Decisions\n- a\n### Cycle 2\n- b\n---\n- c\n"
    assert [decision.text for decision in relay.parse(text).decisions] == ["a", "b", "c"]


def test_prose_and_code_are_not_decisions():
    """Only list items are, and a fence in an item belongs to it."""
    text = "## Key Decisions\nprose\n\n```\n- code\n```\n\n- ```\n  x\n  ```\n- a\n"
    assert [decision.text for decision in relay.parse(text).decisions] == ["``` x ```", "a"]


# Changes.


@pytest.mark.parametrize("field", RelayField)
def test_changing_a_field_leaves_every_other_byte(field):
    """The same holds for CRLF and for unknown sections."""
    for text in (RELAY, RELAY.replace("\n", "\r\n")):
        before = relay.parse(text)
        after = before.with_content(field, "new\n\n")
        assert after.content(field) == "new\n\n"
        old = before.content(field)
        heading = before.outline.sections[before.places(field)[0]].heading
        assert relay.render(after) == text.replace(f"{heading}{old}", f"{heading}new\n\n")


@given(PIECES, st.sampled_from(RelayField))
def test_a_changed_relay_is_what_its_text_parses_to(text, field):
    """No change gives a relay that reads differently once it is written."""
    changed = relay.parse(text).with_content(field, "- new: so\n## Next Action\nnew\n")
    assert relay.parse(relay.render(changed)) == changed


def test_a_missing_field_is_added_below():
    """A heading of its own, after a blank line."""
    for text, whole in (
        ("", "## Metrics\n1\n"),
        ("a", "a\n\n## Metrics\n1\n"),
        ("a\n", "a\n\n## Metrics\n1\n"),
    ):
        assert relay.render(relay.parse(text).with_content(RelayField.METRICS, "1\n")) == whole


def test_a_heading_at_the_very_end_gets_its_line_end():
    """New text never lands in the heading itself."""
    changed = relay.parse("## Metrics").with_content(RelayField.METRICS, "1\n")
    assert relay.render(changed) == "## Metrics\n1\n"


# Schema.


def test_a_newer_relay_is_refused_by_its_versions():
    """Reading it would lose what we do not know."""
    with pytest.raises(NewerSchemaError, match=r"relay: has schema 2, .* up to 1"):
        relay.parse("<!-- rekindle: relay 2 -->\n# x\n")
    with pytest.raises(NewerSchemaError):
        relay.parse("<!-- rekindle: brief 1 --><!--rekindle:relay  12345678901-->\n")


@pytest.mark.parametrize(
    "text",
    [
        "# x\n",
        "<!-- rekindle: relay 1 -->\n",
        "<!-- rekindle: relay 0 -->\n",
        "<!-- rekindle: brief 2 -->\n",
        "# x\n<!-- rekindle: relay 2 -->\n",
        "<!-- rekindle: relay two -->\n",
    ],
)
def test_a_relay_without_a_newer_mark_is_read(text):
    """No mark, an old one, another document's or one further down all pass."""
    assert isinstance(relay.parse(text), Relay)


# Hostile text.

HOSTILE = [
    *("#", "`", "*", " ", "\t", "- ", "<!--", "=", "_", "~", "> ", "1", "1. ", "\n", "|", "[", ":"),
    *(
        "(2026-01-02) ",
        " because ",
        "TBD",
        " — ",
        "# Next Action\n",
        "- a\n",
        "tbd ",
        "-\n",
        "\u3000",
    ),
]


@pytest.mark.bench
@pytest.mark.parametrize(
    "before", ["# Next Action\n", "# Key Decisions\n- ", "# Next Action", "# ", "<!-- rekindle:"]
)
def test_time_grows_with_the_size_of_the_relay(before):
    """Four times the text never costs many times more, whatever it repeats."""

    def cost(piece: str, size: int) -> float:
        text = before + piece * (size // len(piece)) + "x"
        begin = time.process_time()
        parsed = relay.parse(text)
        assert parsed.next_action != ""
        assert len(parsed.decisions) <= size
        return time.process_time() - begin

    for piece in HOSTILE:
        small = min(cost(piece, 2_500) for _ in range(3))
        large = min(cost(piece, 10_000) for _ in range(2))
        assert large < 10 * small + 0.05, piece
