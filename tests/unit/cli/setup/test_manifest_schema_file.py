"""The JSON Schema beside the manifest: a general validator agrees with Rekindle."""

import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from rekindle.documents import manifest
from rekindle.policy.settings.manifest_schema import render_schema

ROOT = Path(__file__).parents[4]
PUBLISHED = ROOT / "docs/reference/rekindle.schema.json"
AGENT = "version: 1\nagents: {a: {harness: command, command: [x]"
BROKEN = {
    "no version": "agents: {}\n",
    "a newer version": "version: 2\n",
    "a version that is text": "version: one\n",
    "an unknown section": "version: 1\nagent: {}\n",
    "agents as a list": "version: 1\nagents: [a]\n",
    "an agent without a harness": "version: 1\nagents: {a: {prompt: P.md}}\n",
    "an agent's name in capitals": "version: 1\nagents: {Trades: {harness: codex}}\n",
    "an agent's name with a space": "version: 1\nagents: {my agent: {harness: codex}}\n",
    "an unknown key of an agent": f"{AGENT}, cycle: 3}}}}\n",
    "a persona's key in an agent": f"{AGENT}, model: opus}}}}\n",
    "negative cycles": f"{AGENT}, cycles: -1}}}}\n",
    "cycles as text": f'{AGENT}, cycles: "3"}}}}\n',
    "an unknown mode": f"{AGENT}, mode: forever}}}}\n",
    "an empty until": f'{AGENT}, until: " "}}}}\n',
    "numbers in a command": f"{AGENT}, until: [just, 3]}}}}\n",
    "a budget of nothing": f"{AGENT}, budget: {{usd: 0}}}}}}\n",
    "a budget in another currency": f"{AGENT}, budget: {{eur: 5}}}}}}\n",
    "tokens with a unit": f"{AGENT}, budget: {{tokens: 5M}}}}}}\n",
    "a trigger without its name": f'{AGENT}, handover: {{compaction: {{trigger: "80%"}}}}}}}}\n',
    "a trigger above 100": (
        f'{AGENT}, handover: {{compaction: {{trigger: "token_limit_101%"}}}}}}}}\n'
    ),
    "a number as an environment variable": f"{AGENT}, env: {{DEBUG: 1}}}}}}\n",
    "keep as one text": f"{AGENT}, keep: vite}}}}\n",
    "a model with a space": "version: 1\npersonas: {p: {model: big one}}\n",
    "tools as one text": "version: 1\npersonas: {p: {permissions: {allowed_tools: Read}}}\n",
    "a price without its output": "version: 1\nprices: {big: {input: 1}}\n",
    "a negative price": "version: 1\nprices: {big: {input: -1, output: 1}}\n",
    "one address instead of a list": "version: 1\nnotify: $ALERTS\n",
    "a duration in words": "version: 1\nruntime: {watch: {silence: ten minutes}}\n",
    "a duration without a unit": "version: 1\nruntime: {watch: {silence: 600}}\n",
    "a percentage above 100": "version: 1\nruntime: {relay: {token_threshold_percent: 101}}\n",
    "an impossible time of day": 'version: 1\nruntime: {brief: {at: "25:00"}}\n',
    "an unknown summarizer": "version: 1\nruntime: {relay: {summarizer: magic}}\n",
    "a namespace without a name": 'version: 1\nfleet: {namespace: ""}\n',
    "an unknown key of the fleet": "version: 1\nfleet: {adress: host}\n",
    "a step without an id": "version: 1\npipelines: {p: {steps: [{prompt: Build.}]}}\n",
}
EXAMPLES = [
    pytest.param(text, id=f"{page.stem}-{number}")
    for page in sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    for number, text in enumerate(
        re.findall(r"^```yaml[^\n]*\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    )
]


@pytest.fixture(scope="module")
def validator():
    schema = json.loads(PUBLISHED.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_the_published_schema_is_the_one_that_init_writes(rekindle, tmp_path, monkeypatch):
    """The manifest names it by a path that leads to it from the manifest's folder."""
    monkeypatch.chdir(tmp_path)
    assert rekindle("init", "--yes", "--agent", "trades", "--harness", "codex")[0] == 0
    first = (tmp_path / "rekindle.yaml").read_text().splitlines()[0]
    named = first.removeprefix("# yaml-language-server: $schema=")
    assert (tmp_path / named).read_bytes() == PUBLISHED.read_bytes() == render_schema()


def test_init_updates_an_old_schema(rekindle, tmp_path, monkeypatch):
    """A second `init` in the same folder writes the schema of the installed version."""
    monkeypatch.chdir(tmp_path)
    assert rekindle("init", "--yes", "--agent", "trades", "--harness", "codex")[0] == 0
    (tmp_path / ".rekindle/rekindle.schema.json").write_text("{}")
    assert rekindle("init", "--yes")[0] == 0
    assert (tmp_path / ".rekindle/rekindle.schema.json").read_bytes() == render_schema()


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_example_of_the_docs_validates(validator, text):
    """Whole manifests as they are, and parts of one below a version."""
    whole = text if re.search("^version:", text, re.MULTILINE) else f"version: 1\n{text}"
    manifest.parse(whole)
    validator.validate(yaml.safe_load(whole))


@pytest.mark.parametrize("why", BROKEN)
def test_a_broken_manifest_is_refused_by_the_schema_and_by_rekindle(
    validator, rekindle, tmp_path, monkeypatch, why
):
    """An editor marks it, and a command names the file and what to do, without a traceback."""
    assert not validator.is_valid(yaml.safe_load(BROKEN[why]))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rekindle.yaml").write_text(BROKEN[why])
    code, out, err = rekindle("status")
    assert (code, out) == (4 if why == "a newer version" else 3, "")
    assert "rekindle.yaml" in err
    assert "→" in err
    assert "Traceback" not in err


def test_there_are_enough_of_both():
    assert len(BROKEN) >= 30
    assert len(EXAMPLES) >= 30
