"""Read what an agent did."""

import rekindle
from rekindle.api.activity_log import LogLine, TurnLog
from rekindle.api.describe_reports import ReportLine
from rekindle.system import clock


def test_the_limit_counts_lines_of_the_log_and_of_transcripts_together(tmp_path, monkeypatch):
    (tmp_path / "rekindle.yaml").write_text(
        'version: 1\nagents: {scout: {harness: command, command: ["true"], prompt: task.md}}\n'
    )
    with rekindle.connect(tmp_path) as home:
        scout = home.agent("scout")
        for words in ("First one.", "Second one."):
            scout.answer(words)
        turns = [LogLine(clock.read_clock(), "scout", ReportLine(text)) for text in ("a", "b")]
        monkeypatch.setattr(TurnLog, "read", lambda _, last: turns[-last:])
        texts = [line.partition("  ")[2] for line in scout.output(3)]
    assert texts == ["you answered: Second one.", "a", "b"]
