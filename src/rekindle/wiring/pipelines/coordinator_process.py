"""Coordinate a pipeline run in a separate process, in the project's folder.

Usage: python -P -m rekindle.wiring.pipelines.coordinator_process PIPELINE RUN
"""

import sys
from pathlib import Path

from rekindle.errors import RekindleError
from rekindle.stores.folders import private_files
from rekindle.stores.pipelines.run_folder import find_run
from rekindle.wiring.pipelines.coordinator_setup import coordinate


def main(pipeline: str, run: str) -> int:
    """Coordinate a run until it ends. The process's output is in the run's output.log."""
    try:
        path = Path.cwd()
        private = private_files.find_private_project(path)
        outcome = coordinate(path, find_run(private, pipeline, int(run)))
    except RekindleError as error:
        hint = f"\n  → {error.hint}" if error.hint else ""
        sys.stderr.write(f"Error: {error}{hint}\n")
        return error.exit_code
    sys.stdout.write(f"{outcome or 'ended by a signal, or another coordinator is running'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
