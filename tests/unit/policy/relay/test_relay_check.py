"""The check: what kind of relay a text is, the gravest thing first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.documents import relay as relays
from rekindle.documents.relay import RelayField
from rekindle.policy.relay.relay_check import (
    USABLE_KINDS,
    RelayKind,
    RelayReport,
    classify_relay,
    find_headline,
)
from rekindle.policy.settings.runtime_settings import HEADLINE_CHARACTERS
from rekindle.policy.text.token_estimate import estimate_tokens

CAP = 100
LONG = "Words that fill the page, one after the other. " * 40


def checked(text: str, cap: int = CAP) -> RelayReport:
    return classify_relay(relays.parse(text), cap)


EXAMPLES = {
    RelayKind.OK: "## Next Action\nShip it\n",
    RelayKind.OVER_CAP: f"## Next Action\nShip it\n\n## Notes\n{LONG}\n",
    RelayKind.SEVERAL_DIRECTIVES: "## Next Action\nShip it\n\n## Next Action (old)\nWait\n",
    RelayKind.PLACEHOLDER: "## Next Action\nTBD\n",
    RelayKind.BLANK: "## Next Action\n\n## Metrics\nnone\n",
    RelayKind.NO_DIRECTIVE: "## Metrics\n12 users\n",
    RelayKind.EMPTY: " \n\n",
}


@pytest.mark.parametrize("kind", RelayKind)
def test_each_kind_has_an_example(kind):
    """A small relay of every kind is recognised as that kind."""
    found = checked(EXAMPLES[kind])
    assert found.kind is kind
    if kind is not RelayKind.OK:
        assert found.findings[0].kind == kind
        assert found.findings[0].message


@pytest.mark.parametrize("kind", RelayKind)
def test_a_relay_is_usable_when_the_next_cycle_knows_what_to_do(kind):
    """Too long or ambiguous can be worked with; without a directive nothing can."""
    assert checked(EXAMPLES[kind]).usable is (kind in USABLE_KINDS)
    assert (kind in USABLE_KINDS) is (relays.parse(EXAMPLES[kind]).next_action is not None)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        (f"{LONG}\n", [RelayKind.NO_DIRECTIVE, RelayKind.OVER_CAP]),
        (f"## Next Action\n\n## Notes\n{LONG}\n", [RelayKind.BLANK, RelayKind.OVER_CAP]),
        (
            f"## Next Action\n-\n## Next Action\nShip it\n## Notes\n{LONG}",
            [RelayKind.PLACEHOLDER, RelayKind.SEVERAL_DIRECTIVES, RelayKind.OVER_CAP],
        ),
        (
            f"## Next Action\nShip it\n## Next Action\nWait\n## Notes\n{LONG}",
            [RelayKind.SEVERAL_DIRECTIVES, RelayKind.OVER_CAP],
        ),
    ],
)
def test_the_gravest_finding_stands_first(text, kinds):
    """Several things wrong at once are all said, in order of weight."""
    found = checked(text)
    assert found.kind is kinds[0]
    order = list(RelayKind)
    said = [RelayKind(one.kind) for one in found.findings if one.kind in order]
    assert said == kinds
    assert said == sorted(said, key=order.index, reverse=True)


def test_the_fields_that_are_missing_are_named():
    """A relay says which of the fields it has; it may lack failed approaches."""
    found = checked("## Next Action\nShip it\n## 🎯 Metrics (week 2)\n12\n")
    assert found.fields == (RelayField.METRICS, RelayField.NEXT_ACTION)
    assert {*found.fields, *found.missing} == {*RelayField} - {RelayField.FAILED_APPROACHES}
    assert found.findings[-1].kind == "missing-fields"
    assert "Open Questions" in found.findings[-1].message
    whole = relays.compose(dict.fromkeys(RelayField, "Something"))
    assert classify_relay(whole, CAP).findings == ()
    assert checked("").findings[-1].kind == RelayKind.EMPTY


def test_the_tokens_are_those_of_the_whole_text():
    """The cap is compared with the estimate of the text; exactly the cap is not over it."""
    text = EXAMPLES[RelayKind.OVER_CAP]
    tokens = estimate_tokens(text)
    assert checked(text, tokens).tokens == tokens
    assert checked(text, tokens).kind is RelayKind.OK
    assert checked(text, tokens - 1).kind is RelayKind.OVER_CAP


@pytest.mark.parametrize(
    "words", ["TBD", "todo", "- None.", "**N/A**", "---", "待定", "- 暂无。", "无", "**没有**", "…"]
)
def test_a_directive_that_says_nothing_is_a_placeholder(words):
    """In English and in Chinese, with and without marks around it."""
    found = checked(f"## Next Action\n{words}\n")
    assert found.kind is RelayKind.PLACEHOLDER
    assert not found.usable
    assert found.headline == ""


@pytest.mark.parametrize(
    "words", ["Nothing works: fix it", "无论如何先修复登录", "todo list: sort"]
)
def test_a_directive_that_begins_like_a_placeholder_is_one_to_follow(words):
    """Only a directive that consists of such a word is empty."""
    assert checked(f"## Next Action\n{words}\n").usable


@pytest.mark.parametrize(
    ("directive", "expected"),
    [
        ("Ship it", "Ship it"),
        ("\n\n---\n\n- Ship it\n- Then rest", "Ship it"),
        ("> **Ship it**", "Ship it"),
        ("### Now\nShip it", "Now"),
        ("**Cycle 4**: ship it", "Cycle 4: ship it"),
        ("- **Ship** the *thing*", "Ship the thing"),
        ("*Ship it*", "Ship it"),
        ("Keep 2 * 3 and *.py and *.md", "Keep 2 * 3 and *.py and *.md"),
        ("```bash\nmake ship\n```", "make ship"),
        ("```\n\n```\n1. Ship it", "1. Ship it"),
        ("TBD\n待定\nShip it", "Ship it"),
        ("Ship\tit\x07 now\u2028", "Ship it now"),
    ],
)
def test_the_headline_is_the_first_line_of_substance(directive, expected):
    """Blank lines, rules, placeholders and fence marks are passed over, dress is taken off."""
    assert find_headline(relays.parse(f"## Next Action\n{directive}\n")) == expected


def test_a_relay_without_a_directive_has_no_headline():
    """Nothing is made up."""
    assert find_headline(relays.parse("## Metrics\n12\n")) == ""


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_can_be_checked(text):
    """Whatever was written, it has a kind and a headline of one bounded line."""
    for written in (text, f"## Next Action\n{text}"):
        found = checked(written)
        assert found.kind in RelayKind
        assert len(found.headline) <= HEADLINE_CHARACTERS
        assert len(found.headline.splitlines()) <= 1
