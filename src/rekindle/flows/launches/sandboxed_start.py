"""Start an agent's program, inside its sandbox if it has one.

This module starts the CLI, and everything else that runs code from the agent's folder: the
reviewer, the `until:` command, and the query for window sizes, which makes a CLI read the project's
settings.
"""

import os
import shutil
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import msgspec

from rekindle.documents.launches.sandbox_needs import SandboxNeeds
from rekindle.errors import SandboxError
from rekindle.flows.launches.launch_access import LaunchAccess
from rekindle.flows.supervisor_ports import AgentSandbox, AgentSpec
from rekindle.policy.sandbox import allowed_hosts, mounts
from rekindle.policy.sandbox.mount_check import describe_mounts
from rekindle.policy.sandbox.mounts import SandboxPaths, StatePaths
from rekindle.policy.sandbox.sandbox_command import SandboxCommand
from rekindle.ports import Processes, ProcessHandle
from rekindle.system.files import durable_files
from rekindle.system.sandbox import containments, host_paths, sandbox_entry
from rekindle.system.sandbox.containments import Containment
from rekindle.system.sandbox.egress import EgressProxy

MARKS_VARIABLE = "REKINDLE_MARKS"
"""Variable that names the folder for the hooks' marker files. `hook` defines the same name."""
_TEMPORARY_VARIABLES = ("TMPDIR", "TMP", "TEMP")


def start_program(
    processes: Processes,
    agent: AgentSpec,
    argv: Sequence[str],
    *,
    prompt: str,
    environment: Mapping[str, str],
    on_refused: Callable[[str], None] = lambda _: None,
    has_network: bool = False,
    access: LaunchAccess | None = None,
) -> ProcessHandle:
    """Start a program in the agent's folder, and call `on_refused` with each refused host.

    With `has_network`, the program may reach every host even in a sandbox; on a fleet host, every
    other host. `access` has the credentials from the host's helper.

    Raises:
        SandboxError: The agent needs a sandbox, but this host cannot create one.
    """
    sandbox = agent.sandbox
    if access is not None:
        argv = access.add_arguments(argv, agent.program)
        environment = {**environment, **access.environment}
    if sandbox is None:
        return processes.start(argv, prompt=prompt, environment=environment, folder=agent.folder)
    environment = _adapt_environment(environment, sandbox.paths)
    hosts: tuple[str, ...] = ()
    setup = access.setup if access is not None else b""
    permitted: tuple[str, ...] = ()
    if not has_network:
        # With a gateway, the CLI needs no other host, not even that of its model.
        needs = agent.harness.SANDBOX if not access or access.reaches_model else SandboxNeeds()
        hosts = allowed_hosts.list_hosts(needs, environment, sandbox.profile.network)
        operators = {**os.environ, **(access.environment if access is not None else {})}
        permitted = allowed_hosts.list_hosts(needs, operators, ())
    if sandbox.profile.is_on_host:
        # The author of a manifest must not reach the services of a fleet's host. Only its operator
        # can name one, for the model.
        hosts = allowed_hosts.drop_host_services(hosts, permitted)
        hosts = (allowed_hosts.ANY_HOST,) if has_network else hosts
        has_network = False
    containment = containments.find_containment(is_container=sandbox.profile.is_container)
    with ExitStack() as resources:
        proxy = None
        if hosts or setup or sandbox.profile.is_on_host:
            # The address of a host's own proxy often contains a password.
            environment = allowed_hosts.adapt_environment(environment)
            if access is not None:
                environment |= access.environment
        if hosts or setup:
            if access is not None:
                hosts = tuple(host for host in hosts if host not in access.keyed)
            proxy = EgressProxy(Path(sandbox.paths.scratch), hosts, setup)
            resources.callback(proxy.close)
        command = _enclose(
            agent,
            sandbox,
            argv,
            environment,
            containment=containment,
            proxy=proxy.address if proxy is not None else ("", ""),
            has_network=has_network,
            resources=resources,
        )
        child = processes.start(
            command, prompt=prompt, environment=environment, folder=agent.folder
        )
        return _SandboxedProcess(child, proxy, on_refused, resources.pop_all())


