"""Contracts: the reasons for which a result fails."""

import pytest

from rekindle.policy.pipelines.contract_checks import (
    SchemaProblem,
    check_json,
    check_non_empty,
    render_path,
)
from rekindle.thresholds.pipeline_limits import CONTRACT_BYTES, SCHEMA_PROBLEMS


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (None, "a.md does not exist; write it"),
        (b"", "a.md is empty; write its content"),
        (b" \r\n\t", "a.md is empty; write its content"),
        (b"\xef\xbb\xbf\n", "a.md is empty; write its content"),
        (b"x", ""),
        (b"\xff\x00", ""),
    ],
)
def test_a_file_that_must_not_be_empty(data, reason):
    assert check_non_empty("a.md", data) == reason


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (None, "a.json does not exist"),
        (b" ", "a.json is empty"),
        (b"{", "a.json is not valid JSON"),
        (b"[" * 100_000, "a.json is not valid JSON"),
        (b'"\xff"', "a.json is not valid JSON"),
        (b'"' + b"x" * CONTRACT_BYTES + b'"', "a.json is larger than"),
    ],
)
def test_a_document_that_cannot_be_checked(data, reason):
    def find_problems(document):
        raise AssertionError(document)

    assert check_json("a.json", data, find_problems).startswith(reason)


def test_a_document_that_matches():
    documents = []

    def find_problems(document):
        documents.append(document)
        return []

    assert check_json("a.json", b'\xef\xbb\xbf{"id": 1}', find_problems) == ""
    assert documents == [b'{"id": 1}']


def test_only_the_first_problems_are_listed():
    problems = [SchemaProblem((number,), "is wrong") for number in range(SCHEMA_PROBLEMS + 1)]
    lines = check_json("a.json", b"[]", lambda _: problems).splitlines()
    assert lines[0] == "a.json does not match its JSON Schema:"
    assert lines[1] == "- [0]: is wrong"
    assert lines[SCHEMA_PROBLEMS:] == [f"- [{SCHEMA_PROBLEMS - 1}]: is wrong", "- and more"]
    few = check_json("a.json", b"[]", lambda _: problems[:SCHEMA_PROBLEMS])
    assert "more" not in few


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("items", 3, "id"), "items[3].id"),
        ((0, "a b", "c"), "[0]['a b'].c"),
        (("a\n\x1b[2J",), "['a [2J']"),
    ],
)
def test_paths(path, text):
    assert render_path(path) == text


def test_a_problem_of_the_whole_document():
    assert SchemaProblem((), "is wrong").render() == "the document: is wrong"
