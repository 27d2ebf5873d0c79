"""Tests that every harness must pass, whether it is built in or from a plugin.

In a test module, write a subclass that names the harness and the folder with its recordings:

    class TestMine(HarnessContract):
        harness = mine
        recordings = Path(__file__).parent / "recordings"

pytest collects the inherited tests, which read the recordings and are as fast as unit tests. The
expected results are beside the recordings, in `expected.json`: see
`rekindle.testing.expected_results`. Tests for features that the CLI lacks, according to its
`Capabilities`, are skipped.
"""

from rekindle.testing.hook_contract import HookContract
from rekindle.testing.launch_contract import LaunchContract
from rekindle.testing.question_contract import QuestionContract
from rekindle.testing.recording_contract import RecordingContract


class HarnessContract(LaunchContract, QuestionContract, HookContract, RecordingContract):
    """All contract tests for a harness."""
