"""A night has a symbol for every kind of event, and is printed as JSON."""

from datetime import UTC, datetime
from typing import get_args

import msgspec
import pytest

from rekindle.documents.screens.agent_night import (
    GLYPHS,
    AgentNight,
    LineKind,
    MarkKind,
    NightMark,
    NightSpan,
)

AT = datetime(2026, 4, 9, 1, 0, tzinfo=UTC)


@pytest.mark.parametrize("kind", get_args(MarkKind))
def test_a_mark_has_the_symbol_of_its_kind(kind):
    assert NightMark(AT, 3, kind).glyph == GLYPHS[kind]


def test_every_symbol_is_one_character():
    assert {*get_args(MarkKind), *get_args(LineKind)} == set(GLYPHS)
    assert {len(glyph) for glyph in GLYPHS.values()} == {1}


def test_a_night_survives_json():
    span = NightSpan(lane="wait", start=AT, first=1, last=2, until=AT)
    night = AgentNight(
        agent="a", since=AT, until=AT, spans=(span,), marks=(NightMark(AT, 3, "relay"),)
    )
    assert msgspec.json.decode(msgspec.json.encode(night), type=AgentNight) == night
