"""The entry of the program. What it cannot run on is refused before anything else is imported."""

import gc
import sys
from typing import NoReturn

UNSUPPORTED = 2
"""The exit code of a wrong usage; errors.py is not there yet to say so."""


def main() -> NoReturn:
    if sys.platform == "win32":
        # Its Python has no fcntl: without locks of the system no write here could be acknowledged.
        sys.stderr.write(
            "Error: Rekindle does not run on Windows; it runs on Linux and macOS.\n"
            "  → run it in WSL: https://learn.microsoft.com/windows/wsl/install\n"
        )
        sys.exit(UNSUPPORTED)
    # Imports leave no garbage: to look for it takes a tenth of a short command's time.
    gc.disable()
    from rekindle.cli.main import main as run  # noqa: PLC0415 - see above

    run()


if __name__ == "__main__":
    main()
