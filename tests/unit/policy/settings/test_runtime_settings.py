"""Settings: every threshold once, with a meaning, a value and an origin."""

import re
from pathlib import Path
from typing import Annotated, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.documents import manifest as manifests
from rekindle.documents.manifest import Manifest
from rekindle.errors import ManifestError, NotFoundError
from rekindle.formats import validation
from rekindle.formats.validation import (
    Duration,
    parse_duration,
)
from rekindle.formats.yaml_lines import MarkedData
from rekindle.policy.settings import (
    explain_settings,
    runtime_settings,
)
from rekindle.policy.settings.explain_settings import SettingExplanation
from rekindle.policy.settings.runtime_settings import (
    AgentDefaults,
    FleetSettings,
    RuntimeSettings,
    Settings,
)
from rekindle.thresholds import FIXED, Unit

REFERENCE = Path(__file__).parents[4] / ".." / "shared" / "design" / "manifest.yaml"

MANIFEST = """\
version: 1
agents:
  trades:
    harness: codex
    cycles: 3
  books:
    harness: gemini
runtime:
  relay:
    max_relay_tokens: 3000
  watch: {silence: 20m, tool_timeout: none}
"""


def read(text: str) -> tuple[Manifest, MarkedData]:
    return manifests.read_manifest(text)


def leaves(kind: type[msgspec.Struct], path: str) -> dict[str, object]:
    """Every key below a struct, with its annotation."""
    found: dict[str, object] = {}
    for name, annotation in validation.list_fields(kind).items():
        described = any(isinstance(one, msgspec.Meta) for one in get_args(annotation))
        inner = None if described else validation.find_struct(annotation)
        found |= leaves(inner, f"{path}.{name}") if inner else {f"{path}.{name}": annotation}
    return found


def one(key: str, text: str | None = MANIFEST) -> SettingExplanation:
    found = explain_settings.explain_setting(key, *(read(text) if text else (None, None)))
    assert len(found) == 1
    return found[0]


ALL = {
    **leaves(RuntimeSettings, "runtime"),
    **leaves(AgentDefaults, "agents.NAME"),
    **leaves(FleetSettings, "fleet"),
}


def faults(annotation: object) -> list[str]:
    """Return what a field lacks: a sentence that says what it means, and the unit of a number."""
    metas = [meta for meta in get_args(annotation) if isinstance(meta, msgspec.Meta)]
    meta = metas[0] if metas else msgspec.Meta()
    unit = (meta.extra_json_schema or {}).get("x-unit")
    is_number = re.search(r"\b(int|float)\b", str(get_args(annotation)[:1] or annotation))
    lacks = [] if (meta.description or "").endswith(".") else ["meaning"]
    return lacks + (["unit"] if is_number and unit not in get_args(Unit) else [])


@pytest.mark.parametrize(
    ("annotation", "lacks"),
    [
        (int, ["meaning", "unit"]),
        (Annotated[int, msgspec.Meta(ge=1)], ["meaning", "unit"]),
        (Annotated[int | None, msgspec.Meta(description="Cycles.")], ["unit"]),
        (Annotated[float, msgspec.Meta(extra_json_schema={"x-unit": "days"})], ["meaning"]),
        (Annotated[str, msgspec.Meta(description="")], ["meaning"]),
    ],
)
def test_an_incomplete_setting_is_found(annotation, lacks):
    """Without its unit or its meaning it fails the next test."""
    assert faults(annotation) == lacks


def test_every_setting_has_a_default():
    """An empty section is a valid one."""
    for kind in (RuntimeSettings, AgentDefaults, FleetSettings):
        assert not any(field.required for field in msgspec.structs.fields(kind))


@pytest.mark.parametrize("key", ALL)
def test_every_setting_says_what_it_means(key):
    """Each has a sentence as its description, and a default of its own type."""
    assert faults(ALL[key]) == []
    metas = [meta for meta in get_args(ALL[key]) if isinstance(meta, msgspec.Meta)]
    explained = one(key, None)
    assert explained.meaning == metas[0].description
    assert explained.value == explained.default
    assert explained.origin == "default"


