"""The brief: a title, labelled parts, and whatever else a person wrote."""

import time
from datetime import date

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rekindle.documents import brief
from rekindle.documents.brief import (
    Brief,
    BriefLabel,
)
from rekindle.errors import DocumentError, NewerSchemaError, RekindleError
from sampling import examples

BRIEF = """\
trades — 2026-02-16

**Changed:**
- Analysis across 11 classes
- Snapshot restored

**Open loops:**
- Rebalance: 92% in one fund
- Ruling ~Feb 20

**Next:** Process the snapshot, update NAV.

**Risk:** Margin into a loud week.

**Numbers:** NAV $266,691 | MTD PnL -$3,846
"""

TITLE = "a — 2026-01-02\n"
PIECES = st.lists(
    st.sampled_from(
        [
            *(TITLE, "# b - 2026-01-03\n", "**Changed:**\n", "## Next\n", "**Risk**: x\n", "```\n"),
            *(
                "**Other:** y\r\n",
                "**Note** z\n",
                "- **Next:** no\n",
                "\n",
                "text\n",
                "x — 2026-99-99\n",
            ),
        ]
    ),
    max_size=16,
).map("".join)
TAME = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=60).filter(
    lambda text: not text.lstrip().startswith(tuple("#`~*-+0123456789"))
)


def parts(text: str) -> dict[str, str]:
    return {part.label: part.content.strip() for part in brief.parse(TITLE + text).parts}


def test_the_specified_form_is_read():
    """Name, day and five parts, beside their label or below it."""
    found = brief.parse(BRIEF.encode())
    assert (found.name, found.day) == ("trades", date(2026, 2, 16))
    assert {label: found.content(label) for label in BriefLabel} == {
        BriefLabel.CHANGED: "- Analysis across 11 classes\n- Snapshot restored",
        BriefLabel.OPEN_LOOPS: "- Rebalance: 92% in one fund\n- Ruling ~Feb 20",
        BriefLabel.NEXT: "Process the snapshot, update NAV.",
        BriefLabel.RISK: "Margin into a loud week.",
        BriefLabel.NUMBERS: "NAV $266,691 | MTD PnL -$3,846",
    }


# Titles.


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("trades — 2026-02-16", "trades"),
        ("trades – 2026-02-16", "trades"),
        ("trades - 2026-02-16", "trades"),
        ("# trades — 2026-02-16", "trades"),
        ("**trades — 2026-02-16**", "trades"),
        ("## **trades** — 2026-02-16", "trades"),
        ("my trades - here — 2026-02-16  ", "my trades - here"),
        ("\ufefftrades — 2026-02-16", "trades"),
        ("trades — 2026-02-16\r", "trades"),
    ],
)
def test_a_title_is_a_name_and_a_day(line, name):
    """Dashes of any length, heading marks and emphasis are accepted."""
    found = brief.parse(f"{line}\n\n**Next:** x\n")
    assert (found.name, found.day) == (name, date(2026, 2, 16))
    assert found.content(BriefLabel.NEXT) == "x"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "trades",
        "trades — today",
        "trades — 2026-13-45",
        "trades—2026-02-16",
        "— 2026-02-16",
        "2026-02-16",
        "**Next:** x\ntrades — 2026-02-16",
        "trades — 99999-01-01",
        "trades — 2026-02-16 (Mon)",
    ],
)
def test_a_brief_without_a_title_is_refused(text):
    """The error says how a brief opens."""
    with pytest.raises(DocumentError, match="brief: has no title line") as refused:
        brief.parse(text)
    assert "trades — 2026-02-16" in refused.value.hint


def test_what_stands_before_the_title_stays():
    """A mark, a preface and an impossible date do not hide the title below them."""
    text = "<!-- rekindle: brief 1 -->\n**Brief:**\nx — 2026-99-99\n" + TITLE + "**Next:** x\n"
    found = brief.parse(text)
    assert (found.name, found.content(BriefLabel.NEXT)) == ("a", "x")
    assert brief.render(found) == text


# Labels.


@pytest.mark.parametrize("label", BriefLabel)
@pytest.mark.parametrize(
    "form",
    [
        "**{}:** word\n",
        "**{}**: word\n",
        "**{}** word\n",
        "**{}：** word\n",
        "**{}:**\nword\n",
        "**{}**\n\nword\n",
        "## {}\nword\n",
        "# {}:\nword\n",
        "### {}: word\n",
        "## **{}**\nword\n",
        "## {} ##\nword\n",
        "## ⚠️ {}\nword\n",
        "**📌 {}:** word\n",
        "**1. {}:** word\n",
    ],
)
def test_a_label_is_found_in_bold_or_as_a_heading(label, form):
    """Its text may be on the same line or below, in any case."""
    for name in (label, label.upper(), label.lower()):
        text = form.format(name)
        assert parts(text) == {label: "word"}, text
        assert parts(text.replace("\n", "\r\n")) == {label: "word"}, text


