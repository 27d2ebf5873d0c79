"""Copies of settings: which files are restored after the plugin was removed."""

from rekindle.documents.plugins import settings_copy

BEFORE = {"kept": b"a", "changed": b"b", "missing": None, "untouched": b"d"}
INSTALLED = {"kept": b"a+", "changed": b"b+", "missing": b"c+", "untouched": b"d"}


def test_only_files_without_other_changes_are_restored():
    """A file that was missing is removed, and one that the CLI restored is left alone."""
    copy = settings_copy.make_copy(BEFORE, INSTALLED)
    last = {**INSTALLED, "changed": b"b+ and mine"}
    removed = {"kept": b"a-", "changed": b"b and mine", "missing": b"{}", "untouched": b"d"}
    assert settings_copy.find_restorable(copy, last, removed) == {"kept": b"a", "missing": None}


def test_a_file_that_is_not_listed_any_more_is_left_alone():
    copy = settings_copy.make_copy({"old": b"a"}, {"old": b"b"})
    assert settings_copy.find_restorable(copy, {}, {}) == {}
