"""The outline: sections that join to the text, and the headings that a general parser finds."""

import json
import lzma
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from rekindle.formats import outline
from rekindle.formats.outline import Outline
from sampling import examples

RELAYS = Path(__file__).parents[3] / ".." / "shared" / "relay-corpus" / "relays"

ANY_TEXT = st.text(st.characters(), max_size=300)
LINE_PIECES = [
    *(
        "# One",
        "## Two ##",
        "### Three #",
        "#",
        "#nospace",
        "####### seven",
        "    # code",
        "\t# tab",
    ),
    *("text", "more text", "", "", "", "---", "***", "===", "| a | b |", "|---|---|"),
    *("- item", "- [ ] open", "  continued", "  - nested", "* star", "1. one", "10) ten", "+ plus"),
    *("    ## in item", "> quote", "> # quoted", "```", "```py", "~~~", "````", "``` a`b"),
    *("<!-- comment", "-->", "<!-- # x -->", "<div>", "</div>", "<details>", "<pre>", "text ```"),
    *(
        "<?xml",
        "?>",
        "<!DOCTYPE x",
        "<![CDATA[",
        "]]>",
        "\ufeff# bom",
        "# a # b",
        "#\ttab",
        "- ```",
    ),
]
MARKDOWN = st.builds(
    lambda front, lines, end: end.join([*front, *lines]) + end,
    st.sampled_from([[], [], ["---", "title: x", "# no heading", "---"]]),
    st.lists(st.sampled_from(LINE_PIECES), max_size=30),
    st.sampled_from(["\n", "\n", "\r\n", "\r"]),
)

BLOCK_PIECES = [
    "# One\n",
    "## Two ##\n",
    "   ### Indented\n",
    "#### \n",
    "#hashtag\n",
    "A paragraph\nof two lines\n",
    "A paragraph with # in it\n# and a heading below it\n",
    "```\n# in a fence\n- ```\n    ```\ntext ```\n```\n",
    "~~~sh\n# in a fence\n```\n~~~~\n",
    "`` not a fence\n",
    "- item\n  # in the item\n- item\n\n  ## in the item\n",
    "1. one\n   ```\n   # in a fence in an item\n   ```\n2. two\n",
    "- outer\n  - inner\n    # in the inner\nlazy\n",
    "> quote\n> # quoted\n",
    "    # code\n",
    "\t# code\n",
    "<!-- a\n# comment\n-->\n",
    "<!-- one line --> # text\n",
    "<details>\n<summary>x</summary>\n# in html\n\n",
    "<script>\n# in a script\n\n# still\n</script>\n",
    "<?php\n# in an instruction\n\n?>\n",
    "<![CDATA[\n# in data\n\n]]>\n",
    "<!DOCTYPE\n# in a declaration\n>\n",
    "<option\n# in html\n\n",
    "***\n",
    "| a | b |\n|---|---|\n| # | 1 |\n",
]
BLOCKS = st.lists(st.sampled_from(BLOCK_PIECES), max_size=12).map("\n".join)


def general_parser() -> Callable[[str], list[tuple[int, int]]]:
    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])

    def headings(text: str) -> list[tuple[int, int]]:
        return [
            (token.map[0], int(token.tag[1]))
            for token in parser.parse(text)
            if token.type == "heading_open" and token.level == 0 and token.markup[0] == "#"
        ]

    return headings


by_general_parser = general_parser()


def by_outline(text: str) -> list[tuple[int, int]]:
    """The line and the level of each ATX heading."""
    parsed = outline.parse(text)
    found = []
    line = len(outline.split_lines(parsed.head))
    for section in parsed.sections:
        if len(outline.split_lines(section.heading)) == 1:
            found.append((line, section.level))
        line += len(outline.split_lines(section.text))
    return found


def titles(text: str) -> list[tuple[int, str]]:
    return [(section.level, section.title) for section in outline.parse(text).sections]


@pytest.fixture(scope="module")
def corpus() -> list[str]:
    """A seeded sample of real relays, none over 60 KB."""
    sources = sorted(RELAYS.glob("*.jsonl.xz"))
    if not sources:
        reason = "the corpus of real relays is not beside this checkout"
        print(reason)
        pytest.skip(reason)
    chosen = random.Random(7)
    found = []
    for source in sources:
        with lzma.open(source, "rt", encoding="utf-8") as revisions:
            texts = [json.loads(line)["text"] for line in revisions]
        small = [text for text in texts if len(text.encode()) < 60_000]
        found += chosen.sample(small, min(6, len(small)))
    return found


