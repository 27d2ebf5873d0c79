"""All literals are found in one pass, and patterns only where their literals are."""

import random
import re

from rekindle.policy.redact.literal_search import LiteralSearch

LITERALS = ("pass", "passw", "as", "key", "secret key", "ke", "ss:", "密码", "[a", "$a")


def test_every_literal_is_found_at_every_position():
    """Neither a longer literal nor one that overlaps hides another."""
    rng = random.Random(7)
    search = LiteralSearch(LITERALS)
    for _ in range(300):
        text = "".join(rng.choice([*LITERALS, "p", "s", " ", "码", "["]) for _ in range(12))
        positions = search.find(text)
        for literal in LITERALS:
            expected = [at for at in range(len(text)) if text.startswith(literal, at)]
            assert positions.list_all([literal]) == expected
            assert (literal in positions) is bool(expected)


def test_the_positions_of_several_literals_are_sorted():
    positions = LiteralSearch(LITERALS).find("key passw key")
    assert positions.list_all(["passw", "pass", "key"]) == [0, 4, 10]
    assert positions.list_all([]) == []


def test_matches_do_not_overlap():
    """The result is that of `finditer`."""
    text = "aa1 aa aa22"
    pattern = re.compile(r"a+\d+")
    matches = LiteralSearch(["aa"]).find(text).match(pattern, text, ["aa"])
    assert [match[0] for match in matches] == [match[0] for match in pattern.finditer(text)]
