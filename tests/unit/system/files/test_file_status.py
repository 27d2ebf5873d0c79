"""What a look at a file or a folder shows without reading it."""

from rekindle.system.files.file_status import make_folder_stamp


def test_a_folder_stamp_changes_with_every_write(tmp_path):
    """A new file, more text in a file, a removed file: each gives another value."""
    stamps = [make_folder_stamp(tmp_path)]
    (tmp_path / "a.json").write_text("1")
    stamps.append(make_folder_stamp(tmp_path))
    (tmp_path / "a.json").write_text("12")
    stamps.append(make_folder_stamp(tmp_path))
    assert stamps[-1] == make_folder_stamp(tmp_path)
    (tmp_path / "a.json").unlink()
    stamps.append(make_folder_stamp(tmp_path))
    assert len(set(stamps[:3])) == 3
    assert stamps[3] != stamps[2]


def test_a_missing_folder_has_no_stamp(tmp_path):
    assert make_folder_stamp(tmp_path / "missing") is None
