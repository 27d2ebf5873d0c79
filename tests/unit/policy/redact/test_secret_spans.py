"""The exact positions of findings: merged, aligned, extended and mapped back to the text."""

import itertools
import re

import pytest

from rekindle.policy.redact import find_secrets
from rekindle.policy.redact.find_secrets import SecretFinding

TOKEN = "gh" + "p_a7Bk9dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z"
HEAD, TAIL = TOKEN[:25], TOKEN[25:]
FRAME = "-----BEGIN PRIVATE " + "KEY-----"
BODY = ["a7Bk9dE5fG7hJ9kL" * 4, "b8Cl0eF6gH8iK0lM" * 4, "Qx8Tz1c4=="]
TUNDRA = "Tundra-77x"
_MARK = re.compile(r"«([a-z-]+)\|(.*?)»", re.DOTALL)


def check(marked):
    """Compare the findings of a text with its marks: «rule|secret»."""
    text = _MARK.sub(r"\2", marked)
    expected, removed = [], 0
    for mark in _MARK.finditer(marked):
        start = mark.start() - removed
        expected.append(SecretFinding(start, start + len(mark[2]), mark[1]))
        removed += len(mark[0]) - len(mark[2])
    assert find_secrets.find_secrets(text) == expected


GH, PW, PK = "«github-token|", "«password|", "«private-key|"


@pytest.mark.parametrize(
    "marked",
    [
        f"{GH}{TOKEN}»",
        f"x {GH}{TOKEN}» y {GH}{TOKEN}»",
        f"DB_PASSWORD={PW}{TUNDRA}» y",
        f"İ DB_PASSWORD={PW}{TUNDRA}» y",
        # colours
        f"x \x1b[32m{GH}{TOKEN}»\x1b[0m y",
        f"{GH}{TOKEN}»\x1b[0m",
        f"\x1b[1m{GH}gh\x1b[0m{TOKEN[2:]}» y",
        f"\x1b[1m\x1b[2mx \x1b[33m{GH}{HEAD}\x1b[0m{TAIL}»\x1b[0m z {GH}{TOKEN}»",
        f"a {GH}{HEAD[:10]}\x1b[0m{HEAD[10:]}\x1b[1m{TAIL}»",
        f"\\e[1mx\\e[0m {GH}{HEAD}\\e[1m{TAIL}» \\033[0;33mDB_PASSWORD={PW}{TUNDRA}»\\033[0m",
        # escapes
        f"DB_PASSWORD={PW}{TUNDRA}»\\nNEXT=1",
        f"DB_PASSWORD={PW}{TUNDRA}»\\\\nNEXT=1",
        f"DB_PASSWORD={PW}{TUNDRA}»\\tNEXT",
        f'say \\"password={PW}{TUNDRA}»\\" now',
        f'password=\\"{PW}{TUNDRA}»\\"',
        f"a\\u0020password={PW}{TUNDRA}»",
        f'{{"password": "{PW}Tundra-77\\u00e9xyZ12»"}}',
        f'{{"a": "b\\\\", "password": "{PW}{TUNDRA}\\\\»"}}',
        f'{{"a":"DB_PASSWORD=\\"{PW}{TUNDRA}\\\\\\"zz»\\" b"}}',
        # placeholders of an earlier pass
        "DB_PASSWORD=[redacted:password:3f] TOKEN=[redacted:token:8b3a]",
        "https://[redacted:token:8b3a]:«url-password|Xy9kQ4z71»@db.example.com/",
        f"a {GH}{TOKEN}» [redacted:token:8b3a] {GH}{TOKEN}»[redacted:token:8b3a]{GH}{TOKEN}»",
        # the rest of a token on the next line
        f"X={GH}{HEAD}»\n{GH}{TAIL}»\nmake",
        f"X={GH}{HEAD}»\n  13\t{GH}{TAIL}»\n",
        f"X={GH}{HEAD}»\n> {GH}{TAIL}» =1",
        f"X={GH}{HEAD}»\n{TAIL}=1",
        f"X={GH}{HEAD}»\n{TAIL}: 1",
        f"X={GH}{HEAD}»\n{TAIL}(1)",
        f"X={GH}{HEAD}»\nb7Bk9dE\nx",
        f"X={GH}{HEAD}»\n{GH}b7Bk9dE5»\nx",
        f"X={GH}{HEAD}»\n{GH}b7Bk9dE5==»\nx",
        f"X={GH}{HEAD}»\nb7Bk9d=E5\nx",
        f"X={GH}{HEAD}»\nc45a8f85-3f65-4499-a831-79bf7d891be2\nx",
        f"X={GH}{HEAD}»\nsrc/b7Bk9dE5.py\nx",
        f"DB_PASSWORD={PW}a7Bk9dE5fG7hJ9k»\nb7Bk9dE5fG\nx",
        f"DB_PASSWORD={PW}a7Bk9dE5fG7hJ9kL»\n{PW}b7Bk9dE5fG»\nx",
        f"{' ' * 20}DB_PASSWORD={PW}a7Bk9dE5fG7hJ9k»\nb7Bk9dE5fG\nx",
        # keys, with the line breaks between their lines if these are escaped
        "\n".join([FRAME, *(f"{PK}{line}»" for line in BODY), "x"]),
        f"K='{FRAME}\\n" + f"{PK}\\n»".join(f"{PK}{line}»" for line in BODY) + "'",
    ],
)
def test_where_a_secret_begins_and_ends(marked):
    """Nothing around a secret is part of its finding, and nothing of the secret is left."""
    check(marked)


