"""Find the agent CLIs on this host that can have Rekindle's plugin."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from rekindle.documents.plugins.plugin_clis import CLIS
from rekindle.flows.plugins.install_plugin import PluginPlace, locate_plugin
from rekindle.system.processes.program_search import find_executable
from rekindle.wiring.open_store import HARNESSES


def find_places(names: Iterable[str] = CLIS) -> Iterator[tuple[str, PluginPlace]]:
    """Yield each of these CLIs that is on the PATH, with its place."""
    data = os.environ.get("XDG_DATA_HOME", "")
    # The XDG specification says that relative paths must be ignored.
    records = (Path(data) if data.startswith("/") else Path.home() / ".local/share") / "rekindle"
    for name in dict.fromkeys(names):
        files = HARNESSES[CLIS[name].harness].HOOK_FILES
        if files is not None and find_executable(name):
            yield name, locate_plugin(CLIS[name], files, os.environ, records)
