"""Facts about the user and the host, found without importing the rest of Rekindle."""

import fcntl
import os

NAME_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
NAME_LENGTH = 64


def is_name(text: str) -> bool:
    return (
        0 < len(text) <= NAME_LENGTH and text[0] not in "._-" and NAME_CHARACTERS.issuperset(text)
    )


def find_user_folder() -> str:
    """Return the user's folder, like `system.files.user_folder.find_user_folder`."""
    import pwd  # noqa: PLC0415 - rarely needed

    user = os.getuid()
    try:
        home = pwd.getpwuid(user).pw_dir
        status = os.stat(f"{home}/.")  # noqa: PTH116 - pathlib slows the start
        if home.startswith("/") and status.st_uid == user:
            return f"{home.rstrip('/')}/.local/state/rekindle"
    except (KeyError, OSError):
        pass
    return f"/var/tmp/rekindle-{user}"  # noqa: S108 - as in user_folder


def identify_host() -> str:
    """Return the host name to use in locks, like `system.host.identify_host`."""
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        try:
            with open(path, encoding="ascii") as file:  # noqa: PTH123 - pathlib slows the start
                if machine_id := file.read().strip():
                    return machine_id
        except (OSError, UnicodeDecodeError):
            continue
    return os.uname().nodename


def is_locked(path: str) -> bool:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def read_file(path: str, most: int) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(fd, most)
    finally:
        os.close(fd)
