"""When `up` knows the state of an agent that it has started."""

import os
import subprocess
from types import SimpleNamespace

import pytest

from rekindle import config
from rekindle.documents.screens.agent_row import AgentRow
from rekindle.thresholds.supervision import OUTPUT_BYTES
from rekindle.wiring.open_store import open_store
from rekindle.wiring.starting import background_start, bring_up
from rekindle.wiring.starting.bring_up import AgentStarter

RUNNING = AgentRow(agent="trades", state="running")
WAITING = AgentRow(agent="trades", state="waiting", reason="a usage limit")
LAUNCHED, CRASHED = {"exit": "", "words": ""}, {"exit": "limit", "words": "quota"}


def make_reading(launch, row=RUNNING):
    """Return what is read of an agent after the launch that `up` has begun."""
    run = SimpleNamespace(desired="running", is_over=False)
    attempts = {"one": SimpleNamespace(seq=7, **launch)}
    view = SimpleNamespace(projection=SimpleNamespace(run=run, attempts=attempts))
    return SimpleNamespace(row=row, view=view, is_supervised=True)


@pytest.fixture
def look(monkeypatch):
    """Return the state that `up` reports, and the readings that it needed, one a second."""

    def look(*readings):
        now, left = [0.0], list(readings)
        monkeypatch.setattr(bring_up, "time", SimpleNamespace(monotonic=lambda: now[0]))
        starter = AgentStarter.__new__(AgentStarter)
        starter._store = None
        starter._rows = SimpleNamespace(read=lambda _: left.pop(0) if left[1:] else left[0])
        steps = starter._wait_for_state("trades", 5, os.getpid(), 0)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return end.value, now[0]
            now[0] += 1.0

    return look


def test_a_launch_that_has_ended_is_followed_until_its_wait_is_recorded(look):
    ended = [make_reading(CRASHED)] * 9
    held_back = make_reading(CRASHED, WAITING)
    assert look(make_reading(LAUNCHED), *ended, held_back) == (
        "started; waiting: a usage limit",
        10.0,
    )


def test_a_launch_that_stays_is_reported_at_once(look):
    assert look(make_reading(LAUNCHED)) == ("started", 1.0)


def test_what_is_never_recorded_is_not_waited_for_without_end(look):
    state, seconds = look(make_reading(CRASHED))
    assert state == "started; quota"
    assert seconds == bring_up.UP_SECONDS + 1


@pytest.mark.parametrize(
    "before",
    ["Error: of an old run", "Error: of an old run\n" * OUTPUT_BYTES],
    ids=["a few", "more than are kept"],
)
@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("", "its supervisor printed nothing"),
        ("Error: no\n", "Error: no"),
        (f"Error: {'long ' * 20}\n", f"Error: {'long ' * 20}"),
    ],
    ids=["nothing", "less than before", "more than before"],
)
def test_words_of_an_old_run_are_not_the_reason_for_a_window_that_closed(
    tmp_path, monkeypatch, before, said, reason
):
    """A supervisor in a tmux window appends its last words to the file of earlier runs."""
    (tmp_path / "rekindle.yaml").write_text(
        "version: 1\nagents: {trades: {harness: command, command: [./agent]}}\n"
    )
    project = config.load_project(tmp_path)
    store = open_store(project)
    store.create("trades")
    background_start.keep_last_words(store, "trades", before)

    def start_and_exit(_project, name):
        if said:
            background_start.keep_last_words(store, name, said.rstrip("\n"))
        window = subprocess.Popen(["/bin/true"])
        window.wait()
        return window.pid

    monkeypatch.setattr(background_start, "start_in_tmux", start_and_exit)
    [result] = AgentStarter(project, store, lambda _: None, tmux=True).bring_up(["trades"])
    assert (result.state, result.error.rstrip()) == ("", reason.rstrip())
