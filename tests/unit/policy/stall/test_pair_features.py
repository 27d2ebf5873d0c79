"""What changed between two relays, in numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.policy.stall.pair_features import RelayPair, read_relay


def pair(before, after):
    pages = (f"# Relay\n\n## Next Action\n{text}\n" for text in (before, after))
    return RelayPair(*map(read_relay, pages))


@pytest.mark.parametrize(
    ("before", "after", "feature"),
    [
        ("Fix TASK-1", "Fix TASK-2", "new_name"),
        ("- [ ] lexer rules\n- [ ] tables", "- [x] lexer rules\n- [ ] tables", "ticked"),
        ("- lexer rules\n- tables", "- tables", "shorter"),
        ("Continue with soups", "Continue with stews", "more_again"),
        ("Write it", "Waiting for Ann to sign", "waits_first"),
        ("Write it", "Launch\n- the owner should decide on a name", "needs_person"),
        ("Write it", "DONE", "finished"),
        ("Port 3 files", "Port 4 files", "recounted"),
    ],
)
def test_a_feature_shows_its_change(before, after, feature):
    assert pair(before, after).measure()[feature] > pair("Write it", "Test it").measure()[feature]


def test_a_reworded_relay_says_nothing_new():
    assert pair("Port the parser to the grammar", "Port this parser to the grammar").is_reworded
    assert not pair("Port the parser to the grammar", "Write the release notes").is_reworded


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Wait for the owner", False),
        ("Wait for the owner\n- if needed, polish the menus", False),
        ("Wait for the owner\n- translate the manual", True),
    ],
)
def test_own_work_is_told_from_waits_and_suggestions(text, expected):
    assert pair(text, text).lists_own_work is expected


@given(st.text(), st.text())
def test_features_of_any_texts_are_small_numbers(before, after):
    readings = [read_relay(before), read_relay(after)]
    if all(reading.ask for reading in readings):
        assert all(0 <= value <= 3 for value in RelayPair(*readings).measure().values())
