"""Findings in JSON are clipped to its strings."""

import pytest

from rekindle.policy.redact.json_strings import clip_to_json


def clip(text, *parts):
    spans = [(text.index(part), text.index(part) + len(part), "token") for part in parts]
    return [text[start:end] for start, end, _ in clip_to_json(text, spans)]


def test_a_finding_across_strings_is_split_at_their_quotes():
    text = '{"key": "abc-123", "next": "def-456"}'
    assert clip(text, '123", "next": "def') == ["123", "next", "def"]


def test_a_finding_does_not_split_an_escape():
    text = r'{"key": "abc\u0041def-123"}'
    assert clip(text, r"0041def") == [r"\u0041def"]
    assert clip(text, r"abc\u00") == ["abc"]


def test_each_json_line_of_another_text_is_clipped():
    text = 'first token=1"2\n{"key": "abc", "n": 123456}\nlast'
    assert clip(text, 'token=1"2', 'abc", "n": 123') == ['token=1"2', "abc", "n"]


def test_a_text_that_is_not_json_keeps_its_findings():
    text = '{"key": "abc", "next": oops-123456}'
    assert clip(text, 'abc", "next') == ['abc", "next']
    assert clip_to_json(text, []) == []


@pytest.mark.parametrize(
    ("text", "parts", "expected"),
    [
        ('{"key": "abc-123"}', ["abc-123"], ["abc-123"]),
        ('{"key": "abc-123"}', ['"abc-123"'], ["abc-123"]),
        ('{"key": "abc-123"}', ['"key": "abc'], ["key", "abc"]),
        ('{"key": "abc-123"}', ["{", "}"], []),
        ('{"key": "abc-123", "n": 12}', ["12}"], []),
        ('{"key": "abc-123", "n": 12}', [", ", "12}"], []),
        ('["aaaa", "bbbb", "cccc"]', ["aaaa", "bbbb", "cccc"], ["aaaa", "bbbb", "cccc"]),
        ('["aaaa", "bbbb", "cccc"]', ["aa", "bb", "cc"], ["aa", "bb", "cc"]),
        ('["aaaa", "bbbb", "cccc"]', ['a", "b'], ["a", "b"]),
        ('["aaaa", "bbbb", "cccc"]', ['aa", "bbbb", "c', "cc"], ["aa", "bbbb", "c", "cc"]),
        ('["ab", "cd", "efg"]', ["ab", "cd", "efg"], ["ab", "cd", "efg"]),
        ('"abc-123"', ['"abc-123"'], ["abc-123"]),
        (r'["\\n\"x\u0041", 1]', [r"\n"], [r"\\n"]),
        (r'["a\nb-123456"]', ["nb-1"], [r"\nb-1"]),
        (r'["a\nb-123456"]', [r"a\n"], [r"a\n"]),
        (r'["a\nb-123456"]', ["b-12"], ["b-12"]),
        (r'["\nb", "\nc-123"]', [r"\nc-1"], [r"\nc-1"]),
        (r'["ab\ncd", "cd\nef", "x"]', [r"b\ncd", r"d\ne"], [r"b\ncd", r"d\ne"]),
        ('x\n["aaaa", 11]\n["bbbb", 22]\ny', ['aaaa", 11', 'bbbb", 22'], ["aaaa", "bbbb"]),
        ('x\n["aaaa", 11]', ['aaaa", 11'], ["aaaa"]),
        ('["aaaa", 11]\nx', ['aaaa", 11', "x"], ["aaaa", "x"]),
        ('["a", 11, 22, "b"]\nx', ['"a", 11', '22, "b"'], ["a", "b"]),
        ('[oops, "aaaa"]\n["bbbb", 22]', ['oops, "aaaa"', 'bbbb", 22'], ['oops, "aaaa"', "bbbb"]),
        ('["aaaa", 11}', ['aaaa", 11'], ['aaaa", 11']),
        ('["a", 1]', ['a", 1'], ["a"]),
        ('["", 1]', ['", 1'], ['", 1']),
        ("1234567890", ["345"], ["345"]),
    ],
)
def test_the_parts_of_findings_inside_strings(text, parts, expected):
    """In JSON, only text inside a string is redacted; seven characters are too short for JSON."""
    assert [part for part in clip(text, *parts) if part] == expected
