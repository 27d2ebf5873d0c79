"""Private keys, line by line."""

import pytest

from rekindle.policy.redact.key_blocks import find_key_blocks

BEGIN, END = (f"-----{word} PRIVATE " + "KEY-----" for word in ("BEGIN", "END"))
BODY = ["aB3dE5fG7hJ9kL1mN3pQ5rS7tU9v", "wX1yZ3aB5cD7eF9gH1iJ3kL5mN7o"]
LAST = "pQ9r=="


def find(text):
    return [text[start:end] for start, end, _ in find_key_blocks(text, text.lower())]


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
