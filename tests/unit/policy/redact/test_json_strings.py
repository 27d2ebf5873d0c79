"""Findings in JSON are clipped to its strings."""

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
