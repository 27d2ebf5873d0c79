"""The files in the git folder of an agent's clone."""

from rekindle.documents import clone_files

REFS = {
    "refs/heads/main": "1",
    "refs/heads/feature/x": "2",
    "refs/heads/rekindle/trades/work": "3",
    "refs/heads/rekindle/other/work": "4",
    "refs/remotes/origin/main": "5",
    "refs/tags/v1": "6",
    "refs/rekindle/trades/7": "7",
    "refs/rekindle/tradesman/1": "8",
    "refs/stash": "9",
}


def test_a_clone_has_the_user_s_branches_and_only_its_own_work():
    assert clone_files.select_clone_refs(REFS, "trades") == {
        "refs/remotes/project/main": "1",
        "refs/remotes/project/feature/x": "2",
        "refs/heads/rekindle/trades/work": "3",
        "refs/remotes/origin/main": "5",
        "refs/tags/v1": "6",
        "refs/rekindle/trades/7": "7",
    }


def test_refs_are_sorted_as_git_expects_and_read_back():
    text = clone_files.render_refs(REFS)
    names = [line.split()[1] for line in text.splitlines()]
    assert names == sorted(REFS)
    assert clone_files.parse_refs(text) == REFS


def test_a_repository_with_other_hashes_says_so():
    text = clone_files.render_config({}, "/the/project", "sha256")
    assert "repositoryformatversion = 1" in text
    assert "objectformat = sha256" in text


def test_a_setting_without_a_value_means_true():
    assert clone_files.parse_settings("core.bare\0a.b\nc\0a.b\nd\0") == {
        "core.bare": ["true"],
        "a.b": ["c", "d"],
    }


def test_a_clone_of_a_mirror_tracks_the_remotes_branches():
    """Its tags stay tags, and a fetch leaves out the agents' branches."""
    refs = {"refs/heads/main": "1", "refs/heads/a/b": "2", "refs/tags/v1": "3"}
    assert clone_files.select_remote_refs(refs) == {
        "refs/remotes/origin/main": "1",
        "refs/remotes/origin/a/b": "2",
        "refs/tags/v1": "3",
    }
    text = clone_files.render_remote('https://host/"a".git', "main")
    assert text.splitlines() == [
        '[remote "origin"]',
        '\turl = "https://host/\\"a\\".git"',
        "\tfetch = +refs/heads/*:refs/remotes/origin/*",
        "\tfetch = ^refs/heads/rekindle/*",
        '[branch "main"]',
        "\tremote = origin",
        '\tmerge = "refs/heads/main"',
    ]
    assert "[branch" not in clone_files.render_remote("https://host/a.git", "")
