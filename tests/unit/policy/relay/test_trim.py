"""The trim: what is removed, in which order, and what never is."""

import time
from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.documents import relay as relays
from rekindle.documents.relay import (
    Relay,
    RelayField,
)
from rekindle.formats import outline
from rekindle.policy.relay.trim import (
    TrimResult,
    cut_for_primer,
    is_done_item,
    render_archive,
    trim_relay,
)
from rekindle.policy.text.token_estimate import estimate_tokens

FILLER = "word " * 30


def cut(text: str, cap: int) -> TrimResult:
    return trim_relay(relays.parse(text), cap)


def kept(text: str, cap: int) -> str:
    return relays.render(cut(text, cap).relay)


def fits(text: str) -> int:
    """The cap under which this text just fits."""
    return estimate_tokens(text) + 1


RELAY = """\
<!-- rekindle: relay 1 -->
# Consensus

## Current Phase
Phase: building

## What We Did This Cycle
- did-first
- did-second

## Key Decisions Made
- decided-newer: so (2026-02-02)
- decided-older: so (2026-01-01)
- ✅ decided-ticked: so (2026-03-03)

## Failed Approaches
- failed-newer: so (2026-02-03)
- failed-older: so (2026-01-02)

## Active Projects
- [x] project-done
- [ ] project-open

## Metrics
metric-line

## Next Action
Ship it
- [x] step-done
- step-open

## Open Questions
question-line

## Notes
note-first

note-second

## Appendix
appendix-line
"""


def test_a_relay_under_its_cap_is_untouched():
    """Done lines may stay while there is room."""
    found = cut(RELAY, estimate_tokens(RELAY))
    assert relays.render(found.relay) == RELAY
    assert found.removed == ()
    assert found.fits
    assert found.tokens == found.tokens_before == estimate_tokens(RELAY)


ORDER = [
    "project-done",
    "step-done",
    "did-first",
    "did-second",
    "decided-older",
    "decided-newer",
    "decided-ticked",
    "appendix-line",
    "## Appendix",
    "note-second",
    "note-first",
    "## Notes",
    "metric-line",
    "project-open",
    "question-line",
    "failed-older",
    "failed-newer",
]
STAYS = ["rekindle: relay", "# Consensus", "## Current Phase", "Phase: building", "Ship it"]


def test_what_goes_goes_in_order_and_stops_as_soon_as_it_fits():
    """Done lines; what we did; the oldest decisions; other sections: one after the other."""
    gone: list[str] = []
    for cap in range(estimate_tokens(RELAY), 0, -1):
        text = kept(RELAY, cap)
        missing = [word for word in ORDER if word not in text]
        assert missing == ORDER[: len(missing)]
        assert len(missing) >= len(gone)
        assert all(word in text for word in STAYS)
        gone = missing
    assert gone == ORDER


@pytest.mark.parametrize("number", range(len(ORDER)))
def test_no_more_is_removed_than_necessary(number):
    """If only the first few do not fit, exactly those are removed."""
    caps = range(estimate_tokens(RELAY), 0, -1)
    goal = next(text for text in (kept(RELAY, cap) for cap in caps) if ORDER[number] not in text)
    found = cut(RELAY, fits(goal))
    assert relays.render(found.relay) == goal
    assert found.fits


def test_the_reason_and_the_heading_of_what_went_are_told():
    """The archive names the section of each removed line and the reason."""
    found = cut(RELAY, 1)
    told = {
        one.text.strip(): (one.heading, one.reason) for one in found.removed if one.text.strip()
    }
    assert told["- [x] project-done"] == ("Active Projects", "done")
    assert told["- [x] step-done"] == ("Next Action", "done")
    assert told["- did-first"] == ("What We Did This Cycle", "history")
    assert told["- decided-older: so (2026-01-01)"] == ("Key Decisions Made", "decision")
    assert told["note-first"] == ("Notes", "other")
    assert told["metric-line"] == ("Metrics", "other")


def test_a_relay_that_cannot_fit_says_so():
    """The directive is never cut to make a number."""
    found = cut(RELAY, 1)
    assert not found.fits
    assert found.tokens == estimate_tokens(relays.render(found.relay)) > 1
    assert found.relay.next_action == "Ship it\n- step-open"


