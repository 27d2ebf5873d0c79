"""The primer: the order of its parts, the order in which they go, and what always stays."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.documents import primer, relay
from rekindle.documents.primer import (
    SOURCE_OF_TRUTH,
    LostSession,
    Primer,
)
from rekindle.thresholds.texts import PHASE_CHARACTERS

RELAY = """\
## Current Phase
Building the parser

## What We Did This Cycle
- history-line

## Key Decisions Made
- decision-line: a reason that is quite long, so that leaving it out is worth it (2026-04-09)
- another-line: a reason that is quite long, so that leaving it out is worth it (2026-04-10)

## Failed Approaches
- failed-line

## Next Action
directive-line
### with a part below
- step-line

## Open Questions
- question-line
"""

FULL = Primer(
    recovery=LostSession("task-line", 2),
    stall="stall-line",
    relay=relay.parse(RELAY),
    relay_path="memories/consensus.md",
    checkpoint="checkpoint-line",
    brief="brief-line",
    ledger="- loop-line",
)
MUST_STAY = ("task-line", "stall-line", "directive-line", "step-line", "checkpoint-line")
IN_CUT_ORDER = ("brief-line", "loop-line", "decision-line", "history-line", "failed-line")


def test_the_recovery_notice_is_word_for_word():
    """Tools and people look for these lines."""
    assert primer.render_recovery(LostSession("Fix the parser", 3)) == (
        "=== RECOVERY DETECTED ===\n"
        "You were interrupted mid-task. Last known state:\n"
        "  Task: Fix the parser\n"
        "  Open loops: 3\n"
        "Review your brief below and continue where you left off.\n"
        "==========================="
    )


@given(st.text(max_size=100))
def test_a_task_cannot_forge_a_line_of_the_notice(task):
    """Whatever the task says, the notice has six lines."""
    notice = primer.render_recovery(LostSession(task, 0))
    assert len(notice.splitlines()) == 6
    assert notice.encode()


def test_the_parts_are_in_the_order_in_which_a_reader_needs_them():
    """The order is: what happened, what to do, what else is known, and what to trust."""
    text = primer.render(FULL)
    parts = [
        *("RECOVERY DETECTED", "stall-line", "Building", "directive-line", "checkpoint-line"),
        *("brief-line", "Open loops:\n- loop-line", SOURCE_OF_TRUTH),
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert text.endswith(SOURCE_OF_TRUTH + "\n")


def test_the_relay_is_introduced():
    """A reader who sees only headings does not know that they are the task."""
    text = primer.render(Primer(relay=relay.parse(RELAY)))
    first, rest = text.split("\n\n", 1)
    assert first == (
        "This is the relay that the last cycle left for this one. Its Next Action is the task now."
    )
    assert rest.strip() == RELAY.strip()
    assert primer.is_primer(text)
    bare = primer.render(Primer(relay=relay.parse("# Notes\nx\n")))
    assert bare.startswith(f"{primer.INTRODUCTION}\n\n# Notes")


def test_without_a_limit_everything_stays():
    """The relay is included unchanged."""
    text = primer.render(FULL, limit=None)
    assert RELAY.strip() in text
    assert text == primer.render(FULL, limit=len(text))


def test_nothing_known_is_nothing_said():
    """An empty primer is empty, and the hierarchy is named only if there are two sources."""
    assert primer.render(Primer()) == ""
    assert primer.render(Primer(brief=" \n", ledger="\n")) == ""
    assert primer.render(Primer(checkpoint="x")) == f"{primer.CONTINUATION}x\n"
    assert primer.render(Primer(brief="x")) == f"x\n\n{SOURCE_OF_TRUTH}\n"


def test_parts_go_in_their_order():
    """Brief, ledger, decisions, the rest of the relay, failed approaches: one after the other."""
    gone_at = {}
    for limit in range(len(primer.render(FULL)), -1, -1):
        text = primer.render(FULL, limit=limit)
        for part in IN_CUT_ORDER:
            if part not in text:
                gone_at.setdefault(part, limit)
        assert all(part in text for part in MUST_STAY), limit
    assert sorted(gone_at, key=lambda part: -gone_at[part]) == list(IN_CUT_ORDER)
    assert len(set(gone_at.values())) == len(IN_CUT_ORDER)


def test_a_limit_is_kept_wherever_what_must_stay_fits():
    """Above the smallest primer every limit holds; below it the smallest comes."""
    smallest = len(primer.render(FULL, limit=0))
    for limit in range(len(primer.render(FULL)) + 10):
        size = len(primer.render(FULL, limit=limit))
        assert size <= max(limit, smallest), limit


def test_a_shortened_relay_says_where_the_whole_one_is():
    """If decisions or more are left out, the path is given."""
    for limit in (600, 500, 0):
        text = primer.render(FULL, limit=limit)
        assert "the whole relay: memories/consensus.md)" in text
        assert "Building the parser" in text
    assert "whole relay" not in primer.render(FULL)


def test_a_directive_below_the_decisions_stays():
    """Leaving the decisions out must not take the directive with them."""
    upside_down = (
        "# Key Decisions\n- decision-line\n" + "x\n" * 100 + "## Next Action\ndirective-line\n"
    )
    value = Primer(relay=relay.parse(upside_down), relay_path="there")
    for limit in (0, 50, 150, 250):
        assert "directive-line" in primer.render(value, limit=limit)


def test_a_relay_is_not_made_longer_by_shortening_it():
    """A relay that has nothing to leave out is kept as it is."""
    text = "## Next Action\ngo\n## Key Decisions\n- a\n"
    value = Primer(
        relay=relay.parse(text), relay_path="a/long/path/to/the/relay.md", checkpoint="x" * 99
    )
    rest = f"{primer.CONTINUATION}{'x' * 99}"
    relays = f"{primer.INTRODUCTION}{primer.TASK_OF_RELAY}\n\n{text.strip()}"
    assert primer.render(value, limit=10) == f"{relays}\n\n{rest}\n"


TEXTS = st.sampled_from(["", "one line", "word " * 50])


@given(
    st.builds(
        Primer,
        recovery=st.none() | st.builds(LostSession, task=TEXTS, open_loops=st.integers(0, 9)),
        stall=TEXTS,
        relay=st.none()
        | st.lists(st.sampled_from([*RELAY.splitlines(keepends=True), "# x\n", "```\n"]))
        .map("".join)
        .map(relay.parse),
        relay_path=st.just("there"),
        checkpoint=TEXTS,
        brief=TEXTS,
        ledger=TEXTS,
    ),
    st.integers(0, 1500),
)
def test_what_must_stay_stays_for_any_primer(value, limit):
    """Notices, the directive and the checkpoint are whole at any limit."""
    text = primer.render(value, limit=limit)
    assert len(text) <= max(limit, len(primer.render(value, limit=0)))
    assert value.stall.strip() in text
    assert value.checkpoint.strip() in text
    if value.recovery:
        assert primer.render_recovery(value.recovery) in text
    if value.relay and value.relay.next_action:
        assert value.relay.next_action in text


@pytest.mark.parametrize("phase", ["", "## Current Phase\nBuilding\n"])
def test_a_relay_without_a_directive_is_not_given_one(phase):
    """A Next Action that holds only a pointer would read as a task."""
    notes = relay.parse(phase + "# Notes\n" + "note\n" * 90)
    text = primer.render(Primer(relay=notes, relay_path="there"), limit=0)
    assert relay.parse(text).next_action is None
    assert text.endswith("\n(the whole relay: there)\n")
    assert ("Building" in text) == bool(phase)


def test_long_rules_do_not_push_out_what_there_is_to_do():
    """Their beginning stays, with the place of the rest; notice and directive stay whole."""
    full = msgspec.structs.replace(FULL, rules="Never touch main. " + "r" * 20_000)
    text = primer.cut_text(primer.render(full, limit=10_000), 10_000, "memories/consensus.md")
    assert primer.count_utf16_units(text) <= 10_000
    for part in (*MUST_STAY, "Never touch main.", "read the rest in the file of your rules"):
        assert part in text


def test_a_long_request_does_not_push_out_the_open_loops():
    """After a compaction its beginning is repeated, and the loops after it."""
    text = primer.render_reminder(FULL, "Do this. " + "x" * 20_000)
    assert primer.count_utf16_units(text) <= 10_000
    assert "Do this." in text
    assert "loop-line" in text


def test_every_part_of_a_primer():
    """In this order, each separated by an empty line."""
    whole = Primer(
        recovery=LostSession("task", 1),
        stall="STALL\n",
        answer="ANSWER",
        rules="RULES",
        relay=relay.parse("## Next Action\ngo\n"),
        checkpoint="CHECKPOINT",
        brief="BRIEF",
        ledger="- LOOP",
        task="\nTASK\n",
        closing="CLOSING",
    )
    assert primer.render(whole) == "\n\n".join(
        [
            primer.render_recovery(LostSession("task", 1)),
            "STALL",
            "ANSWER",
            "RULES",
            f"{primer.INTRODUCTION}{primer.TASK_OF_RELAY}\n\n## Next Action\ngo",
            f"{primer.CONTINUATION}CHECKPOINT",
            "BRIEF",
            "Open loops:\n- LOOP",
            SOURCE_OF_TRUTH,
            "TASK",
            "CLOSING\n",
        ]
    )
    assert primer.render(Primer(task="TASK")) == "TASK\n"
    assert primer.render(Primer(closing="CLOSING")) == "CLOSING\n"
    assert primer.render(Primer(ledger="- a")) == f"Open loops:\n- a\n\n{SOURCE_OF_TRUTH}\n"
    assert primer.render(Primer(relay=relay.parse(""))) == ""


def test_the_reminder_after_a_compaction():
    """What still holds, and nothing if there is nothing to repeat."""
    full = Primer(rules=" RULES\n", checkpoint="DONE", ledger="- a", brief="BRIEF")
    assert primer.render_reminder(full, " do it ", "- b\n") == (
        "The conversation so far was compacted. This still holds, word for word.\n\n"
        "Rules:\nRULES\n\n"
        "Last request:\ndo it\n\n"
        "Before it was compacted:\nDONE\n\n"
        "Open loops:\n- a\n\n"
        "Resolved, do not do this again:\n- b\n"
    )
    assert primer.render_reminder(Primer(), "", "") == ""
    assert primer.render_reminder(Primer(rules=" ", checkpoint="\n", ledger=" "), " ", " ") == ""
    assert primer.render_reminder(Primer(), "do it") == (
        "The conversation so far was compacted. This still holds, word for word.\n\n"
        "Last request:\ndo it\n"
    )


def test_the_notices_of_a_primer():
    """Each is one or two lines, whatever the texts in it are."""
    assert primer.render_answer("", " yes\n") == "A person has answered: yes"
    assert primer.render_answer("Which\none?", "b") == (
        "You were waiting for: Which one?\nA person has answered: b"
    )
    moved = "This work was on host b until now, and continues on a."
    missing = " Work that was not pushed from there is missing here: look at the files first."
    assert primer.render_move("a", "b") == f"{moved}{missing}"
    assert primer.render_move("a", "b", "no\naccess") == (
        f"{moved} Its last push failed (no access).{missing}"
    )


def test_a_request_is_found_again():
    """At the end of a primer; a later one counts."""
    notice = primer.render_request(" Port it.\n")
    assert notice == "A person has just asked for this, and none of it is done yet:\nPort it."
    assert primer.find_request(f"Rules.\n\n{notice}") == "Port it."
    assert primer.find_request(f"{notice}\n{primer.render_request('Then stop.')}") == "Then stop."
    assert primer.find_request("Rules.") == ""


def test_the_closing_names_the_file_and_its_sections():
    """All sections of a relay, in their order."""
    text = primer.render_closing("/p/relay.md", 2_000)
    assert "\n/p/relay.md\nIt is markdown, under 2,000 tokens, with these sections:\n## " in text
    places = [text.index(f"## {field}\n") for field in relay.RelayField]
    assert places == sorted(places)
    assert f"write only the word {relay.DONE_DIRECTIVE} there" in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (primer.render_recovery(LostSession("x", 0)), True),
        (f"\n{primer.INTRODUCTION} More.", True),
        (f"Hello. {primer.INTRODUCTION}", False),
        (f"Brief.\n\n{SOURCE_OF_TRUTH}\n\nTask", True),
        (f"Rules.\n\n{primer.CONTINUATION}x", True),
        ("Port the parser.", False),
        ("", False),
    ],
)
def test_the_prompts_that_rekindle_wrote(text, expected):
    """Each kind of primer has a phrase that people would not write."""
    assert primer.is_primer(text) is expected


def test_the_prompt_of_a_resumed_session_is_recognized():
    """However it is wrapped, and with a list after it."""
    wrapped = primer.RESUME_PROMPT.replace("\n", " ")
    assert primer.is_resume_prompt(f"{wrapped}- make")
    assert primer.is_resume_prompt(f"\n{primer.RESUME_PROMPT}")
    assert not primer.is_resume_prompt(f"He said: {primer.RESUME_PROMPT}")


@pytest.mark.parametrize(
    ("text", "units"), [("", 0), ("a", 1), ("é", 1), ("日", 1), ("😀", 2), ("\ud83d", 1)]
)
def test_the_length_of_a_text_for_a_javascript_program(text, units):
    """A character outside the basic plane counts twice, and half of one once."""
    assert primer.count_utf16_units(text) == units


def test_a_text_is_cut_to_its_limit():
    """Never inside a character, and with a pointer to the rest."""
    pointer = "\n(cut here: read the rest in it before you act)\n"
    text = "ab😀cd" * 20
    assert primer.cut_text(text, 120, "it") == text
    for limit in range(len(pointer), 119):
        cut = primer.cut_text(text, limit, "it")
        assert cut.endswith(pointer)
        body = cut.removesuffix(pointer)
        assert text.startswith(body)
        assert 0 <= limit - primer.count_utf16_units(cut) <= 1


def test_decisions_are_left_out_with_a_pointer():
    """At the first limit at which they do not fit."""
    decisions = "- a decision with a long reason (2026-04-09)\n" * 5
    text = f"## Next Action\ngo\n\n## Key Decisions Made\n{decisions}\n## Open Questions\n- q\n"
    value = Primer(relay=relay.parse(text), relay_path="there")
    whole = primer.render(value)
    assert primer.render(value, limit=len(whole)) == whole
    shorter = primer.render(value, limit=len(whole) - 1)
    assert "(left out here; the whole relay: there)" in shorter
    assert "- q" in shorter
    smallest = primer.render(value, limit=len(shorter) - 1)
    assert smallest.endswith("## Next Action\ngo\n\n(the whole relay: there)\n")
    assert "- q" not in smallest


def test_a_long_phase_is_one_line_of_the_smallest_primer():
    """Its beginning is enough."""
    phase = "word " * 100
    text = f"## Current Phase\n{phase}\nmore\n\n## Next Action\ngo\n" + "## Notes\nx\n" * 200
    found = primer.render(Primer(relay=relay.parse(text), relay_path="there"), limit=0)
    lines = found.splitlines()
    (line,) = [line for line in lines if line.startswith("word word")]
    assert len(line) <= PHASE_CHARACTERS
    assert "more" not in lines
    assert lines[-1] == "(the whole relay: there)"
