"""Check a sandbox from the inside, connect it to its proxy, then execute the agent's program.

    python -I -S sandbox_entry.py MOUNTS FOLDER SOCKET PORT PROGRAM...

MOUNTS is the description from `policy.sandbox.mount_check`. If a mount shows another file, the
program does not start.

A socket belongs to the network in which it was created. This program therefore listens on a port in
the sandbox's own network, passes the listening socket to the proxy outside, and is replaced by the
agent's program. No process stays behind to relay data. Without a proxy, SOCKET is empty. It imports
only what loads quickly.
"""

import os
import sys

_DELETED = "//deleted"
"""Suffix for a file that was replaced after it was mounted."""
_REFUSED = 77


def main(arguments: list[str]) -> None:
    mounts, folder, name, port, *program = arguments
    if path := find_wrong_mount(mounts):
        sys.stderr.write(f"the sandbox is not safe: {path} was replaced while it was created\n")
        sys.exit(_REFUSED)
    if name:
        pass_listener(folder, name, int(port))
    os.execvp(program[0], program)  # noqa: S606 - the agent's own program, no shell


def find_wrong_mount(mounts: str) -> str:
    """Return a mounted path that does not show the described file, or "" if there is none."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123 - pathlib slows the start
        fields = [line.split(" ") for line in file]
    shown = {line[4]: (line[2], line[3].removesuffix(_DELETED)) for line in fields}
    for line in mounts.splitlines():
        device, root, point, identity = line.split(" ")
        if shown.get(point) == (device, root):
            continue
        # Some file systems do not report a mount's source path. In that case, the inode must match.
        path = point.replace(r"\040", " ").replace(r"\011", "\t").replace(r"\012", "\n")
        path = path.replace(r"\043", "#").replace(r"\134", "\\")
        if point not in shown or identify(path) != identity:
            return path
    return ""


def identify(path: str) -> str:
    try:
        status = os.stat(path, follow_symlinks=False)  # noqa: PTH116 - as above
    except OSError:
        return ""
    return f"{status.st_dev}:{status.st_ino}"


def pass_listener(folder: str, name: str, port: int) -> None:
    import _socket  # noqa: PLC0415 - not needed without a proxy

    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", port))
    listener.listen(128)
    work = os.getcwd()  # noqa: PTH109 - pathlib slows the start
    os.chdir(folder)  # a socket path must be short
    channel = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    channel.connect(name)
    number = listener.fileno().to_bytes(4, sys.byteorder)
    channel.sendmsg([b"1"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, number)])
    os.chdir(work)


if __name__ == "__main__":
    main(sys.argv[1:])
