"""Which remotes and branches are accepted, as git itself would."""

import pytest

from rekindle.formats.git_names import is_branch, is_remote


@pytest.mark.parametrize(
    "url",
    [
        "https://git.example.com/team/shop.git",
        "http://git.example.com:3000/shop",
        "ssh://git@git.example.com:22/shop.git",
        "git://git.example.com/shop",
        "/srv/git/shop.git",
        "file:///srv/git/my shop.git",
        "git@git.example.com:team/shop.git",
        "git.example.com:shop.git",
        "git@[::1]:shop.git",
    ],
)
def test_a_remote_is_a_url_a_path_or_a_name_of_ssh(url):
    assert is_remote(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "shop",
        "./shop",
        "-oProxyCommand=x:shop",
        "https://-oProxyCommand=x/shop",
        "https:///shop",
        "https://git.example.com/a b",
        "ext::sh -c x",
        "ftp://git.example.com/shop",
        "-u@git.example.com:shop",
        "git.example.com:",
        "git.example.com: shop",
        "git.example.com://shop",
        "/srv/git/shop\n.git",
    ],
)
def test_options_helpers_and_relative_paths_are_no_remotes(url):
    assert not is_remote(url)


@pytest.mark.parametrize(
    "name", ["main", "feature/a-b", "release-1.2", "a.b", "a@b", "ünï", "HEAD2", "a.lockx", "x{"]
)
def test_names_that_git_accepts_are_branches(name):
    assert is_branch(name)


@pytest.mark.parametrize(
    "name",
    [
        *("", "-x", "HEAD", ".a", "a/.b", "a.", "a/", "/a", "a//b", "a..b", "a@{1}", "a b", "a~1"),
        *("a^", "a:b", "a?", "a*", "a[b", "a\\b", "a.lock", "a.lock/b", "a\x7f", "a\tb"),
    ],
)
def test_names_that_git_refuses_are_no_branches(name):
    assert not is_branch(name)
