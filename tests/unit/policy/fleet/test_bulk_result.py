"""Results of operations on many agents."""

import pytest

from rekindle.errors import NotOnFleetError
from rekindle.policy.fleet.bulk_result import BulkResult

pytestmark = pytest.mark.pure


def test_the_first_error_is_raised():
    BulkResult(done=("a",)).require()
    with pytest.raises(NotOnFleetError, match="agent b"):
        BulkResult(failed={"b": NotOnFleetError("b"), "c": NotOnFleetError("c")}).require()
