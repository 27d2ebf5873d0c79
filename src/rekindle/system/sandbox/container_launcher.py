"""Execute an OCI runtime, with this program's environment in file descriptor 3.

    python -I -S container_launcher.py RUNTIME ARGUMENTS...

A container's configuration is a file, so an environment in it would write keys to the disk.
"""

import os
import sys

_ENVIRONMENT = 3


def main(arguments: list[str]) -> None:
    number = os.memfd_create("environment", 0)
    data = b"\0".join(name + b"=" + value for name, value in os.environb.items())
    while data:
        data = data[os.write(number, data) :]
    os.lseek(number, 0, os.SEEK_SET)
    if number != _ENVIRONMENT:
        os.dup2(number, _ENVIRONMENT)
        os.close(number)
    os.execv(arguments[0], arguments)  # noqa: S606 - the runtime, no shell


if __name__ == "__main__":
    main(sys.argv[1:])
