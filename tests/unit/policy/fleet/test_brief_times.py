"""The moments at which a fleet's agents write their briefs."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from rekindle.documents import events
from rekindle.policy.fleet.agent_registry import AgentDefinition, RegisteredAgent
from rekindle.policy.fleet.brief_times import (
    find_brief_delay,
    find_brief_window,
    find_due_morning,
    find_next_time,
    find_zone,
)
from rekindle.policy.fleet.pipeline_worker import PipelineWorker
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.projection import Projection
from rekindle.policy.settings.runtime_settings import BriefSettings, RuntimeSettings
from rekindle.policy.supervision.next_move import AgentLimits
from rekindle.thresholds.fleet_limits import (
    FLEET_BRIEF_AGENT_SECONDS,
    FLEET_BRIEF_WINDOW_SECONDS,
)

DAY = timedelta(days=1)
BEGAN = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)
SIX = datetime(2026, 4, 10, 6, 0, tzinfo=UTC)
NAME = "default/trades"


def make_agent(brief=BriefSettings(), agents=100, new=(), **more):  # noqa: B008 - it is frozen
    launched = events.LaunchStarted(ts=BEGAN, seq=2, launch="l", cycle=1, session="s", harness="h")
    limits = AgentLimits(runtime=RuntimeSettings(brief=brief))
    return RegisteredAgent(
        agent="trades",
        definition=AgentDefinition(
            manifest="", pool="p", heartbeat_seconds=5, limits=limits, **more
        ),
        projection=fold_events(Projection(agent="trades"), [launched, *new]),
        fleet_agents=agents,
    )


def make_brief(ts, morning="2026-04-10"):
    return events.BriefMade(ts=ts, seq=9, morning=morning, closes=True)


def test_an_agent_has_the_same_moment_every_day():
    delay = find_brief_delay(NAME, 100)
    assert timedelta(0) < delay < find_brief_window(100)
    agent = make_agent()
    first = find_next_time(agent, NAME, BEGAN)
    assert first == SIX + delay
    assert find_due_morning(agent, NAME, first - timedelta(seconds=1)) == ""
    assert find_due_morning(agent, NAME, first) == "2026-04-10"
    assert find_next_time(agent, NAME, first) == first + DAY


def test_the_window_grows_with_the_fleet_up_to_a_limit():
    assert find_brief_window(0) == timedelta(0)
    assert find_brief_window(10) == timedelta(seconds=10 * FLEET_BRIEF_AGENT_SECONDS)
    assert find_brief_window(10**6) == timedelta(seconds=FLEET_BRIEF_WINDOW_SECONDS)
    assert find_brief_delay(NAME, 0) == timedelta(0)


def test_agents_spread_evenly():
    """In each tenth of the window is about a tenth of a thousand agents."""
    window = find_brief_window(1_000)
    tenths = [int(10 * (find_brief_delay(f"default/a-{n}", 1_000) / window)) for n in range(1_000)]
    assert all(70 <= tenths.count(tenth) <= 130 for tenth in range(10))


def test_a_brief_that_was_missed_is_due_whenever_the_workflow_starts_again():
    agent = make_agent()
    assert find_due_morning(agent, NAME, SIX + 5 * DAY + timedelta(hours=5)) == "2026-04-15"


def test_an_agent_that_has_not_worked_since_its_brief_needs_no_timer():
    agent = make_agent(new=[make_brief(SIX + timedelta(minutes=10))])
    assert find_due_morning(agent, NAME, SIX + timedelta(hours=1)) == ""
    assert find_next_time(agent, NAME, SIX + timedelta(hours=1)) is None
    work = events.Heartbeat(ts=SIX + timedelta(hours=2), seq=10, session="s")
    agent = msgspec.structs.replace(agent, projection=fold_events(agent.projection, [work]))
    next_day = SIX + DAY + find_brief_delay(NAME, 100)
    assert find_next_time(agent, NAME, SIX + timedelta(hours=3)) == next_day
    assert find_due_morning(agent, NAME, next_day) == "2026-04-11"


def test_a_new_agent_needs_no_timer():
    agent = msgspec.structs.replace(make_agent(), projection=Projection(agent="trades"))
    assert find_next_time(agent, NAME, BEGAN) is None


@pytest.mark.parametrize(
    "more",
    [
        {"brief": BriefSettings(at="never")},
        {"worker": PipelineWorker(workflow="w", attempt=1)},
    ],
    ids=["never", "pipeline"],
)
def test_some_agents_have_no_briefs(more):
    agent = make_agent(**more)
    assert find_next_time(agent, NAME, BEGAN) is None
    assert find_due_morning(agent, NAME, SIX + DAY) == ""


def test_the_hour_is_in_the_agents_zone():
    agent = make_agent(BriefSettings(at="06:30", zone="Asia/Tokyo"), agents=0)
    assert find_next_time(agent, NAME, BEGAN) == datetime(2026, 4, 9, 21, 30, tzinfo=UTC)
    assert find_zone(BriefSettings(zone="Nowhere/Land")) == UTC
