"""What several sweeps share."""

from torture.test_kill import prepared

__all__ = ["prepared"]
