"""The morning page: the spending in its window, and the state of an unsupervised agent."""

from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest

from days import Shop
from rekindle.documents import events
from rekindle.documents import relay as relays
from rekindle.documents.screens import morning_page
from rekindle.flows.briefs.build_morning_page import MorningPageBuilder
from rekindle.flows.operator.read_rows import RowReader
from rekindle.policy.exits import explain_reasons, stop_reasons
from rekindle.policy.projection import open_loops
from rekindle.policy.settings.runtime_settings import RuntimeSettings


@pytest.fixture
def shop(store, clock, tmp_path):
    return Shop(store, clock, tmp_path)


def page(shop, alive=()):
    zone, runtime = ZoneInfo("UTC"), RuntimeSettings()
    rows = RowReader(shop.store, {}, runtime, shop.clock, zone=zone, is_alive=alive.__contains__)
    found = MorningPageBuilder(shop.store, shop.clock(), zone, runtime, rows)
    return found.page("p", ["trades"])


def spend(shop, usd, **ago):
    with shop.store.writer("trades") as writer:
        then = shop.clock() - timedelta(**ago)
        writer.append(events.SummaryMade(ts=then, document="brief", how="headless", usd=usd))


def night(shop):
    return [moment.text for moment in page(shop).entries[0].night]


def test_the_cost_is_what_the_row_of_the_agent_says(shop):
    """This holds before a launch has ended: spending is recorded while a process runs."""
    spend(shop, 8.0, hours=2)
    with shop.store.writer("trades") as writer:
        now = shop.clock()
        noted = events.SpendRecorded(ts=now, launch="l", usd=1.25, tokens=1_300, unpriced=1)
        writer.append(events.RunStarted(ts=now), noted)
    found = page(shop)
    assert found.entries[0].cost == "~$1.25, ~1,300 tokens in this run"
    assert morning_page.render_headline(found).endswith(", ~$1.25, ~1,300 tokens in these runs")


def test_what_was_spent_before_the_day_is_not_of_it(shop):
    spend(shop, 8.0, days=30)
    spend(shop, 4.0, hours=40)
    spend(shop, 0.5, hours=1)
    assert night(shop) == ["spent $0.50"]


def test_what_was_resolved_long_ago_hides_nothing_of_the_day(shop):
    shop.store.submit(
        "trades", open_loops.propose_loop({}, "real", "something to be done", shop.clock())
    )
    shop.clock.forward(days=5)
    spend(shop, 0.25, hours=1)
    with shop.store.writer("trades") as writer:
        then = shop.clock() - timedelta(days=4)
        writer.append(events.LoopResolved(ts=then, id="real", reason="x"))
    assert "spent $0.25" in night(shop)


def begun(shop, session, process=""):
    with shop.store.writer("trades") as writer:
        now = shop.clock()
        writer.append(
            events.SessionStarted(ts=now, session=session, harness="claude-code", process=process)
        )
    shop.clock.forward(minutes=1)


def how(shop, *alive):
    (entry,) = page(shop, alive).entries
    return entry.state, entry.why


def test_a_session_of_ones_own_runs_was_killed_or_has_ended(shop):
    assert how(shop) == ("stopped", "not started yet")
    begun(shop, "s-1", "1:2:3")
    assert how(shop, "1:2:3") == ("running", "your own session")
    assert how(shop)[1] == "your last session was killed before it reported its end"
    with shop.store.writer("trades") as writer:
        writer.append(events.SessionEnded(ts=shop.clock(), session="s-1"))
    assert how(shop) == ("stopped", "your last session has ended")


def test_what_cannot_be_done_yet_is_not_asked_for(shop):
    assert page(shop).entries[0].brief == "none yet"
    begun(shop, "s-1")
    assert page(shop).entries[0].brief == "none yet: rekindle brief trades"


