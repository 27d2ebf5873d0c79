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
    if sys.argv[1:2] == ["hook"]:
        from rekindle.wiring.plugin_hook import main as run_hook  # noqa: PLC0415 - as below

        run_hook(sys.argv[2:])
        sys.exit(0)
    from rekindle.cli.main import main as run  # noqa: PLC0415 - Windows is refused first

    run()


if __name__ == "__main__":
    main()