@pytest.mark.parametrize(
    "text",
    [
        "",
        FILLER,
        f"## Notes\n{FILLER}\n- [x] done\n",
        f"## Next Action\nTBD\n\n## Notes\n{FILLER}\n",
        f"## Next Action\n\n## What We Did\n{FILLER}\n",
    ],
)
def test_without_a_directive_nothing_is_cut(text):
    """An unreadable relay is left as it is, and reported as too large."""
    found = cut(text, 5)
    assert relays.render(found.relay) == text
    assert found.removed == ()
    assert found.fits is (estimate_tokens(text) <= 5)


def test_all_fields_keep_their_headings_and_other_headings_go():
    """An emptied field stays; an emptied section of another name is removed."""
    text = kept(RELAY, 1)
    parsed = relays.parse(text)
    assert all(parsed.places(field) for field in RelayField)
    assert [section.title for section in parsed.outline.sections] == ["Consensus", *RelayField]


def test_a_heading_with_something_below_it_stays():
    """A section of another name keeps its heading while it contains a field."""
    text = f"## Part\n{FILLER}\n### Inner\n{FILLER}\n### Next Action\nShip it\n"
    assert kept(text, 1) == "## Part\n### Next Action\nShip it\n"


@pytest.mark.parametrize("first", ["Building\n\n", "\nBuilding\n\n", "\n\n- [x] Building\n"])
def test_the_first_words_of_the_phase_stay(first):
    """The topic of the whole relay is the last thing to be cut down, and never away."""
    text = f"## Current Phase\n{first}- {FILLER}\n\n## Next Action\nShip it\n"
    assert kept(text, 1) == f"## Current Phase\n{first}## Next Action\nShip it\n"


# Inside Next Action


def action(body: str) -> str:
    """Return the rest of a directive when everything removable is removed."""
    text = f"## Next Action\n{body}## Notes\n{FILLER}\n"
    found = cut(text, 1).relay.content(RelayField.NEXT_ACTION)
    assert found is not None
    return found


def test_inside_a_directive_only_done_lines_go():
    """Prose, open items, tables, quotes and code stay, in their order and with their bytes."""
    body = (
        "Ship it  \n\n- [x] a\n- [ ] b\n* ✅ c\n1. d ✅\n2) ~~e~~\n3. f\n\n> ✅ quoted\n"
        "| ✅ | row |\n\n✅ prose\n\n```\n- [x] code\n```\n"
    )
    assert action(body) == (
        "Ship it  \n\n- [ ] b\n3. f\n\n> ✅ quoted\n| ✅ | row |\n\n✅ prose\n\n"
        "```\n- [x] code\n```\n"
    )


@pytest.mark.parametrize(
    "item",
    [
        "- [x] a\n  - [ ] b\n",
        "- [x] a\n  more about a\n",
        "- [x] a\n\n  more about a, after a gap\n",
        "- [x] a\n\n\n  - b, after a gap\n",
        "- [x] a\nthat continues at the margin\n",
        "1. ✅ a\n   - b\n     - [ ] c\n",
        "- [x] a\n  ```\n  - [x] code\n  ```\n",
        "- [x] a\n\n  ```\n  code\n  ```\n",
        "- [x] a\n\n  ## not a heading\n  Go on\n",
        "- [x] a\n\t- b\n",
    ],
)
def test_a_done_item_with_undone_details_stays(item):
    """Otherwise its details would hang under the item above, or be alone."""
    body = f"- Ship it\n{item}"
    assert action(body) == body


def test_a_done_item_is_removed_with_its_done_details():
    """A branch that is completely done is removed completely."""
    assert action("- a\n- [x] b\n  - [x] c\n    - ✅ d\n- e\n") == "- a\n- e\n"


def test_a_done_branch_never_goes_by_half():
    """Details without their item would hang under the item above it."""
    text = f"## Next Action\n- a\n- [x] b\n  - [x] c\n  - [x] d\n- e\n## Notes\n{FILLER}\n"
    for cap in range(estimate_tokens(text), 0, -1):
        left = kept(text, cap)
        assert ("b\n" in left) == ("c\n" in left) == ("d\n" in left)