def test_every_default_lies_within_its_bounds():
    """The defaults pass the very check that a manifest has to pass."""
    plain = msgspec.to_builtins(RuntimeSettings(), enc_hook=str, builtin_types=())
    text = {
        group: {
            name: str(value) if isinstance(value, Duration) else value
            for name, value in msgspec.structs.asdict(getattr(RuntimeSettings(), group)).items()
        }
        for group in plain
    }
    marked = MarkedData({"runtime": text}, {}, "defaults")
    assert runtime_settings.resolve_settings(marked) == Settings()


def test_without_a_manifest_the_defaults_are_in_force():
    """Rekindle works before anything is configured."""
    assert runtime_settings.resolve_settings(None) == Settings()
    assert runtime_settings.resolve_settings(read("version: 1\n")[1]) == Settings()


def test_the_manifest_overrides_what_it_names_and_nothing_else():
    """One key that is set leaves its neighbours at their defaults."""
    runtime = runtime_settings.resolve_settings(read(MANIFEST)[1]).runtime
    assert runtime.relay.max_relay_tokens == 3_000
    assert runtime.watch.silence == 1_200
    assert runtime.watch.tool_timeout == float("inf")
    assert runtime.watch.every == RuntimeSettings().watch.every
    assert runtime.relay.token_threshold_percent == RuntimeSettings().relay.token_threshold_percent
    assert runtime.restart == RuntimeSettings().restart


@pytest.mark.parametrize(
    "key", ["runtime.relay.max_relay_tokens", "relay.max_relay_tokens", "max_relay_tokens"]
)
def test_a_setting_is_found_by_its_key_or_the_end_of_it(key):
    """The whole key, its last parts and its last part alone mean the same."""
    assert one(key) == SettingExplanation(
        "runtime.relay.max_relay_tokens",
        3_000,
        2_000,
        "tokens",
        "rekindle.yaml:10",
        one(key, None).meaning,
    )


def test_a_group_is_explained_by_its_name():
    """The beginning of a key explains all keys below it."""
    manifest, marked = read(MANIFEST)
    found = explain_settings.explain_setting("runtime.restart", manifest, marked)
    assert [each.key.removeprefix("runtime.restart.") for each in found] == list(
        validation.list_fields(runtime_settings.RestartSettings)
    )
    assert len(explain_settings.explain_setting("runtime", manifest, marked)) == len(
        leaves(RuntimeSettings, "runtime")
    )


@pytest.mark.parametrize(
    ("key", "value", "origin"),
    [
        ("runtime.watch.silence", Duration(1_200), "rekindle.yaml:11"),
        ("runtime.watch.tool_timeout", Duration("inf"), "rekindle.yaml:11"),
        ("runtime.watch.every", Duration(15), "default"),
        ("agents.trades.cycles", 3, "rekindle.yaml:5"),
        ("agents.books.cycles", 10, "default"),
        ("store.lock_wait_seconds", runtime_settings.LOCK_WAIT_SECONDS, "fixed"),
        ("snapshot_every_bytes", runtime_settings.SNAPSHOT_EVERY_BYTES, "fixed"),
    ],
)
def test_the_origin_names_who_said_so(key, value, origin):
    """A value comes from a line of the manifest, from the defaults, or it is fixed."""
    found = one(key)
    assert (found.value, found.origin) == (value, origin)


def test_a_value_that_repeats_the_default_still_names_its_line():
    """Its origin matters, even if it makes no difference."""
    text = "version: 1\nruntime:\n  loops:\n    stale_after_days: 14\n"
    assert one("stale_after_days", text).origin == "rekindle.yaml:4"


def test_the_end_of_an_agents_key_explains_it_for_every_agent():
    """Without an agent's name each of them is shown."""
    found = explain_settings.explain_setting("cycles", *read(MANIFEST))
    assert [(each.key, each.value) for each in found] == [
        ("agents.trades.cycles", 3),
        ("agents.books.cycles", 10),
    ]


@pytest.mark.parametrize("manifest", [None, MANIFEST])
def test_everything_is_explained_once(manifest):
    """The list is complete and holds no key twice."""
    found = explain_settings.explain_settings(*(read(manifest) if manifest else (None, None)))
    keys = [each.key for each in found]
    assert len(keys) == len(set(keys))
    assert leaves(RuntimeSettings, "runtime").keys() <= set(keys)
    assert FIXED.keys() <= set(keys)
    assert all(each.meaning for each in found)