@pytest.mark.parametrize("why", ["done", "claimed", "stalled", "waiting", "limit", "cycles"])
def test_a_run_that_is_over_has_the_words_of_its_outcome(shop, why):
    """It needs the operator only if its work is not done."""
    with shop.store.writer("trades") as writer:
        now = shop.clock()
        launch = {"ts": now, "launch": "l1", "cycle": 1, "session": "s"}
        writer.append(
            events.LaunchStarted(harness="command", **launch),
            events.LaunchEnded(exit="clean", **launch),
            events.RunEnded(ts=now, why=why, words="of its own"),
        )
    found = page(shop)
    (entry,) = found.entries
    row = stop_reasons.find_outcome(why)
    assert (entry.state, entry.label, entry.why) == (row.state, row.words, "of its own")
    asked = (
        [explain_reasons.render_continue_command(why, "trades", is_supervised=False)]
        if row.severity
        else []
    )
    assert [ask.command for ask in entry.asks] == asked
    assert f"trades: {row.words} (of its own)" in morning_page.render(found)
    assert row.words in morning_page.render_html(found)


def launched(shop, exit_kind, words="", **ago):
    """A launch that ended so, at that time."""
    with shop.store.writer("trades") as writer:
        then = shop.clock() - timedelta(**ago)
        known = {"launch": f"l{len(ago)}{ago}", "cycle": 1, "session": "s"}
        writer.append(
            events.CycleStarted(ts=then, cycle=1),
            events.LaunchStarted(ts=then, harness="claude-code", **known),
            events.LaunchEnded(ts=then, exit=exit_kind, words=words, **known),
        )


def test_the_night_is_a_timeline_in_the_zone_of_the_page(shop):
    """Older events than the page's day are left out; the day is named if it is not today."""
    launched(shop, "crash", "long ago", days=3)
    launched(shop, "crash", "exit code 1", hours=23)
    with shop.store.writer("trades") as writer:
        refused = {"launch": "l", "cycle": 1, "tool": "Write", "about": "a.py", "of_run": 1}
        writer.append(events.CallRefused(ts=shop.clock(), **refused))
    (entry,) = page(shop).entries
    then, now = shop.clock() - timedelta(hours=23), shop.clock()
    assert [(one.at, one.kind, one.text) for one in entry.night] == [
        (f"{then:%a %H:%M}", "crash", "crashed: exit code 1"),
        (f"{now:%H:%M}", "refused", "a tool call was refused, no permission: Write a.py"),
    ]
    assert f"  night:    {then:%a %H:%M}  crashed: exit code 1\n" in morning_page.render(page(shop))


def test_a_long_night_shows_its_end(shop):
    for minute in range(40):
        launched(shop, "crash", f"cause {minute}", minutes=40 - minute)
    (entry,) = page(shop).entries
    assert (entry.night[0].at, entry.night[0].text) == (
        "earlier",
        f"24 more: rekindle logs {entry.agent}",
    )
    assert len(entry.night) == 17
    assert entry.night[-1].text == "crashed: cause 39"


def test_open_loops_are_shown_with_their_text(shop):
    shop.store.submit(
        "trades", open_loops.propose_loop({}, "rate", "How many an hour?", shop.clock())
    )
    (entry,) = page(shop).entries
    assert entry.open_loops == ("rate: How many an hour?",)
    assert "            rate: How many an hour?\n" in morning_page.render(page(shop))


def test_finished_work_has_nothing_next(shop):
    """Whatever its last relay says."""
    with shop.store.writer("trades") as writer:
        relay = relays.parse(b"# Relay\n\n## Next Action\nWrite the parser\n")
        writer.commit_relay(relay, by="person")
    assert page(shop).entries[0].next == "Write the parser"
    with shop.store.writer("trades") as writer:
        writer.append(
            events.RunStarted(ts=shop.clock()), events.RunEnded(ts=shop.clock(), why="done")
        )
    (entry,) = page(shop).entries
    assert (entry.state, entry.next) == ("done", "")


@pytest.mark.parametrize("why", ["cycles", "stalled"])
def test_an_agent_that_the_operator_stopped_does_not_wait_for_the_operator(shop, why):
    with shop.store.writer("trades") as writer:
        now = shop.clock()
        launch = {"ts": now, "launch": "l1", "cycle": 1, "session": "s"}
        writer.append(
            events.LaunchStarted(harness="command", **launch),
            events.LaunchEnded(exit="clean", **launch),
            events.RunEnded(ts=now, why=why),
            events.DesiredSet(ts=now, desired="stopped"),
        )
    found = page(shop)
    assert (found.entries[0].state, found.entries[0].asks) == ("stopped", ())
    assert morning_page.render_headline(found).startswith("1 agent, nothing is waiting for you")
