"""Private keys, line by line."""

import pytest

from rekindle.policy.redact import key_blocks
from rekindle.policy.redact.key_blocks import find_key_blocks
from rekindle.policy.redact.literal_search import LiteralSearch

SEARCH = LiteralSearch(key_blocks.LITERALS)


def find_literals(text):
    return SEARCH.find(text.lower())


BEGIN, END = (f"-----{word} PRIVATE " + "KEY-----" for word in ("BEGIN", "END"))
BODY = ["aB3dE5fG7hJ9kL1mN3pQ5rS7tU9v", "wX1yZ3aB5cD7eF9gH1iJ3kL5mN7o"]
LAST = "pQ9r=="


def find(text):
    return [text[start:end] for start, end, _ in find_key_blocks(text, find_literals(text))]


@pytest.mark.parametrize(
    "lines",
    [
        [BEGIN, *BODY, LAST, END],
        [BEGIN, *BODY, LAST],
        ["12\t" + BEGIN, *("13\t" + line for line in BODY), f"14\t{LAST}", END],
    ],
)
def test_the_lines_of_a_block_are_found(lines):
    assert find("\n".join(["before", *lines, "after"])) == [*BODY, LAST]


def test_the_end_of_a_block_is_found_without_its_beginning():
    assert find("\n".join([*BODY, END])) == BODY[::-1]


def test_a_key_is_found_by_its_first_bytes_alone():
    body = "b3BlbnNzaC1rZXktdjE" + "AAAABG5vbmUAAAAEbm9uZQ"
    assert find(f"x: {body}\n") == [body]


def test_headers_and_other_text_are_not_part_of_a_key():
    text = "\n".join([BEGIN, "Proc-Type: 4,ENCRYPTEDandMoreLetters", *BODY, END])
    assert find(text) == BODY
    assert find("a private word and aB3dE5fG7hJ9kL1mN3pQ5rS7tU9v") == []


def test_an_unclosed_block_ends_after_seven_lines_without_a_key():
    prose, name = "this line is prose.", "ANameAsLongAsALineOfAKey"
    for lines, found in ((6, [BODY[0], name]), (7, [BODY[0]])):
        assert find("\n".join([BEGIN, BODY[0], *[prose] * lines, name])) == found


PUTTY = "Private-Lines: 2"
VAULT = "$ANSIBLE_VAULT;1.1;AES256"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{BEGIN}\n{BODY[0]}\n{LAST}\n{BODY[1]}\n{END}", [BODY[0], LAST, BODY[1]]),
        (f"{BEGIN}\n{LAST}\n{END}", [LAST]),
        (f"{BEGIN}\n{LAST}\nafter", []),
        (f"{BEGIN}\n{BODY[0]}\nword.\n{LAST}\nafter", [BODY[0]]),
        (f"{BEGIN} {BODY[0]} {BODY[1]} {END}", [*BODY]),
        (f"x\n{PUTTY}\n{BODY[0]}\n{LAST}\nPrivate-MAC: 0a\n{BODY[1]}", [BODY[0], LAST]),
        (f"{VAULT}\n{BODY[0]}\n{BODY[1]}\n", [*BODY]),
        (f"{BEGIN}\n{BODY[0]}\n{END}\n{BODY[1]}", [BODY[0]]),
        (f"{BEGIN}\n{BODY[0]}\n{BEGIN}\n{BODY[1]}\n{END}", [*BODY]),
        (f"{BODY[0]}\n\n{BODY[1]}\n{END}", [BODY[1], BODY[0]]),
        (f"prose here.\n{BODY[0]}\n{END}", [BODY[0]]),
        (f"{BODY[1]}\nprose here.\n{BODY[0]}\n{END}", [BODY[0]]),
        (f"{BEGIN}\n{BODY[0]}\n{END}\n{BODY[1]}\n{END}", [BODY[0], BODY[1]]),
        (END, []),
        (f"\n{END}", []),
        (f"k='{BEGIN}\x01\n{BODY[0]}\x01\n{LAST}'\n{BODY[1]}", [BODY[0], LAST]),
        (f"{BEGIN}\n{BODY[0][:16]}\n{END}", [BODY[0][:16]]),
        (f"{BEGIN}\n{BODY[0][:15]}\n{END}", [BODY[0][:15]]),
        (f"{BEGIN}\n{BODY[0][:15]} x\n{END}", []),
    ],
)
def test_where_a_key_begins_and_ends(text, expected):
    """Between its frame lines, and without one of them at the lines that look like a key."""
    assert find(text) == expected


def test_the_first_bytes_of_a_key_are_enough():
    """Also of two keys, and with the lines that follow."""
    body = "b3BlbnNzaC1rZXktdjEAAAABG5vbmUAAAAEbm9uZQ"
    assert find(f"{body}\n{BODY[0]}\n{LAST}\nprose") == [body, BODY[0], LAST]
    assert find(f"{body}{body}") == [body + body]
    assert find(f"{body}\n\nx\n{body}\n") == [body, body]
    assert find(body[:19] + "A" * 11) == []
    assert find(body[:19] + "A" * 12) == [body[:19] + "A" * 12]


def test_the_longest_key_without_its_beginning():
    """Four hundred lines are searched."""
    for lines in (399, 400, 401):
        text = "\n".join([*[BODY[0]] * lines, END])
        assert len(find(text)) == min(lines, 400)
