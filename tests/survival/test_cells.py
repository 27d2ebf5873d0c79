"""Some cells of the survival benchmark, with the real CLIs; `just survival` plays all of them."""

import pytest

from loopback.fixtures import require_namespaces
from survival import contenders
from survival.cell import Cell

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def play(tmp_path, claude_program, codex_program):
    require_namespaces()
    return lambda tool, cli, fault: Cell(contenders.make(tool, cli), fault, tmp_path / fault).run()


@pytest.mark.parametrize("fault", ["cli-killed", "tool-killed", "false-done"])
def test_rekindle_does_every_item_once(play, fault):
    """Nothing is lost, done twice or left over, and a person is not needed."""
    found = play("rekindle", "codex", fault)
    assert found.evidence, "the fault did not happen"
    assert (found.done, found.lost, found.twice) == (20, 0, 0), found
    assert (found.interventions, found.left) == ([], []), found
    # Two requests more than without a fault: it is prompted again, so it looks again.
    assert found.requests <= 26


def test_a_loop_continues_after_a_false_end(play):
    found = play("plain-loop", "codex", "false-done")
    assert found.evidence == "the model reported the end after 10 items"
    assert (found.done, found.lost, found.twice, found.interventions) == (20, 0, 0, [])


def test_a_loop_that_is_killed_needs_a_person(play):
    """Its CLI is killed too, so the cell starts the loop again, and counts that."""
    found = play("plain-loop", "codex", "both-killed")
    assert found.evidence.startswith("killed 2 processes")
    assert (found.done, found.interventions) == (20, ["it is not running"])


def test_repeated_work_is_noticed(play):
    """The tool call of a killed Claude Code continues, while the loop does its item again."""
    found = play("plain-loop", "claude-code", "cli-killed")
    assert found.evidence.startswith("killed 1 process of the CLI")
    assert (found.done, found.lost, found.twice) == (20, 0, 1)
