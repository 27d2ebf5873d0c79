"""The JSON Schema of rekindle.yaml accepts and refuses what Rekindle does."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from rekindle.cli.setup.config_command import config
from rekindle.documents import manifest
from rekindle.errors import ManifestError, NewerSchemaError
from rekindle.formats.validation import Duration
from rekindle.policy.settings import runtime_settings
from rekindle.policy.settings.explain_settings import (
    SettingExplanation,
    explain_setting,
    explain_settings,
    require_meanings,
)
from rekindle.policy.settings.manifest_schema import describe_manifest

ROOT = Path(__file__).parents[4]
REFERENCE = ROOT / ".." / "shared" / "design" / "manifest.yaml"
SCHEMA = json.loads(json.dumps(describe_manifest()))
EXAMPLES = [
    pytest.param(block, id=f"{page.stem}-{number}")
    for page in sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    for number, block in enumerate(
        re.findall(r"^```yaml[^\n]*\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    )
]

TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "null": lambda value: value is None,
    "integer": lambda value: type(value) is int,
    "number": lambda value: type(value) in {int, float},
}
KEYWORDS: dict[str, Callable[[Any, Any, dict[str, Any]], bool]] = {
    "type": lambda value, kind, _: TYPES[kind](value),
    "enum": lambda value, options, _: any(value is one or value == one != 1 for one in options),
    "minItems": lambda value, least, _: not isinstance(value, list) or len(value) >= least,
    "anyOf": lambda value, options, _: any(fits(value, one) for one in options),
    "items": lambda value, item, _: all(fits(one, item) for one in value),
    "minProperties": lambda value, least, _: len(value) >= least,
    "minimum": lambda value, bound, _: value >= bound,
    "maximum": lambda value, bound, _: value <= bound,
    "exclusiveMinimum": lambda value, bound, _: value > bound,
    "minLength": lambda value, bound, _: len(value) >= bound,
    "pattern": lambda value, pattern, _: re.search(pattern, value) is not None,
    "required": lambda value, names, _: set(names) <= value.keys(),
    "propertyNames": lambda value, name, _: all(fits(one, name) for one in value),
    "properties": lambda value, known, _: all(
        fits(value[name], one) for name, one in known.items() if name in value
    ),
    "additionalProperties": lambda value, other, beside: all(
        other is not False and fits(value[name], other)
        for name in value.keys() - beside.get("properties", {}).keys()
    ),
}
WORDS = {"$schema", "title", "description", "default", "x-unit"}


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """Return whether a value conforms to a schema; every keyword of ours is known here."""
    assert schema.keys() <= KEYWORDS.keys() | WORDS
    order = sorted(schema.keys() - WORDS, key=lambda keyword: keyword != "type")
    return all(KEYWORDS[keyword](value, schema[keyword], schema) for keyword in order)


def loads(text: str) -> bool:
    try:
        runtime_settings.resolve_settings(manifest.read_manifest(text)[1])
    except (ManifestError, NewerSchemaError):
        return False
    return True


def parsed(text: str) -> Any:
    return manifest.yaml_lines.parse(text, "rekindle.yaml").data


def test_the_reference_conforms():
    """The manifest of the design is valid in an editor too."""
    if not REFERENCE.exists():
        reason = "the reference manifest is not beside this checkout"
        print(reason)
        pytest.skip(reason)
    assert fits(parsed(REFERENCE.read_text("utf-8")), SCHEMA)


def test_there_are_examples():
    """So that the next test cannot pass without one."""
    assert len(EXAMPLES) >= 10


@pytest.mark.parametrize("text", EXAMPLES)
def test_the_examples_of_the_docs_conform(text):
    """Whole manifests as they are, and parts of one below a version."""
    whole = text if re.search("^version:", text, re.MULTILINE) else f"version: 1\n{text}"
    assert loads(whole)
    assert fits(parsed(whole), SCHEMA)


REQUIRED = {
    *("version", "agents.NAME.harness", "prices.NAME.input", "prices.NAME.output"),
    *("accounts.NAME.harness", "accounts.NAME.config_dir"),
}
"""Keys that their section cannot do without: the tests below leave the others out."""


def find_keys(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every key of a schema by its path, those of any name as NAME."""
    for option in schema.get("anyOf", [schema]):
        for name, below in option.get("properties", {}).items():
            yield f"{path}{name}", below
            yield from find_keys(below, f"{path}{name}.")
        if isinstance(option.get("additionalProperties"), dict):
            yield from find_keys(option["additionalProperties"], f"{path}NAME.")
        if "items" in option:
            yield from find_keys(option["items"], path)


def find_undescribed(schema: dict[str, Any]) -> list[str]:
    """Return the keys that have neither a description nor keys below them."""
    keys = dict(find_keys(schema))
    sections = {key.rpartition(".")[0].removesuffix(".NAME") for key in keys}
    return [key for key, one in keys.items() if "description" not in one and key not in sections]


def test_every_key_has_a_description():
    """This includes agents, personas and pipelines; a new key without one fails here."""
    assert find_undescribed(SCHEMA) == []
    agent = SCHEMA["properties"]["agents"]["anyOf"][0]["additionalProperties"]["properties"]
    assert [key for key, one in agent.items() if "description" not in one] == []
    bare = {"properties": {"agents": {"properties": {"until": {"type": "string"}}}}}
    assert find_undescribed(bare) == ["agents.until"]


def test_every_key_of_the_schema_is_explained():
    explained = {one.key: one.meaning for one in explain_settings(None, None)}
    wanted = [key for key, one in find_keys(SCHEMA) if "description" in one]
    assert len(wanted) > 80
    assert [key for key in wanted if not explained.get(key)] == []


