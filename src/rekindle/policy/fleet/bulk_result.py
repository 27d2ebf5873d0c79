"""The result of an operation on many agents of a fleet."""

from collections.abc import Mapping

import msgspec

from rekindle.errors import RekindleError


class BulkResult(msgspec.Struct, frozen=True):
    """What an operation on many agents did. Each agent is in exactly one of the fields."""

    done: tuple[str, ...] = ()
    """Agents for which the engine has recorded the operation."""
    unchanged: tuple[str, ...] = ()
    """Agents for which nothing was left to do."""
    failed: Mapping[str, RekindleError] = {}
    """Why the operation failed for an agent. Repeat it for these agents only."""

    def require(self) -> None:
        """Raise the first error, if there is one."""
        for error in self.failed.values():
            raise error