# The text stays.


@given(ANY_TEXT | MARKDOWN)
@example("\r\r\n\n\r")
@example("a\x0b# b\u2028# c\x85# d\x1c\ud800")
@settings(max_examples=examples(300))
def test_any_text_is_the_sum_of_its_parts(text):
    """Lines, blocks and sections join to exactly the text they came from."""
    assert "".join(outline.split_lines(text)) == text
    assert "".join(outline.split_blocks(text)) == text
    assert "".join(line for line, _ in outline.mark_prose(text)) == text
    assert outline.parse(text).text == text


@given(MARKDOWN)
def test_an_outline_is_what_its_text_parses_to(text):
    """Parsing an outline's text gives the same outline again."""
    parsed = outline.parse(text)
    assert outline.parse(parsed.text) == parsed


@given(ANY_TEXT)
def test_lines_end_at_cr_lf_and_both_together(text):
    """No other character ends a line, whatever Unicode says about it."""
    for line in outline.split_lines(text):
        bare = line.removesuffix("\n").removesuffix("\r")
        assert line
        assert "\n" not in bare
        assert "\r" not in bare


@given(MARKDOWN, st.data())
def test_replacing_content_keeps_every_other_byte(text, data):
    """The text before and after the replacement is unchanged."""
    parsed = outline.parse(text)
    if not parsed.sections:
        assert parsed.head == text
        return
    index = data.draw(st.integers(0, len(parsed.sections) - 1))
    extent = parsed.extent(index)
    before = parsed.head + "".join(section.text for section in parsed.sections[:index])
    after = "".join(section.text for section in parsed.sections[extent.stop :])
    changed = parsed.replace_content(index, "new text\n").text
    assert changed.startswith(before + parsed.sections[index].heading)
    assert changed.endswith("new text\n" + after)


def test_replaced_content_never_runs_into_a_heading():
    """A line end is added where the heading or the new text has none."""
    assert outline.parse("# A").replace_content(0, "x").text == "# A\nx"
    assert outline.parse("# A\n# B").replace_content(0, "x").text == "# A\nx\n# B"
    assert outline.parse("# A\nold\n# B\n").replace_content(0, "").text == "# A\n# B\n"


def test_replaced_content_is_seen_as_it_is_written():
    """Headings inside new text are sections of the new outline."""
    changed = outline.parse("# A\n").replace_content(0, "## B\nx\n")
    assert [section.title for section in changed.sections] == ["A", "B"]


# Headings.


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("# A", "A"),
        ("#\tA", "A"),
        ("# A #", "A"),
        ("# A ###  ", "A"),
        ("# A#", "A#"),
        ("# A # B", "A # B"),
        ("# A \\#", "A \\#"),
        ("#", ""),
        ("# ", ""),
        ("# #", ""),
        ("# \t A \t ", "A"),
        ("   # A", "A"),
        ("\ufeff# A", "A"),
    ],
)
def test_a_heading_gives_its_title_without_marks(line, title):
    """Hashes, spaces and a closing row of hashes are no part of the title."""
    assert titles(f"{line}\r\nbody") == [(1, title)]