def test_a_setting_without_a_meaning_fails_with_its_name():
    restart = runtime_settings.RuntimeSettings().restart
    extended = msgspec.defstruct("Extended", [("tries", int, 3)], bases=(type(restart),))
    with pytest.raises(TypeError, match=r"`runtime\.restart\.tries` has no `_doc`"):
        require_meanings(("runtime", "restart"), extended())


@pytest.mark.parametrize("key", ["until", "harness", "env", "usd", "allowed_tools", "trigger"])
def test_a_key_is_found_by_its_end(key):
    assert explain_setting(key, None, None)[0].meaning


def nested(key: str, value: str) -> str:
    """Return a manifest with one key, in JSON, which is YAML too."""
    inner = value
    for name in reversed(key.split(".")):
        inner = f'{{"{name}": {inner}}}'
    return '{"version": 1, ' + inner.removeprefix("{")


def written(value: Any) -> str:
    return json.dumps(str(value) if isinstance(value, Duration) else value)


@pytest.mark.parametrize(
    "one",
    [
        one
        for one in explain_settings(None, None)
        if one.origin != "fixed"
        and one.key not in REQUIRED
        # Steps and CLIs are lists, whose items have no key.
        and not one.key.startswith(("pipelines.", "agents.NAME.harness."))
        and not one.key.startswith(("prices.", "accounts."))  # each entry needs two keys
    ],
    ids=lambda one: one.key,
)
def test_every_setting_is_described_as_it_is_read(one: SettingExplanation):
    """Its default and an empty value conform; a value of another type, or a wrong key, does not."""
    for key, value, conforms in [
        (one.key, written(one.default), True),
        (one.key, "null", True),
        (one.key, "[[]]", False),
        (f"{one.key}_", written(one.default), False),
        (one.key, "-1", None),
        (one.key, '"10"', None),
    ]:
        text = nested(key, value).replace(
            '"agents": {"NAME": {', '"agents": {"a": {"harness": "x", '
        )
        assert fits(parsed(text), SCHEMA) is loads(text), text
        assert loads(text) is conforms or conforms is None


@pytest.mark.parametrize(
    ("text", "conforms"),
    [
        ("version: 1\nquota: {per_day: {}}", False),
        ("version: 1\nquota: {per_day: {usd: 1}}", True),
        ("version: 1\n", True),
        ("version: 1\nagents:\nruntime:\nfleet:\n", True),
        ("version: 2\n", False),
        ("version: true\n", False),
        ("agents: {}\n", False),
        ("version: 1\nagents: {a: {prompt: P.md}}\n", False),
        ("version: 1\nagents: {A: {harness: x}}\n", False),
        ("version: 1\nagents: {a: {harness: [x, {use: y, persona: z}]}}\n", True),
        ("version: 1\nagents: {a: {harness: [x, {persona: z}]}}\n", False),
        ("version: 1\nagents: {a: {harness: []}}\n", False),
        ("version: 1\nagents: {a: {harness: x, harnesses: [{use: y}]}}\n", False),
        ("version: 1\naccounts: {a: {harness: x, config_dir: ~/a}}\n", True),
        ("version: 1\nagents: {a: {harness: x, cycles: -1}}\n", False),
        ("version: 1\nagents: {a: {harness: x, budget: {usd: 0}}}\n", False),
        ("version: 1\nagents: {a: {harness: x, budget: {usd: 0.5, hours: 8}}}\n", True),
        ("version: 1\nagents: {a: {harness: x, convergence: on}}\n", True),
        ("version: 1\nagents: {a: {harness: x, handover: {compaction: off}}}\n", True),
        (
            'version: 1\nagents: {a: {harness: x, handover: {compaction: {trigger: "80%"}}}}\n',
            False,
        ),
        ("version: 1\nagents: {a: {harness: x, until: just test}}\n", True),
        ("version: 1\nagents: {a: {harness: x, until: ' '}}\n", False),
        ("version: 1\nagents: {a: {harness: x, command: [1]}}\n", False),
        ("version: 1\npersonas: {p: {command: ./ask --once}}\n", True),
        ("version: 1\npipelines: {b: {steps: [{id: one}]}}\n", True),
        ("version: 1\npipelines: {b: {steps: [{persona: one}]}}\n", False),
        ("version: 1\nruntime: {brief: {at: '25:00'}}\n", False),
        ("version: 1\nruntime: {watch: {silence: 10 minutes}}\n", False),
        ("version: 1\nruntime: {relay: {token_threshold_percent: 101}}\n", False),
        ("version: 1\nfleet: {namespace: ''}\n", False),
        ("version: 1\nfleet: {tls: {ca: ca.pem}}\n", True),
    ],
)
def test_schema_and_loader_agree(text, conforms):
    """An editor marks exactly the files that Rekindle refuses."""
    assert loads(text) is conforms
    assert fits(parsed(text), SCHEMA) is conforms


def test_switches_are_valid_in_editors_that_read_yaml_1_2():
    """There `on` is text; the examples write it."""
    assert fits({"version": 1, "agents": {"a": {"harness": "x", "convergence": "on"}}}, SCHEMA)


def test_the_command_prints_the_schema():
    """It is JSON, with the meaning, unit and default of each setting."""
    result = CliRunner().invoke(config, ["schema"])
    assert result.exit_code == 0
    schema = json.loads(result.stdout)
    assert schema == SCHEMA
    relay = schema["properties"]["runtime"]["anyOf"][0]["properties"]["relay"]["anyOf"][0]
    cap = relay["properties"]["max_relay_tokens"]
    assert (cap["default"], cap["x-unit"]) == (
        runtime_settings.RelaySettings().max_relay_tokens,
        "tokens",
    )
    assert cap["description"]
