"""The configuration of an agent's clone, as git reads it."""

import subprocess

import pytest

from rekindle.documents import clone_files


@pytest.mark.parametrize("value", ["plain", "with space", 'quote"d', "back\\slash", "# no comment"])
def test_git_reads_the_settings_that_are_copied(tmp_path, value):
    settings = {
        "user.name": [value],
        "user.email": ["a@example.org"],
        "remote.origin.url": ["https://example.org/a.git"],
        "remote.origin.fetch": ["+refs/heads/*:refs/remotes/origin/*", "+refs/x/*:refs/y/*"],
        'remote.odd "name".url': ["x"],
        "core.fsmonitor": ["evil"],
        "core.sshcommand": ["evil"],
        "filter.x.clean": ["evil"],
        "alias.st": ["!evil"],
        "remote.project.url": ["the user's own remote with this name"],
        "remote.origin.uploadpack": ["evil"],
    }
    (tmp_path / "config").write_text(clone_files.render_config(settings, "/the/project", "sha1"))
    listed = subprocess.run(
        ["git", "config", "--null", "--file", tmp_path / "config", "--list"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    read = clone_files.parse_settings(listed)
    assert "evil" not in listed
    for key in ("user.name", "user.email", "remote.origin.url", "remote.origin.fetch"):
        assert read[key] == settings[key]
    assert read['remote.odd "name".url'] == ["x"]
    assert read["remote.project.url"] == ["/the/project"]
    assert "extensions.objectformat" not in read
