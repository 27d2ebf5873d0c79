"""The program's entry point, which refuses unsupported platforms before importing anything else."""

import gc
import sys
from typing import NoReturn

UNSUPPORTED = 2
"""Exit code for a usage error; `rekindle.errors` is not imported yet at this point."""


def main() -> NoReturn:
    if sys.platform == "win32":
        # Python on Windows has no fcntl; without system locks, no write could be acknowledged.
        sys.stderr.write(
            "Error: Rekindle does not run on Windows; it runs on Linux and macOS.\n"
            "  → run it in WSL: https://learn.microsoft.com/windows/wsl/install\n"
        )
        sys.exit(UNSUPPORTED)
    # Imports create no garbage. Searching for it would take a tenth of a short command's time.
    gc.disable()
    from rekindle.cli.main import main as run  # noqa: PLC0415 - see above

    run()


if __name__ == "__main__":
    main()
