"""What a cycle does after each kind of end."""

from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest

from rekindle.documents.launch import ExitKind
from rekindle.policy.cycle import Fresh, Over, Resume, next_step
from rekindle.policy.sessions import Attempt
from rekindle.policy.settings import Restart

NOW = datetime(2026, 7, 2, tzinfo=UTC)
STOPS = {"interrupted", "limit", "overload", "network", "auth", "billing", "budget"}


def after(kind: str, since: datetime):
    tried = [Attempt(1, "s", resumes=False, exit=kind, ended=NOW, opened=True)]
    return next_step(tried, since=since, now=NOW, limits=Restart())


@pytest.mark.parametrize("kind", get_args(ExitKind))
def test_after_each_kind_of_end(kind):
    """What no retry mends ends the run; a full window has a fresh session; the rest goes on."""
    others = {"clean": Over("clean"), "context-full": Fresh(recovery=True)}
    expected = Over(kind) if kind in STOPS else others.get(kind, Resume("s"))
    assert after(kind, NOW - timedelta(hours=1)) == expected


@pytest.mark.parametrize("kind", sorted(STOPS))
def test_the_next_run_tries_again(kind):
    """What stopped an earlier run stops none that a person starts after it."""
    assert after(kind, NOW + timedelta(hours=1)) == Resume("s")
