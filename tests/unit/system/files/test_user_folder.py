"""The user folder depends on the user id alone, and belongs to the user alone."""

import os
import pwd
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from rekindle.errors import UnsafePathError
from rekindle.stores.folders import private_files
from rekindle.system.files import user_folder

_PRINT = "from rekindle.system.files import user_folder; print(user_folder.find_user_folder())"

ENVIRONMENTS = {
    "login": {"HOME": str(Path.home()), "USER": "x", "XDG_STATE_HOME": "/nowhere/state"},
    "cron": {"HOME": "/", "PATH": "/usr/bin:/bin", "SHELL": "/bin/sh"},
    "ssh": {"HOME": "/tmp/elsewhere", "SSH_CONNECTION": "192.0.2.1 1 192.0.2.2 22"},  # noqa: S108
    "systemd": {"INVOCATION_ID": "0123", "XDG_RUNTIME_DIR": "/run/user/0"},
    "empty": {},
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_no_environment_moves_it(name: str) -> None:
    """A login shell, cron, ssh and systemd all lead to one folder."""
    argv = [sys.executable, "-P", "-c", _PRINT]
    told = subprocess.run(argv, env=ENVIRONMENTS[name], check=True, capture_output=True, text=True)
    assert told.stdout.strip() == str(user_folder.find_user_folder())


def test_it_is_private() -> None:
    """Only its owner can enter it, even if its mode was widened before."""
    folder = user_folder.make_user_folder("projects")
    user_folder.find_user_folder().chmod(0o755)
    assert user_folder.make_user_folder("projects") == folder
    assert stat.S_IMODE(user_folder.find_user_folder().stat().st_mode) == 0o700


def test_a_user_without_a_home_has_one_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A service user whose home does not exist gets a folder of its own below /var/tmp."""
    entry = pwd.getpwuid(os.getuid())
    without = pwd.struct_passwd((*entry[:5], str(tmp_path / "gone"), entry[6]))
    monkeypatch.setattr(pwd, "getpwuid", lambda _: without)
    user_folder._find_home.cache_clear()
    assert user_folder.find_user_folder() == Path(f"/var/tmp/rekindle-{os.getuid()}")  # noqa: S108
    user_folder._find_home.cache_clear()


def test_a_link_in_its_place_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A link that another user put there could lead anywhere."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    monkeypatch.setattr(user_folder, "find_user_folder", lambda: tmp_path / "link")
    with pytest.raises(UnsafePathError):
        user_folder.make_user_folder()


def test_two_projects_of_one_name_differ(tmp_path: Path) -> None:
    """Projects are told apart by their whole path; links to one lead to the same."""
    for above in ("a", "b"):
        (tmp_path / above / "shop").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a" / "shop")
    first, second = (
        private_files.find_private_project(tmp_path / above / "shop") for above in ("a", "b")
    )
    assert first.path != second.path
    assert private_files.find_private_project(tmp_path / "link").path == first.path
    assert (
        private_files.find_private_project(tmp_path / "a" / "shop")
        .make_agent("trades")
        .inbox.is_dir()
    )
