"""The explanations of every setting and threshold."""

import pytest

from rekindle.documents import manifest as manifests
from rekindle.errors import NotFoundError
from rekindle.formats import yaml_lines
from rekindle.policy.settings.explain_settings import explain_setting, explain_settings
from rekindle.thresholds import FIXED

TEXT = """\
version: 1
runtime:
  restart:
    cooldown: 7s
agents:
  trades:
    harness: codex
personas:
  careful:
    model: big
prices:
  big: {input: 1, output: 2}
pipelines:
  release:
    steps:
      - {id: build}
      - {id: check, strategy: {matrix: {from: build}}}
accounts:
  work: {harness: codex, config_dir: ~/work}
"""


def read():
    marked = yaml_lines.parse(TEXT, "x.yaml")
    return manifests.parse(TEXT, "x.yaml"), marked


def named(key, *given):
    (one,) = [each for each in explain_settings(*(given or (None, None))) if each.key == key]
    return one


def test_every_key_has_a_meaning_and_comes_once():
    for given in ((None, None), read()):
        every = explain_settings(*given)
        assert all(one.meaning and one.origin for one in every)
        assert len({one.key for one in every}) == len(every)
        assert [one.key for one in every if one.origin == "fixed"] == sorted(FIXED)
        assert every[0].key.startswith("runtime.")


def test_a_value_names_the_line_that_set_it():
    one = named("runtime.restart.cooldown", *read())
    assert (one.value, one.unit, one.origin) == (7.0, "", "x.yaml:4")
    assert named("runtime.progress.max_hours").unit == "hours"
    assert one.default == named("runtime.restart.cooldown").value != 7.0
    assert named("runtime.restart.cooldown").origin == "default"
    assert named("agents.trades.harness", *read()).value == "codex"
    assert named("personas.careful.model", *read()).origin == "x.yaml:10"
    assert named("prices.big.output", *read()).value == 2.0
    assert named("version", *read()).value == 1
    assert named("accounts.work.config_dir", *read()).value == "~/work"


def test_each_step_of_a_pipeline_has_its_own_keys():
    """A list has no key of its own for an item: the item's number takes its place."""
    assert named("pipelines.release.steps.1.id", *read()).value == "check"
    source = named("pipelines.release.steps.1.strategy.matrix.from", *read())
    assert (source.value, source.origin) == ("build", "x.yaml:17")
    assert named("pipelines.release.steps.0.strategy.matrix.from", *read()).value is None


def test_sections_without_an_entry_are_explained_by_a_name():
    keys = {one.key for one in explain_settings(None, None)}
    assert {"agents.NAME.harness", "personas.NAME.model", "prices.NAME.input"} <= keys
    with_entries = {one.key for one in explain_settings(*read())}
    assert not [key for key in with_entries if ".NAME." in key]


def test_the_last_part_of_a_key_is_enough():
    assert [one.key for one in explain_setting("max_cooldown", None, None)] == [
        "runtime.restart.max_cooldown"
    ]
    section = [one.key for one in explain_setting("restart", None, None)]
    assert len(section) > 2
    assert all(".restart." in f".{key}" for key in section)


@pytest.mark.parametrize(
    ("key", "hint"),
    [("max_cooldwon", "did you mean `max_cooldown`?"), ("zzzzzz", "lists all")],
)
def test_an_unknown_key_names_the_nearest(key, hint):
    with pytest.raises(NotFoundError, match="no setting named") as caught:
        explain_setting(key, None, None)
    assert hint in caught.value.hint
