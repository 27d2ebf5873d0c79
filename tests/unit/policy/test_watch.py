"""Whether the watchdog starts a supervisor: the whole table, said once more in other words."""

import itertools

import pytest

from rekindle.policy import watch
from rekindle.policy.watch import Facts

SAID = 412
MARKERS = {
    None: False,
    "": True,  # a person's own: `touch .clean-exit`
    "\n": True,
    "412 done\n": True,
    "412": True,
    "4120 done\n": True,
    "done\n": True,
    "41 done\n": False,  # the operator has said since that it is to run
}
"""What `.clean-exit` may say, and whether it counts."""
CASES = list(
    itertools.product([True, False], ["", "running", "stopped"], [True, False], MARKERS.items())
)


@pytest.mark.parametrize(("supervised", "desired", "is_over", "marker"), CASES)
def test_every_row(supervised, desired, is_over, marker):
    """Started only where all of it says so: wanted, not over, not marked, and nobody is there."""
    says, is_marked = marker
    facts = Facts(supervised=supervised, desired=desired, is_over=is_over, marker=says, said=SAID)
    found = watch.verdict(facts)
    starts = not supervised and desired == "running" and not is_over and not is_marked
    assert found.starts is starts
    if supervised:
        assert found.words == "running"
    elif desired == "stopped":
        assert found.words == "stopped, as the operator said"


def test_every_row_is_reached():
    """No row stands behind one that takes all of its cases."""
    reached = {
        watch.verdict(
            Facts(supervised=supervised, desired=desired, is_over=over, marker=says, said=SAID)
        ).words
        for supervised, desired, over, (says, _) in CASES
    }
    staying = watch.verdict(Facts(supervised=False, desired="running", stays=True))
    assert not staying.starts
    assert reached | {staying.words} == {row.words for row in watch.ROWS}


def test_the_operator_s_word_outranks_every_marker():
    """Stopped stays stopped, whatever else is known."""
    for over, says in itertools.product([True, False], MARKERS):
        facts = Facts(supervised=False, desired="stopped", is_over=over, marker=says, said=SAID)
        assert watch.verdict(facts).words == "stopped, as the operator said"
