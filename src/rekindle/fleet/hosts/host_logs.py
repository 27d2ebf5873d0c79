"""Find the logs of the agents on a fleet host."""

from pathlib import Path

from rekindle.errors import translate_os_errors
from rekindle.fleet.hosts.host_folder import HostFolder
from rekindle.flows.operator.export_traces import TracedLog
from rekindle.stores.folders.agent_folder import RekindleFolder


def list_host_logs(root: Path) -> list[TracedLog]:
    """Return the logs below a worker's root, each of which has only the host's part."""
    logs = []
    with translate_os_errors(root):
        folders = sorted(root.iterdir()) if root.is_dir() else []
    for path in folders:
        namespace, separator, agent = path.name.partition("~")
        definition = HostFolder(path, agent, "").definition() if separator else None
        if definition is not None:
            log = RekindleFolder(path).agent(agent).log
            logs.append(TracedLog(definition.project or namespace, agent, log))
    return logs
