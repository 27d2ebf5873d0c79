"""Secrets in base64 and in hexadecimal dumps."""

import base64

import pytest

from rekindle.policy.redact.encoded_secrets import find_encoded

ENV_FILE = "NODE_ENV=production\nDB_PASSWORD=hunter2\n"


def find(text):
    """Return the encoded texts that contain the name of the password."""
    spans = list(find_encoded(text, lambda decoded: "DB_PASSWORD" in decoded))
    assert {rule for _, _, rule in spans} <= {"encoded-secret"}
    return [text[start:end] for start, end, _ in spans]


ENCODED = base64.b64encode(ENV_FILE.encode()).decode()
LINES = [ENCODED[:28], ENCODED[28:52], ENCODED[52:]]
HARMLESS = base64.b64encode(b"LOG_LEVEL=debug and nothing else!!").decode().rstrip("=")


def test_base64_of_a_secret_is_found():
    encoded = base64.b64encode(ENV_FILE.encode()).decode()
    assert find(f"$ base64 .env\n{encoded}\n") == [encoded]
    assert find(base64.b64encode(b"NODE_ENV=production and nothing").decode()) == []


def test_lines_of_base64_are_decoded_together():
    encoded = base64.b64encode(ENV_FILE.encode()).decode()
    lines = [encoded[:28], encoded[28:52], encoded[52:]]
    assert find("\n".join(lines)) == lines
    assert find("\n".join((lines[0], "x" * 80, lines[1]))) == []


def test_both_columns_of_a_dump_are_found():
    data = ENV_FILE.encode()
    rows = [data[at : at + 16] for at in range(0, len(data), 16)]
    shown = [(row.hex(" ", 2), row.decode().replace("\n", ".")) for row in rows]
    dump = "\n".join(f"{16 * n:08x}: {h:<39}  {text}" for n, (h, text) in enumerate(shown))
    assert find(dump) == [column for row in shown for column in row]


@pytest.mark.parametrize("before", ["+", "$ cat x\n+", "x = +"])
def test_the_sign_of_an_added_line_is_not_part_of_the_base64(before):
    """A diff puts a plus sign before the line, which stays."""
    assert find(f"{before}{ENCODED}\n") == [ENCODED]


@pytest.mark.parametrize("size", [54, 53, 52])
def test_base64_without_its_end_is_decoded_as_far_as_it_goes(size):
    """Padding that was cut off, and one to three characters more, do not hide the rest."""
    assert find(f"x {ENCODED[:size]} y") == [ENCODED[:size]]


@pytest.mark.parametrize(("distance", "is_found"), [(1, True), (60, True), (61, False)])
def test_how_far_apart_lines_of_base64_are_decoded_together(distance, is_found):
    """The distance is counted from the end of the line before, not from the first line."""
    lines = LINES[:2]
    assert find((" " * distance).join(lines)) == (lines if is_found else [])
    three = [*lines, "QUJDREVGR0hJSktMTU5PUFFSU1RVVldY"]
    assert find((" " * distance).join(three)) == (three if is_found else [])


def test_only_the_group_of_lines_with_the_secret_is_found():
    """Base64 far before or after a secret is not part of it."""
    far = "\n" + "." * 80 + "\n"
    assert find(f"{ENCODED}{far}{HARMLESS}") == [ENCODED]
    assert find(f"{HARMLESS}{far}{ENCODED}") == [ENCODED]


def test_a_short_last_line_is_part_of_the_base64_before_it():
    """A rest that is too short to be recognized alone, in a diff as well."""
    assert find(f"{ENCODED[:52]}\n{ENCODED[52:]}\nend") == [ENCODED[:52], ENCODED[52:]]
    assert find(f"+{ENCODED[:52]}\n+{ENCODED[52:]}\n") == [ENCODED[:52], ENCODED[52:]]
    assert find(f"{HARMLESS}\n{ENCODED[52:]}\nend") == []


def dump_row(data):
    """Return a row of a hex dump without its offset, as hex and as text."""
    return data.hex(" ", 2), data.decode("latin-1")


DATA = ENV_FILE.encode().replace(b"\n", b" ")
ROWS = [dump_row(data) for data in (DATA[:10], DATA[10:26], DATA[26:])]


@pytest.mark.parametrize(("distance", "is_found"), [(2, True), (60, True), (61, False)])
def test_how_far_apart_rows_of_a_dump_are_read_together(distance, is_found):
    """The distance is counted from the end of one row to the offset of the next."""
    hex_rows = [f"0: {hex_bytes}  {text}" for hex_bytes, text in ROWS[1:]]
    dump = ("\n" + "." * (distance - 1)).join(hex_rows)
    found = [column for row in ROWS[1:] for column in row]
    assert find(dump) == (found if is_found else [])


def test_only_the_rows_of_a_dump_with_the_secret_are_found():
    """Rows without a secret, rows of bytes that are not text, and rows far away are left alone."""
    plain = "0: 6162 6364 6566 6768  abcdefgh"
    secret = "\n".join(f"0: {hex_bytes}  {text}" for hex_bytes, text in ROWS)
    found = [column for row in ROWS for column in row]
    far = "\n" + "." * 80 + "\n"
    assert find(plain) == []
    assert find(f"{secret}{far}{plain}") == found
    assert find(f"{plain}{far}{secret}") == found
    assert find(f"0: 0001 0203 fffe 6768  ......gh\n{secret}") == found
