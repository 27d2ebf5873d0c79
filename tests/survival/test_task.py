"""The count of the work, with ledgers and files that are wrong on purpose."""

import subprocess

import pytest

from survival import player, task
from survival.task import Count


@pytest.fixture
def project(tmp_path):
    task.prepare(tmp_path)
    return tmp_path


def write(project, *items):
    (project / "items").mkdir(exist_ok=True)
    with (project / task.LEDGER).open("a") as ledger:
        for item in items:
            (project / f"items/{item:02}.txt").write_text(task.content(item))
            ledger.write(f"{item:02} {task.digits(item)}\n")


@pytest.mark.pure
def test_nothing_is_done_in_an_empty_project(project):
    assert task.count(project) == Count(done=0, lost=0, twice=0)


@pytest.mark.pure
def test_each_item_counts_once(project):
    write(project, *range(1, 21))
    assert task.count(project) == Count(done=20, lost=0, twice=0)


@pytest.mark.pure
def test_an_item_that_was_written_again_counts_as_done_twice(project):
    write(project, 1, 2, 2, 2, 3)
    assert task.count(project) == Count(done=3, lost=0, twice=2)
    assert task.begun(project) == 3


@pytest.mark.pure
def test_an_item_without_its_file_is_lost(project):
    write(project, 1, 2, 3, 4)
    (project / "items/02.txt").unlink()
    (project / "items/03.txt").write_text(task.content(4))
    (project / "items/04.txt").write_text(task.content(4)[:-3])
    assert task.count(project) == Count(done=1, lost=3, twice=0)


@pytest.mark.pure
def test_a_torn_or_wrong_line_of_the_ledger_is_not_an_item(project):
    write(project, 1)
    with (project / task.LEDGER).open("a") as ledger:
        ledger.write(f"02 {task.digits(3)}\n03 {task.digits(3)[:5]}")
    assert task.count(project) == Count(done=1, lost=0, twice=0)


def run(command, project):
    return subprocess.run(
        ["sh", "-c", command], cwd=project, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("total", [12, 20])
def test_the_commands_of_the_model_do_the_work_that_the_check_wants(project, total):
    task.prepare(project, total)
    assert run(task.list_command(), project).stdout == f"{task.LISTED}\n"
    for item in range(1, total + 1):
        assert run(task.CHECK, project).returncode != 0
        assert run(task.write_command(item), project).stdout == f"written {item:02}\n"
    assert run(task.CHECK, project).returncode == 0
    assert task.count(project) == Count(done=total, lost=0, twice=0)
    assert run(task.list_command(), project).stdout.startswith("done 01\ndone 02\n")


def test_a_file_that_does_not_fit_on_the_disk_is_not_listed(project):
    write(project, 1, 2)
    (project / "items/02.txt").write_text("")
    assert run(task.list_command(), project).stdout == f"done 01\n{task.LISTED}\n"


def test_the_relay_of_the_model_is_a_file_with_a_directive(project):
    path = project / "a relay.md"
    line = player.command(player.Relay(str(path), "DONE"))
    assert run(line, project).returncode == 0
    assert path.read_text().endswith("## Next Action\nDONE\n")
