"""Why no sandbox can be made, and the remedy."""

import pytest

from rekindle.policy.sandbox.obstacle import HostFacts, explain_obstacle

FAILED = "setting up uid map: Permission denied"


@pytest.mark.parametrize(
    ("facts", "words", "remedy"),
    [
        (HostFacts(is_linux=False, is_installed=False), "Linux only", "container"),
        (HostFacts(is_installed=False), "not installed", "sudo apt install bubblewrap"),
        (HostFacts(error=FAILED), FAILED, "permit user namespaces and mounts of /proc"),
        (
            HostFacts(error=FAILED, apparmor_restricts=True),
            FAILED,
            "kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        (
            HostFacts(error=FAILED, namespaces_off="user.max_user_namespaces=15000"),
            FAILED,
            "sudo sysctl -w user.max_user_namespaces=15000",
        ),
    ],
)
def test_each_obstacle_has_a_remedy(facts, words, remedy):
    obstacle = explain_obstacle(facts)
    assert words in obstacle.words
    assert remedy in obstacle.hint
    assert "`sandbox: off`" in obstacle.hint


def test_a_host_on_which_the_probe_succeeds_has_no_obstacle():
    """AppArmor's setting alone is not an obstacle: a profile may permit bubblewrap."""
    assert explain_obstacle(HostFacts(apparmor_restricts=True)) is None
