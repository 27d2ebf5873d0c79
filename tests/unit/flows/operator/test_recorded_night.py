"""A person who reads only the lines of a recorded night can tell what happened in it."""

import re
from datetime import UTC, timedelta

import pytest

from recorded_night import NOW, QUESTION, RELAYS, keep_supervised, write_night
from rekindle.config import load_project
from rekindle.documents.relay import parse
from rekindle.documents.search.search_types import SearchQuery
from rekindle.flows.operator.read_night import read_night
from rekindle.flows.operator.read_rows import RowReader
from rekindle.policy.night.build_night import NightInputs
from rekindle.policy.relay.decision_ledger import read_decisions
from rekindle.stores.files.transcript_archive import TranscriptArchive
from rekindle.wiring.open_store import open_store
from rekindle.wiring.search_setup import search


class RecordedNight:
    """A recorded night as it is read from its folder."""

    def __init__(self, folder, now=NOW):
        self.folder, self.now = write_night(folder, now), now
        self.project = load_project(self.folder)
        self.store = open_store(self.project)

    def read(self, agent="trades", *, has_archive=True):
        archive = TranscriptArchive(self.store.folder(agent).transcripts)
        entry = self.project.manifest.agents[agent]
        around = NightInputs(now=self.now, zone=UTC, budget=entry.budget, handoff_percent=70)
        return read_night(self.store, agent, around, archive if has_archive else None)


@pytest.fixture
def recorded(in_memory):
    return RecordedNight(in_memory / "shop")


def test_the_lines_tell_the_night(recorded):
    """The crash, both handoffs, the limit, the stall, both questions and the refused call."""
    night = recorded.read()
    told = [(f"{line.at:%H:%M}", line.glyph, line.text) for line in night.lines]
    handed_off = "window full at 71 % of 200,000 tokens: handed off to a fresh session"
    stalled = "stalled (the agent wrote no relay, and there is no visible work)"
    call = "Bash git push origin main"
    for line in (
        ("21:59", "☺", "you started it"),
        ("23:41", "✕", "crashed: ended by SIGKILL"),
        ("23:41", "↻", "the same session resumed"),
        ("00:05", "◆", "new relay by agent: Implement POST /profile with validation."),
        ("00:52", "▲", f"{handed_off} (1 in cycle 2)"),
        ("02:00", "⊘", f"a tool call was refused, no permission: {call}"),
        ("02:00", "☺", f"trades-1 asks: permission for a call that was refused: {call}"),
        ("02:00", "░", "waited 3 h 10 min, until 05:10: a usage limit"),
        ("05:41", "▲", f"{handed_off} (2 in cycle 2)"),
        ("06:20", "☺", "trades-1 was answered by ann: allow"),
        ("06:30", "▪", f"cycle 3 ended: {stalled}, $0.70, 900,000 tokens"),
        ("07:02", "■", f"needs you: it waits for a person: {QUESTION} (trades-2)"),
    ):
        assert line in told
    assert "cycle 2 ended: progress (4 commits, 2 resolved loops)" in str(told)
    assert [line.at for line in night.lines] == sorted(line.at for line in night.lines)


def test_every_line_names_the_events_that_it_is_about(recorded):
    kinds = {entry.event.seq: entry.event.kind for entry in recorded.store.newest_entries("trades")}
    about = {line.kind: (kinds[line.first], kinds[line.last]) for line in recorded.read().lines}
    assert about["crash"] == ("launch.ended", "launch.ended")
    assert about["wait"] == ("wait.started", "wait.started")
    assert about["end"] == ("safe_mode.entered", "question.asked")


def test_equal_crashes_share_a_line(recorded):
    texts = [line.text for line in recorded.read("infra").lines]
    assert "crashed 3 times: exit code 1: cannot read state.tf" in texts
    assert sum(text.startswith("crashed") for text in texts) == 1


def test_the_spans_and_marks_show_the_same_night(recorded):
    night = recorded.read()
    lanes = {
        lane: [span for span in night.spans if span.lane == lane]
        for lane in ("session", "wait", "safe", "question")
    }
    assert [span.exit for span in lanes["session"]] == [
        *("crash", "clean", "handoff", "limit", "handoff", "clean", "clean", "clean")
    ]
    (wait,) = lanes["wait"]
    assert (f"{wait.start:%H:%M}", f"{wait.end:%H:%M}") == ("02:00", "05:10")
    assert "resets 5:10am" in wait.words
    assert [span.end for span in lanes["safe"]] == [None]
    assert [(span.question, span.end is None) for span in lanes["question"]] == [
        ("trades-1", False),
        ("trades-2", True),
    ]
    relays = [mark for mark in night.marks if mark.kind == "relay"]
    assert [mark.text for mark in relays] == [
        fields["following"].splitlines()[0] for fields in RELAYS
    ]
    verdicts = [mark.verdict for mark in night.marks if mark.kind == "cycle"]
    assert verdicts == ["", "progress", "stalled", "waiting"]
    assert [mark.percent for mark in night.marks if mark.kind == "handoff"] == [71.0, 71.3]


def test_the_curves_come_from_the_log_and_the_archive(recorded):
    night = recorded.read()
    assert max(point.percent for point in night.window) == 71.3
    assert {point.session for point in night.window} == {f"session-{n}" for n in range(1, 7)}
    assert len(night.window) > 2 * len(recorded.read(has_archive=False).window) > 0
    spent = [point.usd for point in night.spend]
    assert (spent[0], spent[-1], night.usd_cap) == (0.0, 3.1, 10.0)
    assert spent == sorted(spent)


def test_the_agents_are_in_five_states(recorded):
    agents, runtime = recorded.project.manifest.agents, recorded.project.settings.runtime
    rows = RowReader(recorded.store, agents, runtime, lambda: NOW, zone=UTC)
    with keep_supervised(recorded.folder):
        states = {agent: rows.row(agent).state for agent in agents}
    assert states == {
        "trades": "needs you",
        "docs": "running",
        "api": "waiting",
        "infra": "stopped",
        "web": "done",
    }


def test_the_folder_is_sound(recorded):
    """Nothing in it needs to be fixed, and its relays, loops and decisions are real."""
    for agent in recorded.project.manifest.agents:
        assert [one for one in recorded.store.inspect(agent) if not one.is_note] == []
    loops = recorded.store.read("trades").projection.loops
    assert [loop for loop in loops if loops[loop].is_open] == ["rate-limit"]
    decisions = read_decisions(parse(recorded.store.document("trades", "relay")))
    assert len(decisions) == 3


def test_its_transcripts_can_be_searched(recorded):
    query = SearchQuery(match='"POST"', agents=("trades",), most=500)
    hits = search(recorded.project, recorded.store, query).hits
    assert {"session-1", "session-6"} <= {hit.session for hit in hits if hit.kind == "turn"}
    assert any(hit.kind == "relay" for hit in hits)


def test_the_night_ends_whenever_the_caller_says(in_memory):
    """The same night, at other times."""
    first = RecordedNight(in_memory / "a")
    second = RecordedNight(in_memory / "b", NOW + timedelta(days=30, hours=5))
    moved = [(line.at - timedelta(days=30, hours=5), line.kind) for line in second.read().lines]
    assert moved == [(line.at, line.kind) for line in first.read().lines]
    texts = [[re.sub(r"until [\d:]+", "", line.text) for line in one.read().lines]
             for one in (first, second)]  # fmt: skip
    assert texts[0] == texts[1]
