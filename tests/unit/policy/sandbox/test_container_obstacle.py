"""A host without a working OCI runtime explains what to do."""

import pytest

from rekindle.policy.sandbox.container_obstacle import TriedRuntime, explain_container_obstacle

HYBRID = "cgroups in hybrid mode not supported"


@pytest.mark.parametrize(("is_root", "names"), [(True, "(crun or runc)"), (False, "(crun)")])
def test_a_missing_runtime_can_be_installed(is_root, names):
    obstacle = explain_container_obstacle([], is_root=is_root)
    assert names in obstacle.words
    assert "apt install crun" in obstacle.hint


@pytest.mark.parametrize(
    ("error", "is_root", "hint"),
    [
        (HYBRID, False, "install runc and run as root"),
        ("unshare: Operation not permitted", False, "permit user namespaces"),
        ("no", True, "install the other runtime"),
    ],
)
def test_a_runtime_that_fails_is_named_with_its_error(error, is_root, hint):
    obstacle = explain_container_obstacle([TriedRuntime("crun", error)] * 2, is_root=is_root)
    assert obstacle.words == f"no container can be created here: crun: {error}"
    assert hint in obstacle.hint
    assert "`sandbox: off`" in obstacle.hint