def test_colours_before_a_text_move_its_findings():
    """Each colour code moves the findings after it by its own length."""
    for count, code in itertools.product(range(4), ("\x1b[m", "\x1b[1;31m", "\\u001b[0m")):
        check(f"{code * count}DB_PASSWORD={PW}{TUNDRA}» {code} x {GH}{HEAD}{code}{TAIL}»{code}")


@pytest.mark.parametrize(("size", "digits"), [(1, 2), (19, 2), (20, 4), (21, 4), (100, 4)])
def test_the_digits_of_a_placeholder(size, digits):
    """A secret that can be guessed shows two digits of its hash, a longer one four."""
    label = find_secrets.render_placeholder("token", "x" * size)
    assert re.fullmatch(rf"token:[0-9a-f]{{{digits}}}", label)


def test_the_same_secret_has_the_same_digits_in_every_version():
    """Users write labels into the manifest, so the digits must never change."""
    assert find_secrets.render_placeholder("token", "x" * 40) == "token:0dba"


@pytest.mark.parametrize(
    "secrets",
    [
        [(3, 9)],
        [(0, 4), (10, 60)],
        [(2, 3), (3, 20), (40, 41)],
        [(0, 16), (16, 31), (50, 100)],
    ],
)
def test_findings_of_a_later_pass_are_mapped_to_the_original_text(secrets):
    """Placeholders before a finding change its offset, those after it do not."""
    text = "".join(chr(0x4E00 + number) for number in range(120))
    earlier = [SecretFinding(start, end, "token") for start, end in secrets]
    replaced = find_secrets._replace_findings(text, earlier)
    for place, character in enumerate(replaced):
        if character in text:
            new = [SecretFinding(place, place + 1, "key")]
            (found,) = find_secrets._map_to_original(new, earlier)
            assert text[found.start : found.end] == character


SPANS = [(start, end) for start in range(7) for end in range(start + 1, 8)]


def covered(spans):
    return {place for start, end, *_ in spans for place in range(start, end)}


@pytest.mark.parametrize("taken", [[(2, 4)], [(0, 2), (3, 4)], [(1, 2), (2, 3), (5, 7)], [(0, 8)]])
def test_the_parts_of_spans_outside_placeholders(taken):
    """All of them, none twice, and none empty."""
    for first, second in itertools.product(SPANS, SPANS):
        spans = [(*first, "token"), (*second, "key")]
        visible = find_secrets._subtract_spans(spans, taken)
        assert all(start < end for start, end, _ in visible)
        for span in spans:
            parts = [part for part in visible if part[2] == span[2]]
            assert covered(parts) == covered([span]) - covered(taken)
            assert sum(end - start for start, end, _ in parts) == len(covered(parts))
    assert find_secrets._subtract_spans([(1, 3, "key")], []) == [(1, 3, "key")]


def test_overlapping_spans_are_merged():
    """Into the span that begins first; spans that only touch stay apart."""
    for first, second in itertools.product(SPANS, SPANS):
        merged = find_secrets._merge_spans([(*first, "token"), (*second, "key")])
        (start, end), (other_start, other_end) = first, second
        if max(start, other_start) >= min(end, other_end):
            assert merged == sorted([(*first, "token"), (*second, "key")])
            continue
        rule = "token" if (start, -end) <= (other_start, -other_end) else "key"
        assert merged == [(min(start, other_start), max(end, other_end), rule)]