@pytest.mark.parametrize(
    "text",
    [
        "#A",
        "####### A",
        "    # A",
        "\t# A",
        "\\# A",
        "> # A",
        "- # A",
        "- a\n  # A",
        "- a\n\n  # A",
        "10. a\n    # A",
        "```\n# A\n```",
        "```\n# A",
        "~~~\n# A\n```\n# B",
        "````\n```\n# A\n````",
        "```\n- ```\n# A",
        "```\ntext ```\n# A",
        "```\n    ```\n# A",
        "```\n``` py\n# A",
        "<!-- \n# A\n-->",
        "<!--\n\n# A",
        "<pre>\n\n# A\n</pre>",
        "<div>\n# A",
        "<?php\n\n# A",
        "<![CDATA[\n\n# A",
        "<!DOCTYPE\n# A",
        "---\n# A\n---\n",
        "a\n---",
        "a\nb\n===",
        "- a\n===",
        "===",
    ],
)
def test_hidden_text_is_not_a_heading(text):
    """Code, quotes, list items, comments, front matter and rules contain no headings."""
    assert titles(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "a\n# A",
        "- a\n# A",
        "- a\n\n# A",
        "> a\n# A",
        "```\n```\n# A",
        "```\n   ````  \n# A",
        "``` a`b\n# A",
        "<!-- x -->\n# A",
        "<!-- x\n-->\n# A",
        "<div>\n\n# A",
        "<b>bold</b> text\n# A",
        "***\n# A",
        "---\n# A",
        "---\nx: 1\n---\n# A",
        "- # in the item\ntext\n  # A",
        "- \ntext\n  # A",
        "A\n===",
        "A\n=",
    ],
)
def test_what_is_plain_is_a_heading(text):
    """The end of a list, a quote, a fence or a comment shows the headings after it."""
    assert titles(text) == [(1, "A")]


def test_a_rule_below_a_paragraph_makes_no_title_of_it():
    """A row of dashes parts sections, here as where people write it."""
    assert titles("## Next Action\nShip it\n---\n## Open Questions\n") == [
        (2, "Next Action"),
        (2, "Open Questions"),
    ]


def test_a_section_runs_to_the_next_heading_of_its_level_or_above():
    """Deeper headings are content; the extent of a section ends at its equals."""
    parsed = outline.parse("## A\n1\n#### B\n2\n### C\n3\n## D\n4\n# E\n")
    assert parsed.content(0) == "1\n#### B\n2\n### C\n3\n"
    assert list(parsed.extent(1)) == [1]
    assert list(parsed.extent(3)) == [3]
    assert parsed.content(4) == ""


def test_text_without_headings_is_all_head():
    """An outline of plain text has no sections."""
    assert outline.parse("a\n\nb") == Outline("a\n\nb", ())
    assert outline.parse("") == Outline("", ())


@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("Next Action", "next action"),
        ("**Next Action:**", "next action:"),
        ("_Next Action_", "next action"),
        ("🚀 Next\u00a0 Action", "next action"),
        ("7️⃣ Next Action", "next action"),
        ("7. Next Action", "next action"),
        ("3) `Next` Action", "next action"),
        ("What’s Next", "what's next"),
        ("下一步", "下一步"),
        ("2026 plans", "2026 plans"),
        ("", ""),
    ],
)
def test_the_words_of_a_title_stand_without_their_dress(title, words):
    """Emoji, numbers and emphasis are not words."""
    assert outline.normalize_title(title) == words


# Blocks.


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("a\nb\n\nc\n", ["a\nb\n\n", "c\n"]),
        ("- a\n- b\n", ["- a\n", "- b\n"]),
        (
            "- a\n  more\n  - deep\n\n  still\n- b\n",
            ["- a\n  more\n  - deep\n\n  still\n", "- b\n"],
        ),
        ("a\n- b\n", ["a\n", "- b\n"]),
        ("```\n- a\n\nb\n```\nc\n", ["```\n- a\n\nb\n```\nc\n"]),
        ("- ```\n  x\n  ```\n- b\n", ["- ```\n  x\n  ```\n", "- b\n"]),
        (
            "1. a\n    ```\nx\n\n- y\n    ```\n2. b\n",
            ["1. a\n    ```\nx\n\n- y\n    ```\n", "2. b\n"],
        ),
        ("- a\n### B\n- c\n", ["- a\n", "### B\n", "- c\n"]),
        ("- a\n---\n- b\n", ["- a\n", "---\n", "- b\n"]),
        ("- - -\n- a\n", ["- - -\n", "- a\n"]),
        ("\n\na\n", ["\n\n", "a\n"]),
        ("", []),
    ],
)
def test_blocks_are_paragraphs_items_and_fences(text, blocks):
    """An item holds what hangs below it; a heading, a rule and a fence begin a block."""
    assert outline.split_blocks(text) == blocks


def test_prose_is_told_from_the_inside_of_a_fence():
    """A fence's own lines are no prose, at any indent and behind a list mark."""
    text = "a\n```\nb\n```\nc\n- ~~~\n  d\n  ~~~\n- e\n"
    prose = [line for line, is_prose in outline.mark_prose(text) if is_prose]
    assert prose == ["a\n", "c\n", "- e\n"]