@pytest.mark.parametrize(
    "line",
    [
        "- **Risk:** x",
        "* **Risk:** x",
        "  **Risk:** x",
        "\t**Risk:** x",
        "there is **Risk:** x",
        "> **Risk:** x",
        "```\n**Risk:** x\n```",
        "~~~\n## Risk\n~~~",
        "- ```\n**Risk:** x\n  ```",
        "*Risk:* x",
        "***Risk:*** x",
        "Risk: x",
        "## Riskless",
        "## Details",
        "**Note** that this is prose",
        "**A whole bold sentence, longer than any label would ever be.**",
        "**one** and **two**",
    ],
)
def test_emphasis_inside_a_part_opens_no_other(line):
    """Bullets, quotes, fences, prose that begins in bold and other headings are content."""
    assert parts(f"**Next:** a\n{line}\nb\n") == {"Next": f"a\n{line}\nb"}


@pytest.mark.parametrize("line", ["**Watch:** x", "**Watch**: x", "**Watch**\nx", "**Watch:**\nx"])
def test_an_unknown_label_is_a_part_of_its_own(line):
    """An unknown label survives, and its text stays separate from the other parts."""
    text = f"{TITLE}**Next:** a\n{line}\n**Risk:** b\n"
    found = brief.parse(text)
    assert [part.label for part in found.parts] == ["Next", "Watch", "Risk"]
    assert found.content(BriefLabel.NEXT) == "a"
    assert brief.render(found) == text


def test_the_first_of_two_equal_labels_counts():
    """Both survive."""
    found = brief.parse(TITLE + "**Next:** a\n**Next:** b\n")
    assert found.content(BriefLabel.NEXT) == "a"
    assert found.content(BriefLabel.RISK) is None
    assert len(found.parts) == 2


# Text and back.


@given(PIECES | st.text(max_size=100).map(TITLE.__add__))
@settings(max_examples=examples(200))
def test_a_brief_is_its_own_text(text):
    """Rendering what was parsed gives the text, and parsing that gives the brief."""
    try:
        parsed = brief.parse(text)
    except DocumentError:
        assert not text.startswith(TITLE)
        return
    assert brief.render(parsed) == text
    assert brief.parse(brief.render(parsed)) == parsed


@given(st.dates(), st.dictionaries(st.sampled_from(BriefLabel), TAME))
def test_a_composed_brief_reads_back(day, contents):
    """The text of each label reads back; empty parts are left out."""
    composed = brief.compose("trades", day, contents)
    assert brief.parse(brief.render(composed)) == composed
    assert (composed.name, composed.day) == ("trades", day)
    for label in BriefLabel:
        assert (composed.content(label) or "") == contents.get(label, "").strip()


def test_a_composed_brief_has_the_specified_form():
    """Lists below their label, single lines beside it, in the specification's order."""
    composed = brief.compose(
        "trades", date(2026, 2, 16), {BriefLabel.NEXT: "Go on.", BriefLabel.CHANGED: "- a\n- b"}
    )
    assert brief.render(composed) == (
        "<!-- rekindle: brief 1 -->\ntrades — 2026-02-16\n\n"
        "**Changed:**\n- a\n- b\n\n**Next:** Go on.\n"
    )


@given(st.binary(max_size=200))
@example(b"\xff\xfe")
@example(b"a \xe2\x80\x94 0000-00-00")
@example("a — ２０２６-01-02".encode())
def test_any_bytes_are_a_brief_or_refused(data):
    """Nothing but our own errors comes out."""
    try:
        parsed = brief.parse(data)
    except RekindleError:
        return
    assert isinstance(parsed, Brief)
    assert brief.render(parsed).encode() == data


def test_a_newer_brief_is_refused_by_its_versions():
    """The error names the document, what it has and what we know."""
    with pytest.raises(NewerSchemaError, match=r"brief: has schema 2, .* up to 1"):
        brief.parse("<!-- rekindle: brief 2 -->\n" + BRIEF)


@pytest.mark.bench
@pytest.mark.parametrize("before", ["", "a", TITLE, "**"])
def test_time_grows_with_the_size_of_the_brief(before):
    """Four times the text never costs many times more, whatever it repeats."""

    def cost(piece: str, size: int) -> float:
        text = before + piece * (size // len(piece)) + "x"
        begin = time.process_time()
        try:
            assert brief.parse(text).name
        except DocumentError:
            assert before != TITLE
        return time.process_time() - begin

    for piece in (
        " ",
        "\t",
        "*",
        "**",
        "#",
        " - ",
        "—",
        "**a:**\n",
        "**a:** ",
        "# ",
        "2026-01-02 ",
    ):
        small = min(cost(piece, 2_500) for _ in range(3))
        large = min(cost(piece, 10_000) for _ in range(2))
        assert large < 10 * small + 0.05, piece
