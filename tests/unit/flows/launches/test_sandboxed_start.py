"""A sandboxed program starts in its control group, which is removed when the program ends."""

from types import SimpleNamespace

import msgspec
import pytest

from rekindle.documents.launches.sandbox_needs import SandboxNeeds
from rekindle.flows.launches import sandboxed_start
from rekindle.flows.launches.launch_access import LaunchAccess
from rekindle.flows.supervisor_ports import AgentSandbox
from rekindle.policy.sandbox import bubblewrap
from rekindle.policy.sandbox.mounts import SandboxPaths, StatePaths
from rekindle.policy.sandbox.profile import SandboxProfile
from rekindle.policy.sandbox.sandbox_command import SandboxCommand
from rekindle.system.sandbox import host_paths, limit_group, probe

PROFILE = SandboxProfile(memory=1024, processes=5, cpu=0.5)


class Child:
    pid, code, errors = 7, 0, ""

    def follow(self, every):
        yield b"working"
        yield None


class Host:
    """Stands for the host: its control groups, and the processes that it starts."""

    def __init__(self):
        self.happened, self.fails = [], False

    def start(self, argv, *, environment, **_):
        self.happened.append(("start", *argv))
        self.environment = environment
        if self.fails:
            raise OSError("cannot start")
        return Child()

    def make_limit_group(self, mark, files):
        self.happened.append(("group", mark, *files))
        return SimpleNamespace(
            wrap=lambda argv: ["enter", *argv],
            remove=lambda: self.happened.append(("remove",)),
        )


@pytest.fixture
def host(monkeypatch):
    host = Host()
    monkeypatch.setattr(probe, "require_sandbox", lambda: "bwrap")
    monkeypatch.setattr(
        probe, "find_limits", lambda memory, processes: (f"data={memory} nproc={processes}",)
    )
    monkeypatch.setattr(limit_group, "make_limit_group", host.make_limit_group)
    monkeypatch.setattr(
        bubblewrap,
        "render_command",
        lambda sandbox, argv: [f"bwrap {' '.join(sandbox.limits)}", *argv],
    )
    monkeypatch.setattr(
        sandboxed_start,
        "_enclose",
        lambda agent, sandbox, argv, environment, *, containment, resources, **_: (
            containment.enclose(
                SandboxCommand(program=containment.program, mounts=(), folder=agent.folder),
                argv,
                profile=sandbox.profile,
                environment=environment,
                resources=resources,
            )
        ),
    )
    return host


def start(host, monkeypatch, *controllers, profile=PROFILE, access=None, **more):
    monkeypatch.setattr(limit_group, "list_controllers", lambda: frozenset(controllers))
    agent = SimpleNamespace(
        sandbox=AgentSandbox(profile, SimpleNamespace(marks="/marks", scratch="/scratch")),
        harness=SimpleNamespace(SANDBOX=SandboxNeeds()),
        folder="/work",
        program=(),
    )
    environment = {"REKINDLE_LAUNCH": "m1", **more}
    return sandboxed_start.start_program(
        host, agent, ["cli"], prompt="", environment=environment, access=access
    )


def test_a_limited_program_runs_in_a_group_that_ends_with_it(host, monkeypatch):
    child = start(host, monkeypatch, "memory", "pids", "cpu")
    files = ("memory.max", "memory.swap.max", "pids.max", "cpu.max")
    started = ("start", "enter", "bwrap data=None nproc=None", "cli")
    assert host.happened == [("group", "m1", *files), started]
    assert list(child.follow(1)) == [b"working", None]
    assert host.happened[2:] == [("remove",)]


def test_without_delegation_prlimit_limits_the_program(host, monkeypatch):
    child = start(host, monkeypatch)
    assert list(child.follow(1)) == [b"working", None]
    assert host.happened == [("start", "bwrap data=1024 nproc=5", "cli")]


def test_a_failed_start_leaves_no_group(host, monkeypatch):
    host.fails = True
    with pytest.raises(OSError, match="cannot start"):
        start(host, monkeypatch, "cpu")
    assert host.happened[-1] == ("remove",)


def test_a_host_with_a_key_is_reached_only_through_the_gateway(host, monkeypatch):
    given = []

    class Proxy:
        address = ("/scratch", "proxy")

        def __init__(self, folder, hosts, setup):
            given.extend(hosts)

        def close(self):
            pass

    monkeypatch.setattr(sandboxed_start, "EgressProxy", Proxy)
    access = LaunchAccess(keyed=("api.example.org:443",), setup=b"{}", reaches_model=False)
    profile = msgspec.structs.replace(PROFILE, network=("api.example.org", "files.example.org"))
    start(host, monkeypatch, profile=profile, access=access)
    assert set(given) == {"api.example.org:80", "files.example.org:443", "files.example.org:80"}


def enclose(tmp_path, monkeypatch, programs, *, is_on_host):
    """Return which of these programs a sandbox shows, if they are found but are links by then."""
    own, shown = tmp_path / "hosts/own", []
    (own / "work").mkdir(parents=True, exist_ok=True)
    for program in programs:
        program.parent.mkdir(parents=True, exist_ok=True)
        program.symlink_to(tmp_path)
    names = ("rekindle", "own", "run", "draft", "user", "hooks", "scratch", "marks")
    paths = SandboxPaths(
        folder=str(own / "work"),
        manifest=str(own / "rekindle.yaml"),
        **{name: str(own / ".rekindle" / name) for name in names},
    )
    state = StatePaths(str(tmp_path / "state"), is_closed=False)
    monkeypatch.setattr(sandboxed_start, "_prepare_state", lambda *_: state)
    monkeypatch.setattr(host_paths, "find_programs", lambda *_: [str(one) for one in programs])
    containment = SimpleNamespace(
        program="bwrap", enclose=lambda sandbox, *_, **__: shown.extend(sandbox.mounts)
    )
    profile = SandboxProfile(is_on_host=is_on_host)
    sandboxed_start._enclose(
        SimpleNamespace(program=(), folder=paths.folder, stays=False),
        AgentSandbox(profile, paths),
        ["cli"],
        {},
        containment=containment,
        proxy=("", ""),
        has_network=False,
        resources=None,
    )
    return {mount.path for mount in shown} & {str(one) for one in programs}


def test_on_a_host_no_program_is_shown_that_its_agent_could_replace_with_a_link(
    tmp_path, monkeypatch
):
    names = ("hosts/own/tools/cli", "state/cli", "tools/cli")
    programs = [tmp_path / name for name in names]
    shown = enclose(tmp_path, monkeypatch, programs, is_on_host=True)
    assert shown == {str(tmp_path / "tools/cli")}


def test_without_a_host_a_program_may_be_a_link(tmp_path, monkeypatch):
    programs = [tmp_path / "hosts/own/tools/cli"]
    assert enclose(tmp_path, monkeypatch, programs, is_on_host=False) == {str(programs[0])}


@pytest.mark.parametrize("is_on_host", [True, False])
def test_an_agent_on_a_host_does_not_see_the_host_s_proxy(host, monkeypatch, is_on_host):
    """Its address often contains a password."""
    profile = msgspec.structs.replace(PROFILE, is_on_host=is_on_host)
    address = "http://ann:secret@proxy:8080"
    proxies = {"HTTPS_PROXY": address, "http_proxy": address, "ALL_PROXY": address}
    start(host, monkeypatch, profile=profile, **proxies)
    assert (address in host.environment.values()) is not is_on_host