def test_a_directive_of_done_lines_alone_stays():
    """A relay that had a directive has one after trimming, even where all of it is ticked off."""
    assert action("- [x] a\n- [x] b\n") == "- [x] a\n- [x] b\n"
    assert action("\n### Tasks\n- [x] a\n") == "\n### Tasks\n- [x] a\n"
    assert action("TBD\n- [x] a\n") == "TBD\n- [x] a\n"


def test_every_directive_is_left_whole_not_only_the_first():
    """If several sections direct, only done lines are removed from any of them."""
    text = (
        f"## Next Action (Cycle 2)\nShip it\n- [x] a\n### Metrics\ninside\n## Log\n{FILLER}\n"
        f"## Next Actions\nRest\n- [x] b\n- c\n## Active Projects\n### Site\n{FILLER}\n"
        "#### Next Action\nPaint it\n"
    )
    assert kept(text, 1) == (
        "## Next Action (Cycle 2)\nShip it\n### Metrics\ninside\n"
        "## Next Actions\nRest\n- c\n## Active Projects\n### Site\n#### Next Action\nPaint it\n"
    )


def test_next_steps_count_as_a_directive():
    """A handover file that calls it Next Steps is protected the same way."""
    text = f"# State\n## Next Steps\nShip it\n- [x] a\n## Log\n{FILLER}\n"
    assert kept(text, 1) == "# State\n## Next Steps\nShip it\n"


# Elsewhere


def test_elsewhere_a_done_item_is_removed_with_its_details():
    """The details of a finished item are finished with it, unless a box there is open."""
    text = (
        "## Active Projects\n- [x] a\n  about a\n\n  more about a\n- b\n- [x] c\n  - [ ] d\n"
        "## Next Action\nShip it\n"
    )
    goal = "## Active Projects\n- b\n- [x] c\n  - [ ] d\n## Next Action\nShip it\n"
    assert kept(text, fits(goal)) == goal


def test_elsewhere_a_wrapped_done_item_does_not_go_by_half():
    """A line that continues at the margin may be another thought: both stay in this round."""
    text = "## Metrics\n- [x] a\ncontinues\n- [x] b\n## Next Action\nShip it\n"
    goal = "## Metrics\n- [x] a\ncontinues\n## Next Action\nShip it\n"
    assert kept(text, fits(goal)) == goal


def decisions_left(body: str, count: int) -> list[str]:
    """The decisions in the order in which they go, each named by its letter."""
    text = f"## Key Decisions Made\n{body}\n## Next Action\nShip it\n"
    order: list[str] = []
    for cap in range(estimate_tokens(text), 0, -1):
        left = kept(text, cap)
        order += [
            letter
            for letter in "abcdef"[:count]
            if f"{letter}:" not in left and letter not in order
        ]
    return order


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("- a: x (2026-01-01)\n- b: x (2026-01-02)\n- c: x (2026-01-03)\n", "abc"),
        ("- a: x (2026-01-03)\n- b: x (2026-01-02)\n- c: x (2026-01-01)\n", "cba"),
        ("- a: x\n- b: x\n- c: x\n", "abc"),
        ("- a: x (2026-01-02)\n- b: x\n- c: x (2026-01-01)\n- d: x\n", "dcba"),
        ("- a: x\n- b: x (2026-01-01)\n- c: x\n- d: x (2026-01-05)\n", "abcd"),
        ("- a: x (2026-01-02)\n- b: x (2026-13-45)\n- c: x (2026-01-01)\n", "cba"),
        ("- a: x (2026-01-01)\n\n  since b came later\n- c: x (2025-01-01)\n", "ca"),
        ("### 2026-01-03\n- a: x\n- b: x\n### 2026-01-01\n- c: x\n", "cba"),
        ("### 2026-01-01\n- a: x\n- b: x\n### 2026-01-03\n- c: x\n", "abc"),
    ],
)
def test_decisions_go_oldest_first(body, expected):
    """Ascending, descending and undated lists, and dates in the headings above them."""
    found = decisions_left(body, 4)
    assert [letter for letter in found if f"{letter}:" in body] == list(expected)


