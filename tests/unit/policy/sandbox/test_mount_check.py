"""The description of a sandbox's mounts: where on its device each path is."""

import pytest

from rekindle.policy.sandbox.mount_check import describe_mounts, escape, unescape

MOUNTS = r"""
22 1 8:1 / / rw - ext4 /dev/sda1 rw
23 22 8:2 /@data /data rw - btrfs /dev/sda2 rw
24 22 0:40 / /tmp rw - tmpfs tmpfs rw
25 23 8:3 / /data/me/my\040disk rw - ext4 /dev/sda3 rw
26 22 8:4 / /covered/deep rw - ext4 /dev/sda4 rw
27 22 8:5 /sub /covered rw - ext4 /dev/sda5 rw
""".strip()


@pytest.mark.parametrize(
    ("path", "described"),
    [
        ("/srv/work", "8:1 /srv/work /srv/work"),
        ("/data/me/work", "8:2 /@data/me/work /data/me/work"),
        ("/datas/work", "8:1 /datas/work /datas/work"),
        ("/tmp", "0:40 / /tmp"),  # noqa: S108 - only a word
        ("/data", "8:2 /@data /data"),
        ("/data/me/my disk/a b", r"8:3 /a\040b /data/me/my\040disk/a\040b"),
        ("/covered/deep/x", "8:5 /sub/deep/x /covered/deep/x"),
    ],
)
def test_a_path_is_located_on_its_device(path, described):
    assert describe_mounts({path: "8:9"}, MOUNTS) == f"{described} 8:9"


def test_each_path_has_a_line():
    described = describe_mounts({"/a": "1:2", "/data/b": "3:4"}, MOUNTS)
    assert described.splitlines() == ["8:1 /a /a 1:2", "8:2 /@data/b /data/b 3:4"]
    assert describe_mounts({"/a": "1:2"}, "") == "- - /a 1:2"


@pytest.mark.parametrize("path", ["/a b", "/a\tb\nc", "/a\\040b", "/#a", r"/\134"])
def test_a_path_is_escaped_and_restored(path):
    assert not {" ", "\t", "\n"} & set(escape(path))
    assert unescape(escape(path)) == path
