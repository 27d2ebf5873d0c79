"""The networks of a cluster: addresses on one loopback, or a network for each machine.

On the loopback, clients reach every server directly. With a network for each machine, which needs
root, a cable connects each machine to a switch, and a test can cut it.
"""

import os
import subprocess
from collections.abc import Iterable
from typing import Protocol

from loopback.namespace import Namespace

_NOWHERE = "02:00:00:00:00:00"
"""An Ethernet address that no machine has: the switch drops packets for it."""


class Network(Protocol):
    database_ip: str

    def ip(self, machine: str) -> str:
        """Return the address of a machine."""

    def argv(self, machine: str, argv: list[str]) -> list[str]:
        """Return the command that runs on this machine; the switch is the machine ''."""

    def close(self) -> None: ...


class Loopback:
    """All machines share this machine's network."""

    database_ip = "127.0.0.10"

    def __init__(self, machines: Iterable[str]) -> None:
        self._ips = {name: f"127.0.0.{11 + number}" for number, name in enumerate(machines)}

    def ip(self, machine: str) -> str:
        return self._ips[machine]

    def argv(self, machine: str, argv: list[str]) -> list[str]:
        del machine
        return argv

    def close(self) -> None:
        return


class Switch:
    """Each machine has its own network, and one cable to a switch with the database."""

    database_ip = "10.77.0.10"

    def __init__(self, machines: Iterable[str]) -> None:
        self._ips = {name: f"10.77.0.{11 + number}" for number, name in enumerate(machines)}
        self._switch = Namespace()
        self._machines = {name: Namespace() for name in self._ips}
        self._ip("", "link", "add", "switch", "type", "bridge")
        self._ip("", "address", "add", f"{self.database_ip}/24", "dev", "switch")
        self._ip("", "link", "set", "switch", "up")
        for number, name in enumerate(self._machines):
            port, there = f"port{number}", self._machines[name].path
            cable = ["link", "add", port, "type", "veth", "peer", "name", "cable", "netns", there]
            self._ip("", *cable)
            self._ip("", "link", "set", port, "master", "switch", "up")
            self._ip(name, "address", "add", f"{self._ips[name]}/24", "dev", "cable")
            self._ip(name, "link", "set", "cable", "up")

    def ip(self, machine: str) -> str:
        return self._ips[machine]

    def argv(self, machine: str, argv: list[str]) -> list[str]:
        return (self._machines[machine] if machine else self._switch).argv(argv)

    def cut(self, machine: str) -> None:
        """Unplug a machine: it reaches neither other machines nor the database nor clients."""
        self._ip(machine, "link", "set", "cable", "down")

    def restore(self, machine: str) -> None:
        self._ip(machine, "link", "set", "cable", "up")

    def part(self, machine: str) -> None:
        """Drop packets between a machine and all others; it still reaches the database."""
        for here, there in self._pairs(machine):
            told = ["replace", self.ip(there), "lladdr", _NOWHERE, "dev", "cable"]
            self._ip(here, "neighbour", *told, "nud", "permanent")

    def join(self, machine: str) -> None:
        """Let packets through again between a machine and all others."""
        for here, there in self._pairs(machine):
            self._ip(here, "neighbour", "delete", self.ip(there), "dev", "cable")

    def close(self) -> None:
        for one in (*self._machines.values(), self._switch):
            one.close()

    def _pairs(self, machine: str) -> list[tuple[str, str]]:
        others = [name for name in self._machines if name != machine]
        return [*((machine, one) for one in others), *((one, machine) for one in others)]

    def _ip(self, machine: str, *args: str) -> None:
        argv = self.argv(machine, ["ip", *args])
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"ip {' '.join(args)}: {done.stderr}"


def can_switch() -> bool:
    """Return whether this user can create networks."""
    return os.geteuid() == 0
