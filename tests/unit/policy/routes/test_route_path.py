"""How a cycle continues on the route that was chosen for it."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from rekindle.documents.launches.route import Route
from rekindle.policy.exits.restart import EnterSafeMode, StopRun, WaitUntil
from rekindle.policy.exits.session_choice import ResumeSession, StartFresh
from rekindle.policy.projection.sessions import NOT_IN_LOG, LaunchRecord
from rekindle.policy.routes.choose_route import RouteBlock, RouteChoice
from rekindle.policy.routes.route_path import RoutePath
from rekindle.policy.settings.runtime_settings import RuntimeSettings
from rekindle.policy.supervision.run_moves import HandOff, RunState, decide_next_move

NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
WORK, OWN, CODEX = Route("claude-code", "work"), Route("claude-code", "own"), Route("codex")
LAST = LaunchRecord(
    1,
    "s",
    resumes=False,
    harness="claude-code",
    account="work",
    seq=5,
    exit="limit",
    ended=NOW - timedelta(seconds=1),
    ended_seq=6,
    opened=True,
    resets_at=int(LATER.timestamp()),
)


def decide(choice, *launches, checkpoint=0, carries=True):
    return decide_next_move(
        RunState(),
        launches,
        now=NOW,
        runtime=RuntimeSettings(),
        checkpoint=checkpoint,
        choice=choice,
        carries=carries,
    )


def test_another_account_continues_the_same_session():
    """The transcript is carried over, so no checkpoint is needed."""
    assert decide(RouteChoice(OWN), LAST) == ResumeSession("s")
    # Another CLI was chosen before, but the account is free by the time of the launch.
    assert decide(RouteChoice(OWN), LAST, checkpoint=7) == ResumeSession("s")


def test_another_cli_continues_from_a_checkpoint():
    """First the checkpoint is written, then a fresh session starts from it."""
    assert decide(RouteChoice(CODEX), LAST) == HandOff()
    step = decide(RouteChoice(CODEX), LAST, checkpoint=7)
    assert isinstance(step, StartFresh)
    assert not step.recovery
    assert step.why == "claude-code/work: a usage limit, so the work continues on codex"


def test_an_account_of_a_cli_that_cannot_carry_sessions_gets_a_checkpoint():
    """It is like another CLI."""
    assert decide(RouteChoice(OWN), LAST, carries=False) == HandOff()


def test_a_handed_off_session_never_continues_elsewhere():
    """The checkpoint replaces it even if its CLI could carry it."""
    handed = msgspec.structs.replace(LAST, exit="handoff")
    assert decide(RouteChoice(OWN), handed) == HandOff()
    step = decide(RouteChoice(OWN), handed, checkpoint=7)
    assert isinstance(step, StartFresh)
    assert "at your request" in step.why


def test_without_checkpoints_the_recorded_state_must_do():
    """A fresh session recovers from the log, as after a session that cannot be resumed."""
    step = decide(RouteChoice(CODEX), LAST, checkpoint=NOT_IN_LOG)
    assert isinstance(step, StartFresh)
    assert step.recovery


def test_a_launch_that_opened_nothing_leaves_nothing_to_hand_over():
    """The next route starts from the relay, like the first one."""
    refused = msgspec.structs.replace(LAST, opened=False)
    step = decide(RouteChoice(CODEX), refused)
    assert isinstance(step, StartFresh)
    assert not step.recovery


def test_the_wait_is_that_of_the_chosen_route():
    """The exit of a launch on another route no longer counts."""
    wait = WaitUntil(NOW + timedelta(minutes=1), "limit", 3)
    assert decide(RouteChoice(CODEX, wait), LAST) == wait
    assert decide(RouteChoice(WORK, WaitUntil(LATER, "limit", 5)), LAST) == WaitUntil(
        LATER, "limit", 5
    )


def test_a_run_that_does_not_wait_ends_if_all_routes_are_limited():
    """`limits: {wait: false}` applies to the chosen route as to a single one."""
    path = RoutePath(RouteChoice(CODEX, WaitUntil(LATER, "limit", 3)), LAST)
    assert path.decide_hold(waits=False) == StopRun("limit")
    assert RoutePath(RouteChoice(CODEX), LAST).decide_hold(waits=False) is None


def test_a_hold_applies_before_the_first_launch_too():
    """The account's reserve is kept even if no launch of this cycle has used it."""
    wait = WaitUntil(LATER, "limit", -1)
    assert decide(RouteChoice(WORK, wait)) == wait


def test_expired_logins_everywhere_need_a_person():
    """The agent waits in safe mode, whichever route is chosen."""
    wait = WaitUntil(LATER, "auth", 3)
    stuck = RouteChoice(CODEX, wait, {CODEX: RouteBlock("auth", LATER, 3)})
    expired = msgspec.structs.replace(LAST, exit="auth")
    assert decide(stuck, expired) == EnterSafeMode("auth")
    assert isinstance(decide(RouteChoice(WORK, wait), expired), EnterSafeMode)


@pytest.mark.parametrize("choice", [None, RouteChoice(WORK)])
def test_work_that_stays_is_decided_as_before(choice):
    """Without another route, a limit is waited out and a crash resumes the session."""
    crashed = msgspec.structs.replace(LAST, exit="crash")
    assert decide(choice, crashed) == ResumeSession("s")
    assert decide(choice, LAST) == WaitUntil(LATER, "limit", 5)
    assert not RoutePath(choice, LAST).is_moving