class _SandboxedProcess:
    """A sandboxed process, with a proxy and a control group that end when the process does."""

    def __init__(
        self,
        child: ProcessHandle,
        proxy: EgressProxy | None,
        on_refused: Callable[[str], None],
        resources: ExitStack,
    ) -> None:
        self._child, self._proxy, self._on_refused = child, proxy, on_refused
        self._resources = resources

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def code(self) -> int:
        return self._child.code

    @property
    def errors(self) -> str:
        return self._child.errors

    def follow(self, every: float) -> Generator[bytes | None, None, None]:
        try:
            with closing(self._child.follow(every)) as lines:
                for line in lines:
                    if line is None:
                        self._report()
                    yield line
            self._report()
        finally:
            self._resources.close()

    def ask_to_end(self) -> None:
        self._child.ask_to_end()

    def kill(self) -> None:
        self._child.kill()

    def _report(self) -> None:
        for host in self._proxy.read_refused() if self._proxy is not None else ():
            self._on_refused(host)


def _enclose(
    agent: AgentSpec,
    sandbox: AgentSandbox,
    argv: Sequence[str],
    environment: Mapping[str, str],
    *,
    containment: Containment,
    proxy: tuple[str, str],
    has_network: bool,
    resources: ExitStack,
) -> list[str]:
    """Wrap the agent's program in a sandbox command.

    `proxy` is the address of its proxy, with an empty name if there is none.

    Raises:
        SandboxError: The agent's folder or another writable folder is missing, or its path contains
            a link.
    """
    system, links = host_paths.find_system()
    home = environment.get("HOME") or str(Path.home())
    path = environment.get("PATH", "")
    named = {shutil.which(word, path=path) or word for word in (*argv[:1], *agent.program[:1])}
    words = (*named, *argv[1:], *agent.program[1:])
    project = str(Path(sandbox.paths.manifest).parent) if sandbox.profile.is_on_host else ""
    paths = msgspec.structs.replace(
        sandbox.paths,
        system=system,
        runtime=host_paths.find_runtime(),
        programs=tuple(
            one for one in host_paths.find_programs(words, path, home, project) if one not in links
        ),
        state=_prepare_state(agent, environment, Path(home)),
    )
    for folder in (paths.run, paths.draft):
        for missing in (Path(folder).parent, Path(folder)):
            durable_files.make_folder(missing)
    planned = mounts.make_mounts(paths, sandbox.profile)
    roots = {paths.folder, *sandbox.profile.write}
    outside = {*paths.runtime, *_list_fixed(paths, project)}
    optional = {mount.path for mount in planned if mount.is_optional}
    real = host_paths.identify_real((optional - outside) | roots)
    for root in roots - real.keys():
        raise SandboxError(
            f"a folder of the sandbox is missing or leads through a link: {root}",
            hint="check who replaced it, and create it again",
        )
    present = real.keys() | {path for path in optional & outside if Path(path).exists()}
    entry = (sys.executable, "-I", "-S", sandbox_entry.__file__)
    description = describe_mounts(real, host_paths.read_mounts())
    command = [*entry, description, *proxy, str(allowed_hosts.PROXY_PORT), *argv]
    enclosing = SandboxCommand(
        program=containment.program,
        mounts=tuple(mounts.drop_absent(planned, present)),
        links=links,
        folder=agent.folder,
        has_network=has_network,
        is_terminal=agent.stays,
    )
    return containment.enclose(
        enclosing,
        command,
        profile=sandbox.profile,
        environment=environment,
        resources=resources,
    )


def _list_fixed(paths: SandboxPaths, project: str) -> list[str]:
    """Return the programs that lead through links only if the operator created them.

    On a host, an agent may have written the command, and programs in its project and its CLI's
    state. Without a host, `project` is empty.
    """
    if not project:
        return list(paths.programs)
    written = (os.path.realpath(project), *((paths.state.folder,) if paths.state else ()))
    return [
        one
        for one in paths.programs
        if not any(mounts.is_inside(one, folder) for folder in written)
    ]


def _prepare_state(
    agent: AgentSpec, environment: Mapping[str, str], home: Path
) -> StatePaths | None:
    needs, files = agent.harness.SANDBOX.state, agent.harness.HOOK_FILES
    if needs is None or files is None:
        return None
    folder = Path(files.find_own_folder(environment, str(home))).resolve()
    return host_paths.prepare_state(folder, needs, home)


def _adapt_environment(environment: Mapping[str, str], paths: SandboxPaths) -> dict[str, str]:
    return {
        **environment,
        **dict.fromkeys(_TEMPORARY_VARIABLES, mounts.TEMPORARY),
        MARKS_VARIABLE: paths.marks,
    }
