"""The tests that every harness must pass, built-in or from a plugin.

Subclass it in a test module, with the harness and the folder of its recordings:

    class TestMine(HarnessContract):
        harness = mine
        recordings = Path(__file__).parent / "recordings"

pytest collects the inherited tests; they run on the recordings, as fast as unit tests. The expected
results are beside the recordings, in `expected.json`: see `rekindle.testing.expected_results`. A
test of a feature that the CLI lacks, by its `Capabilities`, is skipped.
"""

from rekindle.testing.hook_contract import HookContract
from rekindle.testing.launch_contract import LaunchContract
from rekindle.testing.question_contract import QuestionContract
from rekindle.testing.recording_contract import RecordingContract


class HarnessContract(LaunchContract, QuestionContract, HookContract, RecordingContract):
    """All tests of a harness."""
