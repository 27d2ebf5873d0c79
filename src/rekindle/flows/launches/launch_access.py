"""Ask a host's credential helper before a launch."""

import os
from collections.abc import Mapping, Sequence

import msgspec

from rekindle.documents.launches.launch_credentials import (
    CredentialsRequest,
    HostCredentials,
    LaunchCredentials,
    parse_credentials,
)
from rekindle.errors import CredentialsError
from rekindle.flows.supervisor_ports import AgentSpec
from rekindle.policy.sandbox.gateway_access import GatewayAccess, make_access
from rekindle.system import clock, credential_program
from rekindle.system.sandbox.gateway_setup import GatewaySetup, pack_environment


class LaunchAccess(msgspec.Struct, frozen=True):
    """Credentials of one launch, and how its program uses them."""

    environment: Mapping[str, str] = {}
    arguments: tuple[str, ...] = ()
    keyed: tuple[str, ...] = ()
    """Hosts that only the gateway may reach, each as `name:port`."""
    setup: bytes = b""
    """Setup of the gateway; empty if there is none."""
    reaches_model: bool = True
    """Whether the program may reach the hosts that its CLI needs."""

    def __repr__(self) -> str:
        return f"LaunchAccess({sorted(self.environment)})"

    def add_arguments(self, argv: Sequence[str], program: Sequence[str]) -> tuple[str, ...]:
        """Return a command with the gateway's arguments after the CLI's program."""
        place = max(len(program), 1)
        return (*argv[:place], *self.arguments, *argv[place:])


def make_command_access(agent: AgentSpec) -> LaunchAccess | None:
    """Return what a command beside the CLI gets, or None if the host has no helper.

    It gets no credentials, so it could reach the model only with those of another account.
    """
    host = agent.credentials
    return LaunchAccess(reaches_model=False) if host is not None and host.program else None


def fetch_access(agent: AgentSpec, launch: str) -> LaunchAccess | None:
    """Return the credentials for a launch, or None if the host has no helper.

    Raises:
        CredentialsError: The helper failed, or its credentials cannot be used.
    """
    host = agent.credentials
    if host is None or not host.program:
        return None
    request = msgspec.json.encode(
        CredentialsRequest(
            agent=agent.name,
            team=host.team,
            harness=agent.harness.NAME,
            repository=host.repository,
            launch=launch,
        )
    )
    output = credential_program.run_helper(host.program, request, os.environ)
    credentials = parse_credentials(output, host.program, clock.read_clock())
    if not credentials.keys:
        return LaunchAccess(credentials.env)
    gateway = _open_gateway(agent, host, credentials)
    setup = GatewaySetup(
        host.program,
        request.decode(),
        pack_environment(os.environb),
        credentials.keys,
        credentials.expires,
    )
    return LaunchAccess(
        {**credentials.env, **gateway.environment},
        gateway.arguments,
        gateway.keyed,
        msgspec.json.encode(setup),
        reaches_model=False,
    )


def _open_gateway(
    agent: AgentSpec, host: HostCredentials, credentials: LaunchCredentials
) -> GatewayAccess:
    if agent.sandbox is None:
        raise CredentialsError(
            host.program,
            "printed `keys`, which only a sandbox can keep from the agent",
            hint="start the worker without `--sandbox off`, or print the key in `env`",
        )
    return make_access(
        host.program,
        agent.harness.NAME,
        agent.harness.SANDBOX,
        {**agent.environment, **credentials.env},
        credentials,
    )
