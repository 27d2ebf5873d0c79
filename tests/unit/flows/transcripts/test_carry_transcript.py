"""A transcript that moves to another account."""

import pytest

from rekindle.errors import RekindleError
from rekindle.flows.transcripts import carry_transcript as module
from rekindle.flows.transcripts.carry_transcript import carry_transcript
from rekindle.system.files import durable_files

BELOW = "projects/-work/s.jsonl"


@pytest.fixture
def accounts(tmp_path):
    """Return two accounts' folders, the first with a transcript."""
    one, two = tmp_path / "one", tmp_path / "two"
    (one / BELOW).parent.mkdir(parents=True)
    two.mkdir()
    (one / BELOW).write_bytes(b"a\nb\n")
    return one, two


def carry(accounts, path=None):
    one, two = accounts
    return carry_transcript(str(path or one / BELOW), str(one), str(two))


def test_the_transcript_is_copied_and_stays_private(accounts):
    """The session continues there, and the first copy remains."""
    one, two = accounts
    assert carry(accounts)
    assert (two / BELOW).read_bytes() == (one / BELOW).read_bytes() == b"a\nb\n"
    assert (two / BELOW).stat().st_mode & 0o077 == 0
    assert [path.name for path in (two / BELOW).parent.iterdir()] == ["s.jsonl"]


@pytest.mark.parametrize(
    ("there", "after", "continues"),
    [
        (b"a\n", b"a\nb\n", True),
        (b"a\nb\n", b"a\nb\n", True),
        (b"a\nb\nc\n", b"a\nb\nc\n", True),
        (b"x\n", b"x\n", False),
        (b"a\nx\nyyy\n", b"a\nx\nyyy\n", False),
    ],
)
def test_only_an_older_copy_is_replaced(accounts, there, after, continues):
    """A longer one has later turns, and one with other turns belongs to other work."""
    (accounts[1] / BELOW).parent.mkdir(parents=True)
    (accounts[1] / BELOW).write_bytes(there)
    assert carry(accounts) is continues
    assert (accounts[1] / BELOW).read_bytes() == after


def test_the_path_may_already_be_that_of_the_other_account(accounts):
    """A launch that died before its hook reported leaves the path of the launch before it."""
    assert carry(accounts, accounts[1] / BELOW)
    assert (accounts[1] / BELOW).read_bytes() == b"a\nb\n"


def test_a_copy_that_fails_leaves_nothing(accounts, monkeypatch):
    """The session cannot continue there, and the next attempt starts over."""

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(durable_files, "_write_all", fail)
    with pytest.raises(RekindleError):
        carry(accounts)
    assert list((accounts[1] / BELOW).parent.iterdir()) == []
    monkeypatch.undo()
    assert carry(accounts)


def test_links_are_not_followed(accounts, tmp_path):
    """An agent could let the copy overwrite or reveal any file."""
    target = tmp_path / "target"
    target.write_bytes(b"a\n")
    (accounts[1] / BELOW).parent.mkdir(parents=True)
    (accounts[1] / BELOW).symlink_to(target)
    assert not carry(accounts)
    assert target.read_bytes() == b"a\n"


def test_what_cannot_be_carried_stays(accounts, monkeypatch, tmp_path):
    """A missing or large file, an unknown folder or a path elsewhere means a fresh session."""
    assert not carry(accounts, tmp_path / "elsewhere.jsonl")
    assert not carry_transcript("", str(accounts[0]), str(accounts[1]))
    assert not carry_transcript(str(accounts[0] / BELOW), "", str(accounts[1]))
    assert not carry(accounts, accounts[0] / "projects/-work/gone.jsonl")
    monkeypatch.setattr(module, "CARRIED_TRANSCRIPT_BYTES", 3)
    assert not carry(accounts)