# Against a general parser.


@given(BLOCKS)
@settings(max_examples=examples(200))
def test_generated_markdown_has_the_headings_that_a_general_parser_finds(text):
    """The two agree on line and level of every heading at the top level."""
    assert by_outline(text) == by_general_parser(text)


def test_lines_in_any_order_have_nearly_the_headings_that_a_general_parser_finds():
    """Only indented headings after list items that hold no text are read another way."""
    chosen = random.Random(11)
    pieces = [line for line in LINE_PIECES if not line.startswith(("\ufeff", "===", "---"))]
    pieces += ["- ", "  # indented", "   ## indented"]
    texts = ["\n".join(chosen.choices(pieces, k=8)) for _ in range(1_500)]
    agreed = sum(by_outline(text) == by_general_parser(text) for text in texts)
    print(f"agreement on lines in any order: {agreed / len(texts):.4f}")
    assert agreed / len(texts) >= 0.995


@pytest.mark.heavy
def test_real_relays_have_the_headings_that_a_general_parser_finds(corpus):
    """On real relays the two agree in every single one."""
    agreed = sum(by_outline(text) == by_general_parser(text) for text in corpus)
    print(f"agreement on {len(corpus)} real relays: {agreed / len(corpus):.4f}")
    assert agreed == len(corpus)


@pytest.mark.bench
def test_an_outline_costs_a_fraction_of_a_general_parse(corpus):
    """Finding sections is at least five times as fast as parsing everything."""

    def cost(parse: Callable[[str], object]) -> float:
        begin = time.process_time()
        for text in corpus[::6]:
            parse(text)
        return time.process_time() - begin

    rounds = [(cost(outline.parse), cost(by_general_parser)) for _ in range(4)]
    ours, theirs = (min(times) for times in zip(*rounds, strict=True))
    print(f"a general parse costs {theirs / ours:.1f} times as much")
    assert theirs >= 5 * ours


# Hostile text.

HOSTILE = [
    *("#", "`", "*", " ", "\t", "- ", "<!--", "=", "_", "~", "> ", "1. ", "\n", "\r", "<", "|"),
    *(
        "# \n",
        "- \n",
        "```\n",
        "<div>\n",
        "-\t",
        "a\n=\n",
        "[](",
        "**a** ",
        "—",
        "---\n",
        "###### ",
    ),
]


@pytest.mark.bench
@pytest.mark.parametrize("before", ["", "# a", "# ", "- ", "```"])
def test_time_grows_with_the_size_of_the_text(before):
    """Four times the text never costs many times more, whatever it repeats."""

    def cost(piece: str, size: int) -> float:
        text = before + piece * (size // len(piece)) + "x"
        begin = time.process_time()
        outline.parse(text)
        outline.split_blocks(text)
        list(outline.mark_prose(text))
        return time.process_time() - begin

    for piece in HOSTILE:
        small = min(cost(piece, 4_000) for _ in range(3))
        large = min(cost(piece, 16_000) for _ in range(2))
        assert large < 10 * small + 0.05, piece


def test_a_heading_is_not_the_text_of_an_underlined_heading():
    """Not even on the first line; a paragraph right below it can be."""
    assert titles("# One\n===\n") == [(1, "One")]
    assert titles("# One\nTwo\n===\n") == [(1, "One"), (1, "Two")]


SHORT_LINES = [
    *("text", "", "# One", "   ## Two", "    # code", "- item", "-     code", "10. ten", "  # in"),
    *("   # in", "> quote", "```", "~~~~", "<!-- x", "--> y", "<div>", "<pre>", "***", "\tx"),
    *("lazy `", "2)\tx"),
]


@pytest.mark.parametrize("first", SHORT_LINES)
def test_three_lines_in_any_order_have_the_headings_that_a_general_parser_finds(first):
    """Each construct after, before and inside each other one."""
    for second in SHORT_LINES:
        for third in SHORT_LINES:
            text = f"{first}\n{second}\n{third}\n# End"
            assert by_outline(text) == by_general_parser(text), text


@pytest.mark.parametrize("first", BLOCK_PIECES)
def test_two_blocks_have_the_headings_that_a_general_parser_finds(first):
    """With and without an empty line between them."""
    for second in BLOCK_PIECES:
        for between in ("", "\n"):
            text = f"{first}{between}{second}{between}# End\n"
            assert by_outline(text) == by_general_parser(text), text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One\n===\n", [(1, "One")]),
        ("a\n\nOne\n=\nb\n", [(1, "One")]),
        ("One\ntwo\n===\n", []),
        ("===\n", []),
        ("\n===\n", []),
        ("- One\n===\n", []),
        ("- One\n\nTwo\n===\n", [(1, "Two")]),
        ("# One\n===\n", [(1, "One")]),
        ("---\na: 1\n---\n# One\n", [(1, "One")]),
        ("---\n# a\n...\n# One\n", [(1, "One")]),
        ("---\n# One\n", [(1, "One")]),
        ("\ufeff---\n# a\n---\n# One\n", [(1, "One")]),
        ("\ufeff# One\n", [(1, "One")]),
        ("a\n\ufeff# One\n", []),
        ("# One ##\n", [(1, "One")]),
        ("# One##\n", [(1, "One##")]),
        ("# ##\n", [(1, "")]),
        ("#\n###### Six\n", [(1, ""), (6, "Six")]),
        ("<!-- a --> b\n# One\n", [(1, "One")]),
        ("<!-->\n# One\n", [(1, "One")]),
        ("<SCRIPT>\n# a\n</Script>\n# One\n", [(1, "One")]),
    ],
)
def test_the_headings_of_a_text(text, expected):
    """Underlines, front matter, byte order marks and closing signs."""
    assert titles(text) == expected


