"""Which lines of a crontab start Rekindle, and which of them start nothing else."""

import pytest

from rekindle.policy.setup.cron_lines import (
    CronUse,
    find_use,
    remove_cron_lines,
)

ALONE, AMONG_OTHERS, NO = CronUse.ALONE, CronUse.AMONG_OTHERS, None


@pytest.mark.parametrize(
    ("command", "anywhere", "in_project"),
    [
        ("cd /p && /opt/bin/rekindle watch --once", ALONE, ALONE),
        ("cd /p;rekindle brief --due", ALONE, ALONE),
        ("cd '/p/sub dir' && python3.12 -I -m rekindle watch", ALONE, ALONE),
        ("cd /p && A=1 B='2 3' rekindle watch >> /tmp/log 2>&1", ALONE, ALONE),
        ("cd /p-other && rekindle watch", ALONE, NO),
        ("cd /p/../other && rekindle watch", ALONE, NO),
        ("rekindle watch --once --all", ALONE, NO),
        ("/p/.venv/bin/rekindle watch --once --all > /p/log", ALONE, NO),
        ("/usr/local/bin/backup.sh; rekindle status", AMONG_OTHERS, NO),
        ("cd /p && rekindle watch; ./backup.sh", AMONG_OTHERS, AMONG_OTHERS),
        ("cd /p && git pull && rekindle watch", AMONG_OTHERS, AMONG_OTHERS),
        ("cd /p || rekindle watch", AMONG_OTHERS, AMONG_OTHERS),
        ("cd /p && rekindle status | mail me", AMONG_OTHERS, AMONG_OTHERS),
        ("cd /p && rekindle status > >(./log)", AMONG_OTHERS, AMONG_OTHERS),
        ('cd /p && rekindle note "$(./backup.sh)"', AMONG_OTHERS, AMONG_OTHERS),
        ("cd /p && rekindle note `./backup.sh`", AMONG_OTHERS, AMONG_OTHERS),
        ('cd "/p/$(./backup.sh)" && rekindle watch', AMONG_OTHERS, AMONG_OTHERS),
        ("cd /p && rekindle watch 'unclosed", AMONG_OTHERS, AMONG_OTHERS),
        ("cd /p && nice -n 5 /opt/bin/rekindle watch", AMONG_OTHERS, AMONG_OTHERS),
        (". /p/keys; cd /p && rekindle watch", AMONG_OTHERS, AMONG_OTHERS),
        ("tar czf /backup/p.tgz /p/rekindle", NO, NO),
        ("cd /p/rekindle && ./backup.sh", NO, NO),
        ("cd rekindle && cd /p && ./backup.sh", NO, NO),
        ("python backup.py -m /p/rekindle", NO, NO),
        ("cd /p && make rekindle-docs", NO, NO),
        ("cd /p && backup", NO, NO),
        ("A=/p/rekindle backup", NO, NO),
    ],
)
@pytest.mark.parametrize("schedule", ["*/5 * * * *", "@daily", "\t-0 3 1-7 * mon "])
def test_a_command_is_ours_by_its_program_and_its_folder(schedule, command, anywhere, in_project):
    line = f"{schedule} {command}"
    assert find_use(line) is anywhere
    assert find_use(line, "/p") is in_project


@pytest.mark.parametrize(
    "line", ["# cd /p && rekindle watch", "MAILTO=me", "A = b c d e f rekindle", "", "rekindle"]
)
def test_a_line_without_a_command_is_not_ours(line):
    assert find_use(line) is None


def test_only_the_given_lines_go():
    assert remove_cron_lines(["a", "b", "# c"], ["b"]) == ["a", "# c"]
