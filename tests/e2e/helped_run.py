"""Run an agent as a host of a fleet does: with a credential helper.

python helped_run.py HELPER AUTHORITY
"""

import os
import sys
from pathlib import Path

import msgspec

from rekindle import config
from rekindle.documents.launches.launch_credentials import HostCredentials
from rekindle.errors import RekindleError
from rekindle.wiring.open_store import open_store
from rekindle.wiring.supervisor_setup import run_supervisor


def load(path: Path) -> config.Project:
    credentials = HostCredentials(sys.argv[1], "red", "https://example.com/repository")
    return msgspec.structs.replace(config.load_project(path), credentials=credentials)


if __name__ == "__main__":
    os.environ["SSL_CERT_FILE"] = sys.argv[2]
    project = load(Path.cwd())
    try:
        run_supervisor(project, open_store(project), "trades", print, once=True, load=load)
    except RekindleError as error:
        sys.exit(f"{type(error).__name__}: {error} → {error.hint}")
