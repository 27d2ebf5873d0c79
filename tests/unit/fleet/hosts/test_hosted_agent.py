"""A host does not push to a repository that one of its agents could have made."""

import pytest

from rekindle.fleet.hosts.hosted_agent import is_folder_in


@pytest.mark.parametrize(
    ("remote", "is_inside"),
    [
        ("{root}/a/work/evil.git", True),
        ("file://{root}/a/work/evil.git", True),
        ("{root}/../hosts/a", True),
        ("{root}/link/evil.git", False),
        ("/srv/git/shop.git", False),
        ("https://example.org/shop.git", False),
        ("git@example.org:shop.git", False),
    ],
)
def test_a_repository_among_the_agents_is_recognized(tmp_path, monkeypatch, remote, is_inside):
    root = tmp_path / "hosts"
    root.mkdir()
    (root / "link").symlink_to("/srv")
    monkeypatch.chdir(root)  # an address is not a path in the current folder
    assert is_folder_in(remote.format(root=root), root) is is_inside
