"""Decide whether an agent's hook reports may wait on their host.

On a fleet, every fold of the inbox costs a call to the engine. Reports of tool calls only show that
the agent is active, which its own host sees in the inbox. Another host needs everything else.
"""

import msgspec

from rekindle.documents.manifest_keys import Budget
from rekindle.policy.projection.projection import Projection
from rekindle.policy.supervision.budget import RunSpending, is_worth_recording
from rekindle.thresholds.fleet_limits import FLEET_SPENDING_SHARE


def shows_only_activity(committed: Projection, current: Projection) -> bool:
    """Return whether the inbox only adds activity to the log."""
    same = msgspec.structs.replace(
        current,
        last_active=committed.last_active,
        heard=committed.heard,
        cursors=committed.cursors,
        seen=committed.seen,
    )
    return same == committed


def is_spending_needed(before: RunSpending, now: RunSpending, cap: Budget | None) -> bool:
    """Return whether another host would need the new spending to stay within the budget."""
    return cap is not None and is_worth_recording(before, now, cap, FLEET_SPENDING_SHARE)
