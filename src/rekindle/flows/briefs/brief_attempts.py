"""Count failed attempts to write a brief, so that every process backs off before it retries."""

from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec

from rekindle.policy.exits.backoff import double_pause
from rekindle.policy.settings.runtime_settings import BRIEF_RETRY_MOST_SECONDS, BRIEF_RETRY_SECONDS
from rekindle.system.files import durable_files


class BriefAttempts(msgspec.Struct, frozen=True):
    """Failed attempts to write the next brief."""

    seq: int = 0
    """Event number of the previous brief."""
    tries: int = 0
    at: datetime | None = None

    def is_resting(self, now: datetime) -> bool:
        if self.at is None:
            return False
        pause = double_pause(BRIEF_RETRY_SECONDS, self.tries, BRIEF_RETRY_MOST_SECONDS)
        return abs((now - self.at).total_seconds()) < pause


def read_attempts(file: Path, seq: int) -> BriefAttempts:
    """Return the failed attempts since the brief with event number `seq`."""
    data = durable_files.read_bytes(file)
    with suppress(msgspec.MsgspecError):
        attempts = msgspec.json.decode(data or b"", type=BriefAttempts)
        return attempts if attempts.seq == seq else BriefAttempts(seq)
    return BriefAttempts(seq)


def record_attempt(file: Path, seq: int, now: datetime) -> None:
    """Record another attempt to write a brief. `seq` is the previous brief's event number."""
    attempts = BriefAttempts(seq, read_attempts(file, seq).tries + 1, now)
    durable_files.replace_file(file, msgspec.json.encode(attempts))