def test_front_matter_and_the_schema_mark_stay():
    """Text for programs is not trimmed; a preface is."""
    head = "---\ntitle: x\n# no heading\ntags:\n- [x] a\n---\n<!-- rekindle: relay 1 -->\n"
    text = f"{head}\nPreface {FILLER}\n\n## Next Action\nShip it\n"
    assert kept(text, 1) == f"{head}## Next Action\nShip it\n"


def test_an_empty_relay_is_archived_with_every_line_below_its_heading():
    """The archive's text holds each removed line whole, in order, below the heading it had."""
    found = cut(f"Preface {FILLER}\n\n{RELAY}", 1)
    text = render_archive(found.removed, "Trimmed today")
    assert text.startswith("<!-- rekindle: trimmed 1 -->\n# Trimmed today\n")
    assert "## Before the first heading\nPreface" in text
    assert "## What We Did This Cycle\n- did-first\n- did-second\n" in text
    lines = iter(outline.split_lines(text))
    assert all(one.text in lines for one in found.removed)


def test_a_last_line_without_its_end_is_archived_on_a_line_of_its_own():
    """Two removed lines never become one."""
    found = cut(f"## Next Action\nShip it\n## Appendix\n{FILLER}\n- [x] last", 1)
    assert render_archive(found.removed, "t").endswith("- [x] last\n")


@pytest.mark.parametrize(
    "line",
    [
        "- [x] a",
        "* [X] a",
        "1. [✓] a",
        "  - ✅ a",
        "12) ☑ a",
        "- ~~a~~",
        "- ~~a~~.",
        "- a ✅ ",
        "+ ✔ a\r\n",
    ],
)
def test_a_line_that_is_ticked_off_is_done(line):
    """Boxes, ticks and strikes, on any kind of list item."""
    assert is_done_item(line)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "[x] a",
        "✅ a",
        "- [ ] a",
        "- a",
        "- ~~a~~ b",
        "- a ✅ b",
        "-[x] a",
        "# ✅ a",
        "| ✅ |",
        "- ",
    ],
)
def test_a_line_that_is_not_ticked_off_is_not_done(line):
    """Only list items can be done, and only as a whole."""
    assert not is_done_item(line)


# Removing lines must not change how the rest is read


@pytest.mark.parametrize(
    "text",
    [
        # Half a comment would let a heading out, or swallow what follows.
        f"<!-- a\n\n{FILLER}\n\n## Next Action\nnot this\n\n-->\n\n## Next Action\nShip it\n",
        f"## Notes\n<!--\n{FILLER}\n\n{FILLER}\n\n-->\n{FILLER}\n## Next Action\nShip it\n",
        f"## Next Action\nShip it\n## Notes\n<pre>\n{FILLER}\n\n## Metrics\n\n</pre>\n{FILLER}\n",
        # A heading that is underlined needs the gap above it.
        f"## Notes\na\n- {FILLER}\n\nNext Action\n===========\nShip it\n",
        # A rule at the very top would begin front matter.
        f"- [x] {FILLER}\n---\n## Next Action\nShip it\n\n---\n\n## Notes\nx\n",
    ],
)
def test_what_is_left_is_read_as_it_was(text):
    """No heading appears or disappears because of what was removed above it."""
    for cap in range(estimate_tokens(text), 0, -7):
        assert sound(text, cap).relay.next_action == relays.parse(text).next_action
    assert len(kept(text, 1)) < len(text)


def is_subsequence(some: Iterable[str], every: Iterable[str]) -> bool:
    rest = iter(every)
    return all(line in rest for line in some)


def directives(relay: Relay) -> list[list[str]]:
    """Return the lines of every Next Action, in their order."""
    return [
        outline.split_lines(relay.outline.content(place))
        for place in sorted(relay.places(RelayField.NEXT_ACTION))
    ]


def assert_only_done_lines_went(was: list[str], now: list[str]) -> None:
    left = list(reversed(now))
    for line in was:
        if left and line == left[-1]:
            left.pop()
        else:
            assert is_done_item(line)
    # The gap above an underlined heading stays, even where the section before it went.
    assert not "".join(left).strip()


