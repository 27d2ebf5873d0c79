"""What all tests share: a project in an empty folder, and a clock that the test moves."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rekindle.policy.settings import Settings
from rekindle.stores.files import FileStore

RELAY = """\
## Current Phase
Implementation

## Key Decisions Made
- Files over a database: nothing to keep alive (2026-04-09)

## Next Action
Write the parser

## Open Questions
- Which encoding?
"""


class ManualClock:
    """Time that moves when the test says so."""

    def __init__(self) -> None:
        self.time = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def forward(self, **amount: float) -> None:
        self.time += timedelta(**amount)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def open_store(tmp_path: Path, clock: ManualClock) -> Callable[..., FileStore]:
    """Another front door to the same folder, as another process or another host would have."""

    def opened(host: str = "here", settings: Settings | None = None) -> FileStore:
        return FileStore(tmp_path, host=host, settings=settings or Settings(), clock=clock)

    return opened


@pytest.fixture
def store(open_store: Callable[..., FileStore]) -> FileStore:
    made = open_store()
    made.create("trades")
    return made
