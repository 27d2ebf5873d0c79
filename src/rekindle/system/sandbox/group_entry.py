"""Move this process into a control group, then execute a program.

    python -I -S group_entry.py FILE PROGRAM...

FILE is the `cgroup.procs` of the group. A shell could do the same, but some shells run code from
the environment, which contains variables of the agent.
"""

import os
import sys


def main(arguments: list[str]) -> None:
    file, *program = arguments
    try:
        number = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
        os.write(number, b"0")
    except OSError as error:
        sys.exit(f"the limits of the sandbox cannot be set: {error}")
    os.execvp(program[0], program)  # noqa: S606 - the sandbox, no shell


if __name__ == "__main__":
    main(sys.argv[1:])
