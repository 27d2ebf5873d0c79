"""The network that agent CLIs are run in."""

import os
import socket
import subprocess
import sys

import pytest

from loopback.namespace import Namespace

CONNECT = """
import errno, socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=10).close()
except OSError as error:
    print(errno.errorcode.get(error.errno, error))
else:
    print("connected")
"""

OUTSIDE = ["192.0.2.1", "2001:db8::1"]
"""Addresses without a host: they are reserved for documentation."""


def connect(network: Namespace, address: str, port: int) -> str:
    argv = network.argv([sys.executable, "-I", "-c", CONNECT, address, str(port)])
    return subprocess.check_output(argv, text=True, timeout=30).strip()


@pytest.mark.parametrize("address", OUTSIDE)
def test_no_way_out(network, address):
    """Connecting to anything but loopback fails at once: there is no route."""
    assert connect(network, address, 80) == "ENETUNREACH"


def test_the_listener_is_inside(network):
    """Programs inside reach the listener, which this process serves from outside."""
    assert connect(network, *network.listener.getsockname()) == "connected"
    network.listener.accept()[0].close()


def test_the_outside_stays_outside(network):
    """Neither side of the wall reaches a server on the loopback of the other."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert connect(network, *server.getsockname()) == "ECONNREFUSED"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(network.listener.getsockname(), timeout=10)


def test_the_pid_is_the_commands(network):
    """A command that is started inside is the very child of this process."""
    argv = network.argv([sys.executable, "-I", "-c", "import os; print(os.getpid(), os.getppid())"])
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.communicate(timeout=30)[0].split() == [str(process.pid), str(os.getpid())]
