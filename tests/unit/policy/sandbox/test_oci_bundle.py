"""The configuration of an OCI container."""

from rekindle.policy.sandbox.mounts import Mount
from rekindle.policy.sandbox.oci_bundle import ContainerUser, render_bundle
from rekindle.policy.sandbox.profile import SandboxProfile
from rekindle.policy.sandbox.sandbox_command import SandboxCommand

MOUNTS = (
    Mount("read", "/usr"),
    Mount("mask", "/tmp"),  # noqa: S108 - only a word
    Mount("mask", "/project"),
    Mount("write", "/project/w"),
    Mount("close", "/project"),
    Mount("close", "/"),
)


def render(mounts=MOUNTS, *, has_network=False, limiting=(), memory=None, **more):
    sandbox = SandboxCommand(
        program="/bin/crun",
        mounts=mounts,
        folder="/w",
        has_network=has_network,
        limits=limiting,
        memory=memory,
    )
    user = ContainerUser(1000, 100)
    return render_bundle(sandbox, ["cli"], root="/r", user=user, environment={"A": "b"}, **more)


def test_it_shows_the_mounts_of_a_sandbox_in_order():
    shown = [(one["destination"], one["type"], one["options"]) for one in render()["mounts"][-4:]]
    plain = ["nosuid", "nodev"]
    assert shown == [
        ("/usr", "none", ["rbind", *plain, "rro"]),
        ("/tmp", "tmpfs", [*plain, "mode=755"]),  # noqa: S108 - only a word
        ("/project", "tmpfs", [*plain, "mode=755", "ro"]),
        ("/project/w", "none", ["rbind", *plain]),
    ]
    assert render()["root"] == {"path": "/r", "readonly": True}
    assert not render(MOUNTS[:-1])["root"]["readonly"]


def test_folders_in_memory_have_a_size():
    folders = [one for one in render(memory=1024)["mounts"] if one["type"] == "tmpfs"]
    sizes = {one["destination"]: one["options"][-1] for one in folders}
    assert sizes.pop("/dev") == "size=65536k"
    assert set(sizes.values()) == {"size=1024"}
    assert {"/dev/shm", "/tmp"} <= set(sizes)  # noqa: S108 - only words


def test_only_folders_are_read_only_with_their_mounts():
    mounts = (Mount("read", "/d"), Mount("read", "/f"), Mount("hide", "/s"), Mount("write", "/w"))
    shown = render(mounts, files=["/f", "/s", "/w"])["mounts"][-4:]
    assert [one["options"][3:] for one in shown] == [["rro"], ["ro"], ["ro"], []]
    assert shown[2]["source"] == "/dev/null"


def test_a_file_can_appear_elsewhere():
    [*_, last] = render((Mount("read", "/a"),), places={"/a": "/b"})["mounts"]
    assert (last["source"], last["destination"]) == ("/a", "/b")


def test_its_program_keeps_the_user_and_has_no_privileges():
    rendered = render(limiting=("prlimit", "--"))
    process = rendered["process"]
    assert process["args"] == ["prlimit", "--", "cli"]
    assert (process["cwd"], process["env"], process["terminal"]) == ("/w", ["A=b"], False)
    assert (process["capabilities"], process["noNewPrivileges"]) == ({}, True)
    assert process["user"] == {"uid": 1000, "gid": 100}
    linux = rendered["linux"]
    assert linux["uidMappings"] == [{"containerID": 1000, "hostID": 1000, "size": 1}]
    assert linux["gidMappings"] == [{"containerID": 100, "hostID": 100, "size": 1}]
    assert "/proc/sys" in linux["readonlyPaths"]
    assert "/proc/kcore" in linux["maskedPaths"]
    assert linux["seccomp"]["syscalls"]


def test_it_has_its_own_namespaces():
    def kinds(**more):
        return {one["type"] for one in render(**more)["linux"]["namespaces"]}

    own = {"pid", "ipc", "uts", "mount", "user", "cgroup"}
    assert kinds() == {*own, "network"}
    assert kinds(has_network=True) == own


def test_the_runtime_limits_it_only_in_a_group():
    limits = SandboxProfile(memory=1024, processes=5, cpu=1.5)
    assert "resources" not in render()["linux"]
    linux = render(group="/rekindle/a", limits=limits)["linux"]
    assert linux["cgroupsPath"] == "/rekindle/a"
    assert linux["resources"] == {
        "memory": {"limit": 1024, "swap": 1024},
        "pids": {"limit": 5},
        "cpu": {"quota": 150_000, "period": 100_000},
    }
    assert render(group="/rekindle/a")["linux"]["resources"] == {}
