"""Record the hosts that a sandbox refused, and tell the operator how to allow them."""

from rekindle.documents.events import HostRefused
from rekindle.flows.supervisor_ports import RefusedHostReport, SupervisorPorts
from rekindle.policy.sandbox.allowed_hosts import render_permission
from rekindle.thresholds.sandbox_limits import REFUSED_HOSTS


def record_refused_host(ports: SupervisorPorts, agent: str, launch: str, host: str) -> None:
    """Record a refused host, report it, and send a notification if it is new in this run.

    The agent chooses the names, so the number of notifications is limited.
    """
    permission, is_new = render_permission(host), False
    with ports.report_trouble(), ports.store.writer(agent) as writer:
        hosts = writer.projection.run.list_refused_hosts()
        is_new = host not in hosts and len(hosts) < REFUSED_HOSTS
        writer.append(HostRefused(ts=ports.clock(), launch=launch, host=host))
    ports.tell(RefusedHostReport(host, permission))
    if is_new:
        ports.notify("host refused", f"{host}\n→ to allow it: `{permission}`")