def sound(text: str, cap: int) -> TrimResult:
    """Hold a trim against all that is promised of one."""
    relay = relays.parse(text)
    found = trim_relay(relay, cap)
    after = relays.render(found.relay)
    before_lines, after_lines = outline.split_lines(text), outline.split_lines(after)
    assert found.tokens_before == estimate_tokens(text)
    assert found.tokens == estimate_tokens(after) <= found.tokens_before
    assert found.fits is (found.tokens <= cap)
    if found.tokens_before <= cap or relay.next_action is None:
        assert after == text
    gone = [one.text for one in found.removed]
    assert Counter(before_lines) == Counter(after_lines) + Counter(gone)
    assert is_subsequence(after_lines, before_lines)
    assert {field for field in RelayField if relay.places(field)} == {
        field for field in RelayField if found.relay.places(field)
    }
    for was, now in zip(directives(relay), directives(found.relay), strict=True):
        assert_only_done_lines_went(was, now)
    if relay.next_action is not None:
        assert found.relay.next_action is not None
    assert relays.parse(after) == found.relay
    again = trim_relay(found.relay, cap)
    assert relays.render(again.relay) == after
    archived = Counter(outline.split_lines(render_archive(found.removed, "t")))
    assert (
        not Counter(line if line.endswith(("\n", "\r")) else f"{line}\n" for line in gone)
        - archived
    )
    return found


@st.composite
def pieces(draw) -> str:
    """A few lines of markdown as agents write it."""
    word = draw(
        st.sampled_from(["alpha", "beta gamma", "第三", "delta " * 12, "(2026-01-05)", "TBD"])
    )
    tick = draw(st.sampled_from(["", "", "[ ] ", "[x] ", "✅ "]))
    mark = draw(st.sampled_from(["-", "*", "1.", "12)"]))
    indent = " " * draw(st.sampled_from([0, 0, 0, 1, 2, 3, 4]))
    return draw(
        st.sampled_from(
            [
                f"{indent}{mark} {tick}{word}\n",
                f"{indent}{mark} {tick}{word}\n",
                f"{mark} {tick}{word}\n   {mark} {tick}nested\n      - [x] deep\n",
                f"{mark} [x] {word}\n\n  {word}\n",
                f"{mark} [x] {word}\n\n  ## {word}\n",
                f"- ~~{word}~~\n",
                f"{indent}{word}\n",
                "\n",
                "\n\n",
                "---\n",
                "===\n",
                f"```\n## Next Action\n- [x] {word}\n\n```\n",
                f"~~~ text\n# {word}\n```\n~~~\n",
                f"{mark} {word}\n  ```\n  - [x] fake\n  ```\n",
                "    ```\n",
                f"<!-- {word}\n\n## Metrics\n- [x] {word}\n-->\n",
                f"<div>\n## {word}\n\n",
                f"> ✅ {word}\n",
                f"| ✅ | {word} |\n",
            ]
        )
    )


TITLES = [
    *RelayField,
    *RelayField,
    "Next Action (Cycle 3)",
    "✅ Next Actions",
    "Notes",
    "Log",
    "2026-01-03",
    "Next Steps",
]


@st.composite
def sections(draw, titles: list[str] = TITLES) -> str:
    title = draw(st.sampled_from(titles))
    body = "".join(draw(st.lists(pieces(), max_size=7)))
    if draw(st.integers(0, 9)) == 0:
        return f"{title}\n=====\n{body}"
    return f"{'#' * draw(st.integers(1, 4))} {title}\n{body}"


@st.composite
def documents(draw) -> str:
    head = draw(
        st.sampled_from(
            [
                "",
                "",
                "---\ntitle: x\n---\n",
                "<!-- rekindle: relay 1 -->\n",
                "Preface\n\n",
                "---\n",
                "- [x] a\n",
            ]
        )
    )
    before = draw(st.lists(sections(), max_size=4))
    directive = "## Next Action\nShip it\n" if draw(st.integers(0, 5)) else ""
    after = draw(st.lists(sections(), max_size=4))
    text = head + "".join([*before, directive, *after])
    ends = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    text = text.replace("\n", ends)
    return text.rstrip("\r\n") if draw(st.booleans()) else text


