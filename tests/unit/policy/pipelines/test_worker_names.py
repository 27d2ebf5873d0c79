"""The names of the agents that work on steps are derived, valid and distinct."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from rekindle.documents.manifest_pipelines import STEP_ID_PATTERN
from rekindle.formats.identifiers import AGENT_NAME, make_slug
from rekindle.policy.pipelines.worker_names import (
    NAME_ROOM,
    find_last_run,
    is_worker_name,
    name_worker,
)

IDS = st.from_regex(rf"\A{STEP_ID_PATTERN}\Z").map(lambda text: text[: NAME_ROOM // 2])
KEYS = st.text(max_size=90).map(make_slug)


def test_a_name_consists_of_the_pipeline_the_run_the_step_and_the_key():
    assert name_worker("review", 7, "plan") == "review-7-plan"
    assert name_worker("review", 7, "implement", "billing") == "review-7-implement-billing"


def test_a_long_name_ends_with_a_hash_of_the_whole_name():
    names = [name_worker("review", 7, "implement", f"{'module-' * 9}{end}") for end in "ab"]
    assert [len(name) for name in names] == [63, 63]
    assert names[0][:-6] == names[1][:-6]
    assert names[0] != names[1]
    assert names[0] == name_worker("review", 7, "implement", f"{'module-' * 9}a")


def test_the_longest_names_leave_room_for_the_run_and_a_hash():
    pipeline, step = "p" * 8, "s" * (NAME_ROOM - 8)
    start = f"{pipeline}-999999-{step}"
    assert name_worker(pipeline, 999_999, step) == start
    assert name_worker(pipeline, 999_999, step, "item-1") == f"{start}-item-1"
    long = name_worker(pipeline, 999_999, step, "item-10")
    assert long.startswith(f"{start}-")
    assert len(f"{start}-item-1") == len(long) == 63


def test_two_steps_never_share_a_name():
    """A step may be called like another step with a key."""
    ids = ["build", "build-docs", "build-docs-all", "test"]
    pairs = [
        ("build", "docs"),
        ("build-docs", ""),
        ("build-docs", "all"),
        ("build", "docs-all"),
        ("build-docs-all", ""),
        ("build", ""),
        ("test", "1"),
    ]
    names = Counter(name_worker("a", 1, step, key, ids) for step, key in pairs)
    assert set(names.values()) == {1}
    assert {"a-1-build", "a-1-build-docs", "a-1-build-docs-all", "a-1-test-1"} <= set(names)


def test_names_of_workers_are_recognized():
    assert is_worker_name("ship-12-plan", "ship")
    assert not is_worker_name("ship-plan", "ship")
    assert not is_worker_name("ship-12", "ship")
    assert not is_worker_name("ship-12-3", "ship")
    assert not is_worker_name("shipping-12-plan", "ship")


def test_the_last_run_is_found_in_names_of_workers_and_branches():
    names = ["ship-3-plan", "ship/2", "ship-11-build-a/work", "ship", "ship-old", "trade-40-a"]
    assert find_last_run(names, "ship") == 11
    assert find_last_run(["ship/4-build"], "ship") == 4
    assert find_last_run(["ship/7/_run/result"], "ship") == 7
    assert find_last_run(["shipping-4-plan"], "ship") == 0


@given(IDS, st.integers(1, 999_999), IDS, KEYS)
def test_the_run_of_every_worker_is_found_in_its_name(pipeline, run, step, key):
    assert find_last_run([name_worker(pipeline, run, step, key)], pipeline) == run


@given(IDS, st.integers(1, 999_999), IDS, KEYS)
def test_every_name_is_a_valid_agent_name_of_its_pipeline(pipeline, run, step, key):
    name = name_worker(pipeline, run, step, key)
    assert AGENT_NAME.match(name)
    assert is_worker_name(name, pipeline)


@given(st.lists(IDS, min_size=1, max_size=4, unique=True), st.lists(KEYS, max_size=4, unique=True))
def test_all_names_of_a_run_are_distinct(ids, keys):
    pairs = [(step, key) for step in ids for key in ["", *keys]]
    assert len({name_worker("p", 1, step, key, ids) for step, key in pairs}) == len(pairs)
