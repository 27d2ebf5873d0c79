"""Signs of work in a folder without git."""

import os
import time

import pytest

from rekindle.documents.events import WorkSigns
from rekindle.flows.cycles.work_signs import read_work_signs
from rekindle.system.files import changed_files
from rekindle.system.git.work_status import GitStatus


class Folder:
    """A folder with a file from before the moment `since`."""

    def __init__(self, path):
        self.path, self.since = path, 0.0
        self.write("old.md")
        self.since = (path / "old.md").stat().st_ctime + 1e-6

    def write(self, name, path=None):
        file = (path or self.path) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        deadline = time.monotonic() + 10
        file.write_text("text")
        # The times of files advance in steps of some milliseconds.
        while file.stat().st_ctime < self.since:
            assert time.monotonic() < deadline
            file.write_text("text")
        return file

    def signs(self):
        return read_work_signs(GitStatus(str(self.path)), str(self.path), "", self.since)


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


def test_files_that_were_written_since_are_artefacts(folder):
    folder.write("chapter-1.md")
    folder.write("src/main.py")
    assert folder.signs() == WorkSigns(artefacts=("chapter-1.md", "src/main.py"))


@pytest.mark.parametrize(
    "name",
    [
        ".hidden",
        ".cache/file",
        ".git/index",
        ".rekindle/agents/a/ops.jsonl",
        "node_modules/x/index.js",
        "src/__pycache__/main.pyc",
        "run.log",
    ],
)
def test_a_line_that_is_not_a_result_does_not_count(folder, name):
    folder.write(name)
    assert folder.signs() == WorkSigns()


def test_links_and_pipes_are_not_followed(folder, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    folder.write("file.md", elsewhere)
    (folder.path / "linked").symlink_to(elsewhere)
    (folder.path / "loop").symlink_to(folder.path)
    (folder.path / "file.md").symlink_to(elsewhere / "file.md")
    os.mkfifo(folder.path / "pipe")
    assert folder.signs() == WorkSigns()


def test_a_huge_folder_is_read_in_part_the_top_first(folder, monkeypatch):
    monkeypatch.setattr(changed_files, "UNVERSIONED_FILES", 20)
    for number in range(50):
        folder.write(f"deep/er/{number}.md")
    folder.write("top.md")
    names = changed_files.list_changed(str(folder.path), folder.since)
    assert names[0] == "top.md"
    assert len(names) <= 20


def test_a_file_that_was_unpacked_with_its_old_time_counts(folder):
    os.utime(folder.write("unpacked.md"), (1000.0, 1000.0))
    assert folder.signs() == WorkSigns(artefacts=("unpacked.md",))


def test_a_folder_that_is_gone_shows_nothing(tmp_path):
    folder = str(tmp_path / "gone")
    assert read_work_signs(GitStatus(folder), folder, "", 0.0) == WorkSigns()


def test_a_name_that_is_not_text_can_be_recorded(folder):
    folder.write(os.fsdecode(b"caf\xe9\n.md"))
    (name,) = folder.signs().artefacts
    assert name.isprintable()
    assert name.encode().endswith(b".md")
