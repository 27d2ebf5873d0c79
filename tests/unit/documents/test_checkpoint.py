"""The checkpoint: five sections, all of them, and every other byte."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rekindle.documents import checkpoint
from rekindle.documents.checkpoint import CheckpointSection
from rekindle.errors import DocumentError, NewerSchemaError, RekindleError

CHECKPOINT = """\
# Relay Checkpoint

## Completed Work
- made the model

## Current State
- half of the endpoint

## Modified Files
- src/model.py (new)

## Remaining Work
1. the other half
2. tests

## Resume Instructions
Go on with step 1. The skeleton
is in src/handler.py.
"""

TAME = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=60).filter(
    lambda text: not text.lstrip().startswith(tuple("#`~<>=-+*_|0123456789"))
)
PIECES = st.lists(
    st.sampled_from(
        [*(f"## {part}\n" for part in CheckpointSection), "- x\n", "```\n", "\r\n", "## Other\n"]
    ),
    max_size=16,
).map("".join)


def test_the_specified_form_is_read():
    """Each of the five sections has its text."""
    found = checkpoint.parse(CHECKPOINT.encode())
    assert {part: found.content(part) for part in CheckpointSection} == {
        CheckpointSection.COMPLETED_WORK: "- made the model",
        CheckpointSection.CURRENT_STATE: "- half of the endpoint",
        CheckpointSection.MODIFIED_FILES: "- src/model.py (new)",
        CheckpointSection.REMAINING_WORK: "1. the other half\n2. tests",
        CheckpointSection.RESUME_INSTRUCTIONS: (
            "Go on with step 1. The skeleton\nis in src/handler.py."
        ),
    }


@pytest.mark.parametrize("part", CheckpointSection)
def test_a_missing_section_is_named(part):
    """A checkpoint that lacks one of the five is refused, and the error says which."""
    with pytest.raises(DocumentError, match=f"checkpoint: lacks {part}$") as refused:
        checkpoint.parse(CHECKPOINT.replace(f"## {part}", "## Other"))
    assert all(name in refused.value.hint for name in CheckpointSection)


def test_all_missing_sections_are_named():
    """An empty checkpoint lacks all five, and so does one inside a fence."""
    for text in ("", f"```\n{CHECKPOINT}```\n"):
        with pytest.raises(DocumentError) as refused:
            checkpoint.parse(text)
        assert refused.value.reason == "lacks " + ", ".join(CheckpointSection)


@pytest.mark.parametrize(
    "dress", ["# {}", "### **{}**", "## {}:", "## ✅ {}", "## 3. {}", "## {} (step 2)", "## _{}_"]
)
@pytest.mark.parametrize("part", CheckpointSection)
def test_a_section_is_found_however_its_heading_is_dressed(part, dress):
    """Summarizers write headings as relays have them: any level, with emoji and numbers."""
    text = "".join(f"{dress.format(one)}\n{one[:3]}\n" for one in CheckpointSection)
    assert checkpoint.parse(text.replace("\n", "\r\n")).content(part) == part[:3]


def test_a_longer_word_is_another_heading():
    """Current Statement is not Current State."""
    with pytest.raises(DocumentError, match="lacks Current State"):
        checkpoint.parse(CHECKPOINT.replace("Current State", "Current Statement"))


def test_the_shallowest_section_of_a_name_counts():
    """A note below another section does not replace the section itself."""
    note = "## Completed Work\n### Remaining Work of last time\nnone\n"
    text = CHECKPOINT.replace("## Completed Work\n", note)
    assert (
        checkpoint.parse(text)
        .content(CheckpointSection.REMAINING_WORK)
        .startswith("1. the other half")
    )


@given(PIECES | st.just(CHECKPOINT))
def test_a_checkpoint_is_its_own_text(text):
    """Rendering what was parsed gives the text, and parsing that gives the checkpoint."""
    try:
        parsed = checkpoint.parse(text)
    except DocumentError:
        assert any(f"## {part}\n" not in text or "```" in text for part in CheckpointSection)
        return
    assert checkpoint.render(parsed) == text
    assert checkpoint.parse(checkpoint.render(parsed)) == parsed


@given(st.dictionaries(st.sampled_from(CheckpointSection), TAME))
def test_a_composed_checkpoint_reads_back(parts):
    """Every section is there; one that was not given says so."""
    composed = checkpoint.compose(parts)
    assert checkpoint.parse(checkpoint.render(composed)) == composed
    for part in CheckpointSection:
        assert composed.content(part) == (parts.get(part, "").strip() or "- none")


@given(st.binary(max_size=200))
@example(b"\xff")
@example(b"<!-- rekindle: checkpoint 2 -->")
def test_any_bytes_are_a_checkpoint_or_refused(data):
    """Nothing but our own errors comes out."""
    try:
        parsed = checkpoint.parse(data)
    except RekindleError:
        return
    assert checkpoint.render(parsed).encode() == data


@pytest.mark.parametrize("part", CheckpointSection)
def test_changing_a_section_leaves_every_other_byte(part):
    """Only the section's own text is replaced."""
    before = checkpoint.parse(CHECKPOINT)
    after = before.with_content(part, "new\n\n")
    assert after.content(part) == "new"
    start = CHECKPOINT.index(f"## {part}\n") + len(f"## {part}\n")
    assert checkpoint.render(after).startswith(CHECKPOINT[:start] + "new\n\n")
    rest = CHECKPOINT[start:].partition("## ")
    assert checkpoint.render(after).endswith("new\n\n" + rest[1] + rest[2])


def test_a_change_that_hides_a_section_is_refused():
    """An open fence would swallow the sections behind it."""
    with pytest.raises(DocumentError, match="lacks Remaining Work, Resume Instructions"):
        checkpoint.parse(CHECKPOINT).with_content(CheckpointSection.MODIFIED_FILES, "```\n")


def test_a_newer_checkpoint_is_refused_by_its_versions():
    """The error names the document, what it has and what we know."""
    with pytest.raises(NewerSchemaError, match=r"checkpoint: has schema 7, .* up to 1"):
        checkpoint.parse("<!-- rekindle: checkpoint 7 -->\n" + CHECKPOINT)
