"""The page on keeping alive is generated from the tables in the code, and cannot drift."""

import sys
from pathlib import Path

import msgspec
import pytest

from rekindle.policy.exits import stop_reasons
from rekindle.policy.supervision import (
    hang,
    watchdog_table,
)

ROOT = Path(__file__).parents[2]


@pytest.fixture
def generate(monkeypatch):
    """Import the generator as `just docs --check` runs it."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    monkeypatch.setattr(sys, "argv", ["generate.py", "--check"])
    import generate  # noqa: PLC0415 - a script of tools/, found by the line above

    monkeypatch.setattr(generate, "PAGES", {"keeping-alive.md": generate.PAGES["keeping-alive.md"]})
    return generate.generate


def test_the_page_says_what_the_tables_say(generate, capsys):
    """The page in docs/reference is the one that the current code generates."""
    assert generate() == 0, capsys.readouterr().out


@pytest.mark.parametrize("kind", stop_reasons.EXIT_KINDS)
def test_another_reaction_is_drift(generate, monkeypatch, capsys, kind):
    """Changing any row of the table of ends, with its edges, is drift."""
    row = stop_reasons.STOP_REASONS[kind]
    other = "person" if row.reaction != "person" else "retry"
    monkeypatch.setitem(
        stop_reasons.STOP_REASONS, kind, msgspec.structs.replace(row, reaction=other)
    )
    assert generate() == 1
    assert "keeping-alive.md has drifted" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("module", "name"),
    [
        *((hang, f"ACTION_MEANINGS/{one}") for one in hang.ACTION_MEANINGS),
        *((hang, f"HANG_TABLE/{place}") for place in range(len(hang.HANG_TABLE))),
        *(
            (watchdog_table, f"WATCH_TABLE/{place}")
            for place in range(len(watchdog_table.WATCH_TABLE))
        ),
    ],
    ids=lambda one: one if isinstance(one, str) else one.__name__,
)
def test_another_meaning_or_row_is_drift(generate, monkeypatch, module, name):
    """Other words of a row, and a missing row, are drift."""
    table, _, key = name.partition("/")
    if table == "ACTION_MEANINGS":
        monkeypatch.setitem(module.ACTION_MEANINGS, key, "something else")
        assert generate() == 1
        return
    rows, place = getattr(module, table), int(key)
    other = msgspec.structs.replace(rows[place], words="something else")
    monkeypatch.setattr(module, table, (*rows[:place], other, *rows[place + 1 :]))
    assert generate() == 1
    if place < len(rows) - 1:  # the last one is for all other cases
        monkeypatch.setattr(module, table, (*rows[:place], *rows[place + 1 :]))
        assert generate() == 1


@pytest.mark.parametrize("change", [{"counts": True}, {"meaning": "something else"}])
def test_another_row_of_a_reaction_is_drift(generate, monkeypatch, change):
    """An outage that counted as a crash would be seen."""
    other = msgspec.structs.replace(stop_reasons.REACTIONS["retry"], **change)
    monkeypatch.setitem(stop_reasons.REACTIONS, "retry", other)
    assert generate() == 1


def test_every_state_is_reached_and_left():
    """The diagram has no state without a way in or out."""
    text = (ROOT / "docs/reference/keeping-alive.md").read_text()
    edges = [line.split()[:3] for line in text.splitlines() if " --> " in line]
    reached, left = {end for _, _, end in edges}, {begin for begin, _, _ in edges}
    assert reached == left
    assert {"starting", "running", "pausing", "waiting", "safe", "stopped", "over"} < reached