@given(documents(), st.integers(1, 300))
def test_every_promise_holds_for_any_relay(text, cap):
    """Lines are kept or removed whole, in order; directives lose done lines only; twice is once."""
    sound(text, cap)


@given(documents())
def test_every_promise_holds_when_everything_must_go(text):
    """The same for a cap that no relay can meet."""
    sound(text, 1)


@given(st.text(st.characters(exclude_categories=()) | st.sampled_from("\n\n#-`<>[]x ✅")))
def test_any_text_can_be_trimmed(text):
    """Whatever was written, trimming it keeps its promises."""
    sound(f"{text}\n## Next Action\nShip it\n{text}", 1)


# The relay in a primer if it stays over its cap


@given(documents(), st.integers(200, 400), st.text(max_size=40))
def test_the_head_of_a_relay_fits_its_cap(text, cap, phase):
    """The phase in a line and the beginning of the directive, under any cap that can be set."""
    relay = relays.parse(f"## Current Phase\n{phase}\n{text * 4}")
    found = cut_for_primer(relay, cap, "memories/consensus.md")
    assert estimate_tokens(relays.render(found)) <= cap
    if estimate_tokens(relays.render(relay)) <= cap:
        assert found == relay
        return
    directive = found.next_action
    assert directive is not None
    assert "memories/consensus.md" in directive


def test_the_head_of_a_relay_holds_the_directive_from_its_beginning():
    """Lines are kept whole and in order, up to the pointer to the rest."""
    steps = "".join(f"{number}. Step number {number}\n" for number in range(1, 200))
    found = cut_for_primer(relays.parse(f"## Next Action\n{steps}## Notes\nx\n"), 200, "the-file")
    *lines, gap, pointer = (found.next_action or "").splitlines()
    assert len(lines) > 5
    assert steps.startswith("\n".join(lines))
    assert gap == ""
    assert "the-file" in pointer
    assert not found.places(RelayField.CURRENT_PHASE)


def test_the_head_of_an_endless_line_is_its_beginning():
    """A directive without line ends is cut inside the line, not left out."""
    found = cut_for_primer(relays.parse("## Next Action\n" + "word " * 5_000), 200, "the-file")
    assert (found.next_action or "").startswith("word word")
    assert estimate_tokens(relays.render(found)) <= 200


@pytest.mark.bench
def test_the_time_of_a_trim_grows_with_the_size_of_the_relay():
    """Four times the relay takes about four times as long, whatever it is made of."""

    def relay(size: int, seed: str) -> Relay:
        cycles = (
            f"## Cycle {seed}{number}\nIt did {seed} {number}\n- [x] done {seed}{number}\n"
            f"  - [ ] not {number}\n### Key Decisions\n- so {seed}{number} (2026-01-01)\n"
            f"### Next Action\n- [x] x {seed}{number}\n- y {number}\n"
            for number in range(size)
        )
        return relays.parse(f"## Next Action\nShip it\n{''.join(cycles)}")

    def seconds(size: int, seed: str) -> float:
        made = relay(size, seed)
        begun = time.perf_counter()
        trim_relay(made, 100)
        return time.perf_counter() - begun

    seconds(100, "warm")
    small = min(seconds(1_000, f"s{turn}") for turn in range(3))
    large = min(seconds(4_000, f"l{turn}") for turn in range(3))
    print(f"1,000 cycles {small:.3f} s, 4,000 cycles {large:.3f} s: {large / small:.1f} times")
    assert large / small < 8


@pytest.mark.parametrize(
    "details",
    ["    ```\ncode\n    ```\n", "  - [x] b\n    ```\ncode\n    ```\n"],
    ids=["of the item", "of an item below it"],
)
def test_a_done_item_goes_with_code_that_is_not_indented(details):
    text = f"## Active Projects\n- [x] a\n{details}- c\n## Next Action\nShip it\n"
    goal = "## Active Projects\n- c\n## Next Action\nShip it\n"
    assert kept(text, fits(goal)) == goal
