"""Quota events: every kind keeps its tag, its keys and their order on disk."""

import pytest

from event_lines import find_line, list_kinds
from rekindle.documents import events
from rekindle.documents.events import quota_events


@pytest.mark.parametrize("kind", list_kinds(quota_events))
def test_a_line_of_the_log_is_read_and_written_unchanged(kind):
    event = events.parse(find_line(kind))
    assert type(event) is kind
    assert events.render(event) == find_line(kind)
