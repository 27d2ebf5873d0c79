"""What several sweeps share."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from torture.test_kill import prepared

__all__ = ["prepared"]


@pytest.fixture
def in_memory(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is such a place: no fsync need wait for a disk there."""
    memory = Path("/dev/shm")  # noqa: S108 - a folder of its own is made there
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as folder:
        yield Path(folder)
