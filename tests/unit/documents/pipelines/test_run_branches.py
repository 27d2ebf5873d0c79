"""The names of a run's branches."""

from rekindle.documents.pipelines.run_branches import name_merge_branch, name_result_branch


def test_no_branch_is_below_another_one():
    """Git cannot store a branch `a/b` beside a branch `a`."""
    names = [
        name_result_branch("ship", 7),
        name_merge_branch("ship", 7, "build", "workers"),
        name_merge_branch("ship", 7, "build", "inputs"),
        name_merge_branch("ship", 7, "", "result"),
    ]
    assert names == [
        "rekindle/ship/7",
        "rekindle/ship/7-build",
        "rekindle/ship/7-build-inputs",
        "rekindle/ship/7-result",
    ]
    assert not any(other.startswith(f"{name}/") for name in names for other in names)
