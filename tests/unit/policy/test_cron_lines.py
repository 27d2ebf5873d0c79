"""Which lines of a crontab start Rekindle."""

import pytest

from rekindle.policy.cron_lines import starts_rekindle, without


@pytest.mark.parametrize(
    ("line", "anywhere", "in_project"),
    [
        ("*/5 * * * * cd /p && /opt/bin/rekindle watch --once", True, True),
        ("*/5 * * * * cd /p;rekindle brief --due", True, True),
        ("*/5 * * * * cd '/p/sub dir' && python -m rekindle watch", True, True),
        ("*/5 * * * * cd /p-other && rekindle watch", True, False),
        ("*/5 * * * * rekindle watch --once --all", True, False),
        ("# cd /p && rekindle watch", False, False),
        ("*/5 * * * * cd /p && make rekindle-docs", False, False),
        ("*/5 * * * * cd /p && backup", False, False),
        ("*/5 * * * * cd /p && rekindle watch 'unclosed", True, True),
        ("MAILTO=me", False, False),
        ("", False, False),
    ],
)
def test_a_line_is_ours_by_its_program_and_its_folder(line, anywhere, in_project):
    assert starts_rekindle(line) is anywhere
    assert starts_rekindle(line, "/p") is in_project


def test_only_the_given_lines_go():
    assert without(["a", "b", "# c"], ["b"]) == ["a", "# c"]