@pytest.mark.parametrize(
    ("key", "like"),
    [
        ("max_relay_token", "max_relay_tokens"),
        ("runtime.relay.max_relay_tokns", "runtime.relay.max_relay_tokens"),
        ("stale_days", "stale_after_days"),
    ],
)
def test_an_unknown_key_suggests_the_nearest(key, like):
    """A mistyped key is refused with the one that was probably meant."""
    with pytest.raises(NotFoundError, match=key) as refused:
        explain_settings.explain_setting(key, None, None)
    assert f"`{like}`" in refused.value.hint


def test_a_key_like_no_other_points_to_the_list():
    """If nothing is similar, the hint names the command that lists all."""
    with pytest.raises(NotFoundError) as refused:
        explain_settings.explain_setting("zzzz", None, None)
    assert "config explain" in refused.value.hint


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("    max_relay_tokens: 3", "max_relay_tokens"),
        ("    max_relay_tokens: lots", "max_relay_tokens"),
        ("    token_threshold_percent: 101", "token_threshold_percent"),
        ("    strategy: forget", "strategy"),
        ("    max_relay_tokns: 3000", "max_relay_tokns"),
    ],
)
def test_a_wrong_value_names_its_line(line, named):
    """Out of bounds, of the wrong type or unknown: file and line are told."""
    marked = read(f"version: 1\nruntime:\n  relay:\n{line}\n")[1]
    with pytest.raises(ManifestError, match=named) as refused:
        runtime_settings.resolve_settings(marked)
    assert refused.value.line == 4
    assert str(refused.value).startswith("rekindle.yaml:4: ")
    assert refused.value.hint


@pytest.mark.parametrize("written", ["10", "ten", "-1s", "1w", "nans", "infs", "s", "''"])
def test_a_wrong_duration_names_its_line(written):
    """A duration needs a number and a unit."""
    marked = read(f"version: 1\nruntime:\n  watch:\n    every: {written}\n")[1]
    with pytest.raises(ManifestError, match=r"every: .*duration") as refused:
        runtime_settings.resolve_settings(marked)
    assert refused.value.line == 4


@given(st.integers(0, 999_999), st.sampled_from("smhd"))
def test_a_duration_is_read_back_as_it_is_printed(amount, unit):
    """Printed and parsed again it is the same time, in the largest unit that fits."""
    found = parse_duration(f"{amount}{unit}")
    assert parse_duration(str(found)) == found


@pytest.mark.parametrize("written", ["0s", "10s", "15m", "2h", "3d", "none", "0.5s", "90s"])
def test_a_duration_is_printed_as_people_write_it(written):
    """The usual spellings are kept, fractions too."""
    assert str(parse_duration(written)) == written


def test_the_reference_manifest_holds_nothing_that_is_not_explained():
    """Every key under `runtime:` there is a setting here, and at the same default."""
    if not REFERENCE.is_file():
        pytest.skip("the reference manifest is not beside this checkout")
    manifest, marked = read(REFERENCE.read_text(encoding="utf-8"))
    explained = {each.key: each for each in explain_settings.explain_settings(manifest, marked)}
    named = {
        validation.join_path(path)
        for path in marked.lines
        if path[0] == "runtime" and len(path) == 3
    }
    added = {
        "relay.summarizer_max_usd",
        "relay.summarizer",
        "brief.max_usd",
        "stall.tell",
        "stall.pause",
        "stall.ask",
        "questions.deadline",
        "questions.wait",
        "watch.idle_call",
        "progress.paced_after",
        "progress.max_launches",
        "progress.max_hours",
        "stall.identical",
        "progress.max_usd",
        "snapshots.take",
        "metrics.prometheus",
        "metrics.otlp",
        "accounts.switch",
    }
    ours = {f"runtime.{key}" for key in added}
    assert named == leaves(RuntimeSettings, "runtime").keys() - ours
    different = {key for key in named if explained[key].value != explained[key].default}
    # A zone is only an example: the default is the machine's. Crashes are probed by default.
    assert different == {"runtime.brief.zone", "runtime.restart.max_crashes"}
    assert all(explained[key].origin.startswith("rekindle.yaml:") for key in named)
