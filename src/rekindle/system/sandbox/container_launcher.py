"""Execute an OCI runtime, with this program's environment in file descriptor 3.

    python -I -S container_launcher.py RUNTIME ARGUMENTS...

A container's configuration is a file, so an environment in it would write keys to the disk. The
runtime itself gets only two variables, because others, such as NOTIFY_SOCKET, could control it.
"""

import os
import sys

_ENVIRONMENT = 3
_KEPT = ("PATH", "REKINDLE_LAUNCH")
"""Variables for the runtime: the supervisor finds the processes of a launch by its mark."""


def main(arguments: list[str]) -> None:
    number = os.memfd_create("environment", 0)
    data = b"\0".join(name + b"=" + value for name, value in os.environb.items())
    while data:
        data = data[os.write(number, data) :]
    os.lseek(number, 0, os.SEEK_SET)
    if number != _ENVIRONMENT:
        os.dup2(number, _ENVIRONMENT)
        os.close(number)
    own = {name: os.environ[name] for name in _KEPT if name in os.environ}
    os.execve(arguments[0], arguments, own)  # noqa: S606 - the runtime, no shell


if __name__ == "__main__":
    main(sys.argv[1:])
