"""Start the program, but refuse unsupported platforms before importing anything else."""

import gc
import sys
from typing import NoReturn

UNSUPPORTED = 2
"""Exit code for a usage error. At this point, `rekindle.errors` is not imported yet."""


def main() -> NoReturn:
    if sys.platform == "win32":
        # Python on Windows has no fcntl, and without file locks no write could be acknowledged.
        sys.stderr.write(
            "Error: Rekindle does not run on Windows; it runs on Linux and macOS.\n"
            "  → run it in WSL: https://learn.microsoft.com/windows/wsl/install\n"
        )
        sys.exit(UNSUPPORTED)
    # Imports create no garbage, and collecting it would take a tenth of a short command's time.
    gc.disable()
    from rekindle.cli.main import main as run  # noqa: PLC0415 - see above

    run()


if __name__ == "__main__":
    main()
