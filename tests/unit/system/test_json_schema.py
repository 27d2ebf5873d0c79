"""Documents against JSON Schemas."""

import json
import sys

import pytest

from rekindle.errors import ContractError
from rekindle.system import json_schema
from rekindle.system.json_schema import (
    find_schema_problems,
    require_usable_schema,
    require_validator,
)
from rekindle.thresholds.pipeline_limits import CONTRACT_BYTES, SCHEMA_PROBLEMS

ITEMS = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "required": ["id"],
        "properties": {"id": {"type": "string", "pattern": "^[a-z]+$"}, "old": False},
        "additionalProperties": False,
    },
}


def find(document, schema):
    problems = find_schema_problems(json.dumps(document).encode(), json.dumps(schema))
    return [problem.render() for problem in problems]


def test_a_document_that_matches():
    assert find([{"id": "a"}], ITEMS) == []


def test_each_problem_names_its_place_and_what_is_expected():
    assert find(
        [{"id": "a"}, {"id": 7}, {}, {"id": "B"}, {"id": "b", "x": 1, "old": 2}], ITEMS
    ) == [
        '[1].id: is 7, expected type: "string"',
        "[2]: 'id' is a required property",
        '[3].id: is "B", expected pattern: "^[a-z]+$"',
        "[4]: has 2, but this value is not allowed",
        "[4]: Additional properties are not allowed ('x' was unexpected)",
    ]
    assert find([], ITEMS) == ["the document: is [], expected minItems: 1"]


def test_a_long_value_is_cut():
    (problem,) = find({"a": "x" * 100_000}, {"type": "array"})
    assert len(problem) < 300
    assert problem.endswith('expected type: "array"')


def test_only_the_first_problems_are_returned():
    assert len(find([1] * 100, {"items": {"type": "string"}})) == SCHEMA_PROBLEMS + 1


def test_an_older_draft_is_used_if_the_schema_names_it():
    """In draft 4, `exclusiveMaximum` is true or false."""
    schema = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "maximum": 3,
        "exclusiveMaximum": True,
    }
    assert find(3, schema) == ["the document: is 3, expected maximum: 3"]


def test_a_schema_may_refer_to_its_own_parts():
    schema = {"$ref": "#/$defs/name", "$defs": {"name": {"type": "string"}}}
    require_usable_schema(json.dumps(schema), "a.json")
    assert find(1, schema) == ['the document: is 1, expected type: "string"']


def test_no_schema_is_fetched(tmp_path):
    """Another file is not read, although it exists and would match."""
    other = tmp_path / "other.json"
    other.write_text("{}")
    (problem,) = find(1, {"$ref": other.as_uri()})
    assert "could not be checked" in problem
    with pytest.raises(ContractError, match="does not fetch"):
        require_usable_schema(json.dumps({"$ref": other.as_uri()}), "a.json")


def test_a_check_that_takes_forever_is_ended(monkeypatch):
    monkeypatch.setattr(json_schema, "SCHEMA_SECONDS", 2.0)
    (problem,) = find("a" * 60 + "!", {"pattern": "^(a+)+$"})
    assert problem == "the document: could not be checked in 2 seconds"


def test_a_schema_that_refers_to_itself_is_a_problem():
    (problem,) = find(1, {"$ref": "#"})
    assert "nested too deeply" in problem


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("{", "is not valid JSON"),
        ("[]", "is not valid"),
        ('{"type": "texts"}', "is not valid: 'texts' is not valid"),
        ('{"$ref": "https://example.invalid/a.json#/x"}', "refers to 'https://example.invalid"),
        (f'{{"title": "{"x" * CONTRACT_BYTES}"}}', "is larger than"),
    ],
)
def test_a_schema_that_cannot_be_used(schema, reason):
    with pytest.raises(ContractError) as caught:
        require_usable_schema(schema, "contracts/a.json")
    assert f"contracts/a.json: the schema {reason}" in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "https://json-schema.org/draft/2020-12/schema"},
        {"$id": "https://example.invalid/a", "$ref": "https://example.invalid/a#/$defs/b"},
        {"properties": {"$ref": {"const": "https://example.invalid"}}},
        True,
    ],
)
def test_a_schema_that_needs_no_other_file(schema):
    require_usable_schema(json.dumps(schema), "a.json")
    assert find_schema_problems(b"{}", json.dumps(schema)) is not None


def test_without_the_package_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    for call in (
        require_validator,
        lambda: require_usable_schema("{}", "a.json"),
        lambda: find_schema_problems(b"{}", "{}"),
    ):
        with pytest.raises(ContractError, match="jsonschema") as caught:
            call()
        assert caught.value.hint == "pip install 'rekindle-agents[schema]'"
