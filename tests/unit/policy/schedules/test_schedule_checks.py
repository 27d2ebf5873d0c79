"""A schedule that cannot run is refused with its line, and with what to write instead."""

import pytest

from rekindle.config import load_project
from rekindle.errors import ManifestError
from rekindle.policy.schedules.schedule_checks import list_schedules

HEAD = "version: 1\nagents:\n  trades:\n    harness: command\n    command: ./work\n"
STEPS = "    steps: [{id: plan, prompt: Plan.}]\n"


def load(tmp_path, text):
    (tmp_path / "rekindle.yaml").write_text(text)
    return load_project(tmp_path)


@pytest.mark.parametrize(
    ("every", "line", "message", "hint"),
    [
        ("every: 30s", 6, "the interval 30s is too short", "at least 1m"),
        ("every: none", 6, "'none' is not a usable duration", "10m or 6h"),
        ("every: daily", 6, "'daily' has 1 fields", "an interval such as 6h"),
        ('every: "@dayly"', 6, "'@dayly' is not a schedule", "@daily"),
        ('every: ""', 6, "has 0 fields", "five fields"),
        ("every: 0 6 * * 8", 6, "'8' is not a valid day of the week", "from 0 to 7"),
        ("every: 0 6 31 2 *", 6, "never matches", "correct the day of the month"),
        ("every: 6", 6, "expected text or a mapping", ""),
        ("every: {}", 6, "has no time", "a cron expression such as"),
        ("every: {cron: 0 6 * * *, interval: 6h}", 6, "both `cron` and `interval`", "write"),
        ("every:\n      cron: 0 6 * *", 7, "4 fields", "five fields"),
        ("every:\n      cron: 0 6 * * *\n      zone: Mars/Base", 8, "'Mars/Base'", "Europe/Zurich"),
        ("every:\n      interval: 6h\n      zone: UTC", 8, "an interval has no time zone", "cron"),
        ("every:\n      interval: 6h\n      jitter: 7h", 8, "the jitter 7h is too long", "than 6h"),
        ("every:\n      cron: 0 6 * * 1\n      jitter: 2d", 8, "jitter 2d is too long", "than 1d"),
        ("every:\n      cron: '*/5 * * * *'\n      jitter: 5m", 8, "only 5m apart", "than 5m"),
        ("every:\n      interval: 6h\n      jitter: soon", 8, "jitter", ""),
        ("every:\n      interval: 6h\n      missed: twice", 8, "run, skip", ""),
        ("every:\n      interval: 6h\n      overlap: kill", 8, "skip, queue", ""),
        ("every:\n      at: 6h", 7, "unknown key 'agents.trades.every.at'", ""),
    ],
)
def test_a_mistake_names_its_line(tmp_path, every, line, message, hint):
    with pytest.raises(ManifestError) as caught:
        load(tmp_path, f"{HEAD}    {every}\n")
    assert caught.value.line == line
    assert message in str(caught.value)
    assert hint in (caught.value.hint or "")


def test_a_pipeline_has_the_same_checks(tmp_path):
    text = f"{HEAD}pipelines:\n  ship:\n{STEPS}"
    with pytest.raises(ManifestError, match="too short") as caught:
        load(tmp_path, f"{text}    every: 10s\n")
    assert caught.value.line == 9
    with pytest.raises(ManifestError, match="a scheduled run has no input"):
        load(tmp_path, f"{text}    every: 10m\n    input: required\n")
    loaded = load(tmp_path, f"{text}    every: 10m\n")
    assert [path for path, _ in list_schedules(loaded.manifest)] == [("pipelines", "ship", "every")]


def test_a_fleet_has_schedules(tmp_path):
    loaded = load(tmp_path, f"{HEAD}    every: 6h\nfleet: {{address: 'localhost:7233'}}\n")
    assert [path for path, _ in list_schedules(loaded.manifest)] == [("agents", "trades", "every")]
