"""What encloses an agent ends with its supervisor."""

import os
import select
import subprocess
import sys

SUPERVISOR = """\
import subprocess, sys
from contextlib import ExitStack
from rekindle.policy.sandbox.profile import SandboxProfile
from rekindle.policy.sandbox.sandbox_command import SandboxCommand
from rekindle.system.sandbox.container_runtime import ContainerRuntime
from rekindle.system.sandbox.containments import Container

runtime, folder = sys.argv[1:]
container = Container(ContainerRuntime(runtime, has_groups=False))
view = SandboxCommand(program=runtime, mounts=(), folder=folder)
given = dict(profile=SandboxProfile(), environment={}, resources=ExitStack())
subprocess.run(container.enclose(view, ["cli"], **given))
"""


def test_the_runtime_of_a_container_ends_if_its_supervisor_is_killed(tmp_path):
    (runtime := tmp_path / "crun").write_text(
        f"#!/bin/sh\nexec 9>{tmp_path}/pipe\nexec sleep 600\n"
    )
    runtime.chmod(0o755)
    os.mkfifo(tmp_path / "pipe")
    environment = {"PATH": os.defpath, "HOME": str(tmp_path)}
    argv = [sys.executable, "-c", SUPERVISOR, str(runtime), str(tmp_path)]
    with (
        subprocess.Popen(argv, env=environment) as supervisor,
        (tmp_path / "pipe").open("rb", buffering=0) as pipe,  # waits for the runtime
    ):
        supervisor.kill()
        assert select.select([pipe], [], [], 30)[0]
        assert pipe.read(1) == b""