@pytest.mark.parametrize(
    ("text", "span", "expected"),
    [
        ("abcd", (1, 3), (1, 3)),
        ("a\\ncd", (2, 4), (1, 4)),
        ("a\\\\cd", (2, 4), (1, 4)),
        ("a\\\\cd", (3, 5), (3, 5)),
        ("a\\\\\\d", (4, 5), (3, 5)),
        ("\\ncd", (1, 4), (0, 4)),
        ("\\\\cd", (2, 4), (2, 4)),
        ("abc\\n", (0, 4), (0, 3)),
        ("abc\\\\", (0, 5), (0, 5)),
        ("abc\\\\", (0, 4), (0, 3)),
        ("ab\\\\\\n", (0, 5), (0, 4)),
        ("a\\n", (1, 2), (1, 1)),
        ("a\\n", (2, 2), (1, 1)),
    ],
)
def test_a_span_does_not_split_an_escape(text, span, expected):
    """A start inside an escape moves before it, and so does an end."""
    assert find_secrets._align_to_escapes(text, (*span, "key")) == (*expected, "key")


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([(0, 189, "key")], [(0, 189, "key")]),
        ([(0, 190, "key")], [(0, 300, "key")]),
        ([(10, 199, "key")], [(10, 199, "key")]),
        ([(10, 200, "key")], [(10, 300, "key")]),
        ([(0, 250, "url-password")], [(0, 250, "url-password")]),
        ([(0, 190, "key"), (1, 250, "token")], [(0, 300, "key"), (1, 300, "token")]),
        ([(301, 500, "key"), (0, 190, "key")], [(0, 300, "key"), (301, 550, "key")]),
        ([(301, 550, "key")], [(301, 550, "key")]),
    ],
)
def test_a_long_secret_is_extended_to_its_end(spans, expected):
    """A secret of 190 characters may be longer than its rule can match."""
    view = f"{'x' * 300} {'y' * 249},zzz"
    assert find_secrets._extend_to_end(view, spans) == expected


@pytest.mark.parametrize(
    ("between", "is_joined"),
    [
        ("\\n", True),
        ("\\r\\n", True),
        ("\\\\n  ", True),
        ("\\n" + " " * 57, True),
        ("\\n" + " " * 58, False),
        ("\n", False),
        ("\\nx", False),
    ],
)
def test_the_line_breaks_of_a_key_in_one_line(between, is_joined):
    """Escaped line breaks belong to the key, real ones and other text do not."""
    text = f"aa{between}bb"
    stop = 2 + len(between)
    spans = [(stop, len(text), "private-key"), (0, 2, "private-key")]
    joined = find_secrets._join_line_breaks(text, spans)
    assert joined == ([(2, stop, "private-key")] if is_joined else [])
    assert find_secrets._join_line_breaks(text, [(0, 2, "key"), (stop, len(text), "key")]) == []


@pytest.mark.parametrize(
    ("text", "view"),
    [
        ("plain", "plain"),
        ("a\\nb", "a\x01\nb"),
        ("a\\\\nb", "a\x01\x01\nb"),
        ("a\\rb\\tc", "a\x01\rb\x01\tc"),
        ('a\\"b', 'a\x01"b'),
        ("a\\'b\\/", "a\x01'b\x01/"),
        ('a\\\\"b', 'a\\\\"b'),
        ('a\\\\\\"b', 'a\x01\x01\x01"b'),
        ("a\\u0041b", "a\x01\x01\x01\x01\x01Ab"),
        ("a\\\\u0041b", "a\\\\u0041b"),
        ("a\\u001fb", "a\x01\x01\x01\x01\x01\x01b"),
        ("a\\u0020b", "a\x01\x01\x01\x01\x01 b"),
        ("a\\u000ab", "a\x01\x01\x01\x01\x01\nb"),
        ("a\\u00FFb", "a\x01\x01\x01\x01\x01ÿb"),
        ("a\\xb", "a\\xb"),
        ("a\x1b[1mb", "a    b"),
        ("a[redacted:key:3f]b", "a" + "\x02" * 17 + "b"),
        ("a[redacted:other:3f]b", "a[redacted:other:3f]b"),
    ],
)
def test_a_text_without_its_escapes(text, view):
    """Every other character keeps its place."""
    assert find_secrets._undo_escapes(text) == view
    assert len(view) == len(text)


def test_a_text_that_is_too_short_has_no_secrets():
    """The shortest text with a secret is found."""
    sizes = range(3, 12)
    found = [size for size in sizes if find_secrets.find_once(("pw=" + "k7#Zq9!x" * 2)[:size])]
    assert found == list(range(8, 12))
    assert find_secrets.find_once("") == []