@pytest.mark.parametrize(
    "blocks",
    [
        ["a\nb\n\n", "c\n"],
        ["\n\n", "a\n"],
        ["- a\n  b\n", "- c\n\n  d\n\n", "e\n"],
        ["- a\n", "- b\n\n\n", "c\n"],
        ["- a\nlazy\n"],
        ["1. a\n   - b\n   - c\n", "2. d\n"],
        ["a\n", "# b\n", "- c\n"],
        ["a\n", "```\nb\n\n# c\n```\n\n", "d\n"],
        ["- ```\n  a\n\n- b\n  ```\n", "- c\n"],
        ["~~~\n```\n~~~~\n"],
        ["a\n", "***\n", "- b\n", "***\nc\n"],
        ["- a\n\n", "b\n\n", "  c\n"],
    ],
)
def test_the_blocks_of_a_text(blocks):
    """Joined, they give the text."""
    assert outline.split_blocks("".join(blocks)) == blocks


@pytest.mark.parametrize(
    ("text", "prose"),
    [
        ("```\na\n```\nb\n", "...b"),
        ("````\n```\na\n````\nb\n", "....b"),
        ("~~~\n```\n~~~\nb\n", "...b"),
        ("- ```\n  a\n  ```\nb\n", "...b"),
        ("```\na\n", ".."),
        ("a\n``` x`y\nb\n", "abb"),
        ("    ```\na\n", ".."),
    ],
)
def test_which_lines_are_prose(text, prose):
    """All but those of a fence, which ends with at least as many of the same signs."""
    marks = [is_prose for _, is_prose in outline.mark_prose(text)]
    assert marks == [mark != "." for mark in prose]


def test_the_extent_of_a_section():
    """Up to the next heading of its level or above."""
    parsed = outline.parse("a\n# A\nb\n## B\nc\n### C\n## D\nd\n# E\n")
    assert [parsed.extent(index) for index in range(5)] == [
        *(range(4), range(1, 3), range(2, 3), range(3, 4), range(4, 5)),
    ]
    assert parsed.content(0) == "b\n## B\nc\n### C\n## D\nd\n"
    assert parsed.content(1) == "c\n### C\n"
    assert parsed.replace_content(1, "x").text == "a\n# A\nb\n## B\nx\n## D\nd\n# E\n"
    assert parsed.replace_content(4, "x").text.endswith("# E\nx")
    assert outline.parse("# A").replace_content(0, "x").text == "# A\nx"
    assert outline.parse("# A").replace_content(0, "").text == "# A"
