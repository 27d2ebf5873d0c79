"""The page of an agent's last cycles."""

from datetime import UTC, datetime

from rekindle.documents.progress_file import ProgressLine, render

AT = datetime(2026, 4, 9, 7, 5, tzinfo=UTC)


def test_a_page_lists_cycles_without_empty_lines():
    lines = [
        ProgressLine(
            cycle=4, ts=AT, verdict="progress", did="Ported it", evidence="3 files", words="ok"
        ),
        ProgressLine(cycle=3, ts=AT, verdict="", did="", evidence="", words="killed"),
    ]
    assert render("trades", lines) == (
        "<!-- rekindle: progress 1 -->\n# Progress of trades\n\n"
        "## Cycle 4, 2026-04-09 07:05 UTC: progress\n- Ported it\n- 3 files\n- ok\n\n"
        "## Cycle 3, 2026-04-09 07:05 UTC: ended\n- killed\n\n"
        "Earlier cycles and all other events: `rekindle events`\n"
    )
