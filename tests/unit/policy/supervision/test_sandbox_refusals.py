"""Hosts that an agent's sandbox refused."""

from rekindle.policy.supervision.sandbox_refusals import RefusedHost, add_refused_host
from rekindle.thresholds.sandbox_limits import REFUSED_HOSTS


def test_the_last_refusal_of_each_host_counts():
    """The oldest hosts are dropped first."""
    hosts: tuple[RefusedHost, ...] = ()
    for seq in range(REFUSED_HOSTS + 2):
        hosts = add_refused_host(hosts, RefusedHost(seq, f"host-{seq}"))
    assert len(hosts) == REFUSED_HOSTS
    assert hosts[0] == RefusedHost(2, "host-2")
    again = add_refused_host(hosts, RefusedHost(99, "host-2"))
    assert again[-1] == RefusedHost(99, "host-2")
    assert len(again) == REFUSED_HOSTS
