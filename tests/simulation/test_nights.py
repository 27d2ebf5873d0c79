"""The night of an agent agrees with its state, for every log that the simulation produces."""

from datetime import timedelta

import msgspec
import pytest
from host import YEAR, Host
from oracle import NAME
from scenarios import drawn

from rekindle.documents import events
from rekindle.documents.screens.agent_night import AgentNight
from rekindle.policy.night.build_night import NightInputs, build_night
from rekindle.thresholds.screens import NIGHT_POINTS

SEEDS = range(10)
YEARS_EACH = 0.05


class Recorded(Host):
    """A host that keeps its agent's whole log, and after which events the agent was paused."""

    def __init__(self, scenario, seed):
        self.happened, self.paused = [], set()
        super().__init__(scenario, seed)

    def heard(self, event):
        super().heard(event)
        self.happened.append(event)
        if self.store.read(NAME).committed.run.is_safe:
            self.paused.add(event.seq)


@pytest.fixture(scope="module")
def hosts():
    hosts = [Recorded(drawn(seed), seed) for seed in SEEDS]
    for host in hosts:
        host.live(YEARS_EACH * YEAR)
    return hosts


@pytest.fixture(params=SEEDS)
def host(request, hosts):
    return hosts[request.param]


def build(host, **period):
    return build_night(NAME, host.happened, NightInputs(now=host.clock(), **period))


def build_whole(host):
    """Return all of the log as one night, whatever the clock was set to."""
    times = [event.ts for event in host.happened]
    now = max(*times, host.clock()) + timedelta(days=1)
    return build_night(NAME, host.happened, NightInputs(now=now, since=min(times)))


def test_every_launch_is_in_one_span(host):
    started = [one for one in host.happened if isinstance(one, events.LaunchStarted)]
    spans = [span for span in build_whole(host).spans if span.lane == "session" and span.launch]
    assert len(started) > 10
    assert sorted(span.first for span in spans) == sorted(one.seq for one in started)
    assert len({span.launch for span in spans}) == len(spans)
    ended = {one.launch: one for one in host.happened if isinstance(one, events.LaunchEnded)}
    for span in spans:
        assert span.exit == (ended[span.launch].exit if span.launch in ended else "")
        assert span.end is None or span.end >= span.start


def test_the_agent_is_in_safe_mode_in_the_spans_that_say_so(host):
    """The projection, which all screens use for the current state, agrees after every event."""
    spans = [span for span in build_whole(host).spans if span.lane == "safe"]
    shown = set()
    for span in spans:
        end = span.last if span.end else host.happened[-1].seq + 1
        shown |= set(range(span.first, end))
    assert shown & {one.seq for one in host.happened} == host.paused


def test_some_agents_were_in_safe_mode(hosts):
    """Otherwise the comparison above would prove nothing."""
    assert sum(len(host.paused) > 10 for host in hosts) >= 2


def test_every_night_of_a_life_can_be_built(host):
    """Each is bounded, and is the same after a round trip through JSON."""
    now, lines = host.clock(), 0
    for days in range(8):
        until = now - timedelta(days=2 * days)
        night = build(host, since=until - timedelta(hours=12), until=until)
        assert msgspec.json.decode(msgspec.json.encode(night), type=AgentNight) == night
        assert all(night.since <= mark.at <= night.until for mark in night.marks)
        assert max(len(night.window), len(night.spend)) <= NIGHT_POINTS
        assert all(line.text and line.first <= line.last for line in night.lines)
        lines += len(night.lines)
    assert lines > 0
