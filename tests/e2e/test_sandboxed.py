"""An agent in a sandbox: what it can reach, and how it is kept alive there."""

import json
import signal
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import prerequisites
from desk import Desk
from e2e.handing import KINDS, MARK, MECHANICAL
from e2e.sandbox import TASK, Rekindle
from e2e.test_terminal import ALONE
from loopback.sandbox import KEY
from loopback.script import Forever, Hang, Text
from rekindle.stores.folders import private_files
from rekindle.system.sandbox import container_runtime, probe

pytestmark = pytest.mark.timeout(300)

COMMAND = """\
version: 1
agents:
  prober:
    harness: command
    prompt: PROMPT.md
    dir: prober
    cycles: 1
    command: [{python}, probe.py]
    until: ["true"]
    sandbox: {sandbox}
  other: {{harness: command, prompt: PROMPT.md, dir: other, command: ["true"]}}
runtime: {{relay: {{summarizer: mechanical}}, restart: {{cooldown: 0s}}}}
"""
PROBE = """\
import json, pathlib, socket, sys, urllib.request
attempts = json.loads(pathlib.Path("attempts.json").read_text())
results = {}
for name, (mode, path) in attempts.items():
    try:
        if mode == "connect":
            socket.create_connection(path, 5).close()
        elif mode == "fetch":
            urllib.request.urlopen(path, timeout=5).close()
        elif mode == "make":
            pathlib.Path(path).touch()
            pathlib.Path(path).unlink()
        else:
            open(path, mode).close()
        results[name] = "done"
    except urllib.error.HTTPError as error:
        results[name] = "done" if error.code == 404 else str(error.code)
    except OSError as error:
        results[name] = type(error).__name__
pathlib.Path("results.json").write_text(json.dumps(results))
"""


@pytest.fixture(autouse=True)
def _sandboxes():
    for obstacle in (probe.find_obstacle(), container_runtime.find_container_obstacle()):
        prerequisites.require(obstacle.words if obstacle else None)


KINDS_OF_SANDBOX = pytest.mark.parametrize("sandbox", ["on", "container"])


@pytest.fixture
def prober(claude, place):
    project = claude.project
    for name in ("prober/.git/hooks", "other"):
        (project / name).mkdir(parents=True)
    (project / "prober/.git/config").touch()
    (project / "PROMPT.md").write_text(TASK)
    (project / "prober/probe.py").write_text(PROBE)
    (claude.home / ".ssh").mkdir()
    for secret in (project / "other/secret", claude.home / ".ssh/id"):
        secret.write_text("secret")
    return Rekindle(claude, place)


def probe_all(rekindle, sandbox: str) -> dict[str, str]:
    """Run the agent, and return what became of each attempt."""
    project, home = rekindle.project, rekindle.cli.home
    private = private_files.find_private_project(project).agent("prober")
    with tempfile.NamedTemporaryFile() as neighbour:
        attempts = {
            "read a neighbour's folder": ("rb", project / "other/secret"),
            "write a neighbour's folder": ("ab", project / "other/secret"),
            "read ~/.ssh": ("rb", home / ".ssh/id"),
            "write the manifest": ("ab", project / "rekindle.yaml"),
            "write the log": ("ab", project / ".rekindle/agents/prober/ops.jsonl"),
            "write the operator's channel": ("make", private.inbox / "forged.seg"),
            "write the rules of its hooks": ("make", private.launch / "brake-0"),
            "read the files of others in /tmp": ("rb", Path(neighbour.name)),
            "write git's settings": ("ab", project / "prober/.git/config"),
            "make a git hook": ("make", project / "prober/.git/hooks/post-checkout"),
        }
        given = {name: (mode, str(path)) for name, (mode, path) in attempts.items()}
        port = urlsplit(rekindle.cli.model.url).port
        # Root may write these without capabilities. They affect the whole host.
        given["write a setting of the kernel"] = ("ab", "/proc/sys/kernel/core_pattern")
        given["connect to the network"] = ("connect", ("127.0.0.1", port))
        given["fetch a page"] = ("fetch", f"http://127.0.0.1:{port}/missing")
        (project / "prober/attempts.json").write_text(json.dumps(given))
        text = COMMAND.format(python=json.dumps(sys.executable), sandbox=sandbox)
        (project / "rekindle.yaml").write_text(text)
        rekindle("run", "prober")
    return json.loads((project / "prober/results.json").read_text())


@KINDS_OF_SANDBOX
def test_an_agent_in_a_sandbox_reaches_nothing_outside(prober, sandbox):
    assert set(probe_all(prober, "off").values()) == {"done"}
    results = probe_all(prober, sandbox)
    assert "done" not in results.values(), results


UNDO = """\
import ctypes, json, os, pathlib, subprocess
libc = ctypes.CDLL(None, use_errno=True)
MS_REMOUNT_BIND, MNT_DETACH = 32 | 4096, 2
manifest = pathlib.Path("../rekindle.yaml").resolve()
config = pathlib.Path(".git/config").resolve()
results = {}
for path in (manifest, manifest.parent, config, pathlib.Path("/")):
    name = os.fsencode(path)
    results[f"remount {path.name}"] = libc.mount(None, name, None, MS_REMOUNT_BIND, None)
    results[f"unmount {path.name}"] = libc.umount2(name, MNT_DETACH)
script = "umount -l .git/config; mount -o remount,bind,rw .git/config; echo x >>.git/config"
nested = subprocess.run(["unshare", "-Urm", "sh", "-c", script], capture_output=True)
results["nested"] = nested.returncode and -1
status = pathlib.Path("/proc/self/status").read_text()
results["capabilities"] = status.partition("CapEff:")[2].split()[0]
pathlib.Path("results.json").write_text(json.dumps(results))
"""


@KINDS_OF_SANDBOX
def test_an_agent_cannot_undo_the_mounts_of_its_sandbox(prober, sandbox):
    (prober.project / "prober/probe.py").write_text(UNDO)
    text = COMMAND.format(python=json.dumps(sys.executable), sandbox=sandbox)
    (prober.project / "rekindle.yaml").write_text(text)
    prober("run", "prober")
    results = json.loads((prober.project / "prober/results.json").read_text())
    assert int(results.pop("capabilities"), 16) == 0
    assert set(results.values()) == {-1}, results
    assert (prober.project / "prober/.git/config").read_text() == ""


WAITING = """\
import pathlib, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path("began").touch()
time.sleep(600)
"""


@KINDS_OF_SANDBOX
def test_a_sandbox_ends_with_its_supervisor(prober, sandbox):
    (prober.project / "prober/probe.py").write_text(WAITING)
    text = COMMAND.format(python=json.dumps(sys.executable), sandbox=sandbox)
    (prober.project / "rekindle.yaml").write_text(text)
    running = prober.start("run", "prober")
    prober.place.wait_for(lambda: (prober.project / "prober/began").exists() or None)

    def list_left():
        return [argv for argv in prober.place.processes() if "probe.py" in argv]

    assert list_left()
    running.signal(signal.SIGKILL)
    prober.place.wait_for(lambda: not list_left(), 30)


@pytest.mark.parametrize("container", ["false", "true"])
def test_what_the_manifest_adds_is_visible_in_the_sandbox(prober, container):
    port = urlsplit(prober.cli.model.url).port
    added = f"read: [other, ~/.ssh], network: ['127.0.0.1:{port}'], container: {container}"
    results = probe_all(prober, f"{{{added}}}")
    reached = {name for name, result in results.items() if result == "done"}
    assert reached == {"read a neighbour's folder", "read ~/.ssh", "fetch a page"}


def test_a_refused_host_is_an_event_with_the_line_that_allows_it(prober):
    port = urlsplit(prober.cli.model.url).port
    results = probe_all(prober, "{network: [packages.example.org]}")
    assert results["fetch a page"] == "403"
    assert results["connect to the network"] == "ConnectionRefusedError"
    host = f"127.0.0.1:{port}"
    assert [one["host"] for one in prober.events("host.refused")] == [host]
    logged = prober("logs", "prober", "--last", "0")
    assert f"the sandbox refused a connection to {host}" in logged
    allowed = f"sandbox: {{network: ['{host}']}}"
    assert allowed in logged
    assert f"refused: {host}, by the sandbox; to allow it: {allowed}" in prober("status", "prober")


CLIS = ("claude", "codex", "gemini")
CONTAINED = [
    *((kind, "false") for kind in CLIS),
    ("claude", "true"),
    *(pytest.param(kind, "true", marks=pytest.mark.torture) for kind in CLIS[1:]),
]
SILENCES = {"claude": "3s", "codex": "3s", "gemini": "20s"}  # the last one starts slowly


def begin(request, kind, runtime, container="false"):
    """Create an agent whose CLI runs in a sandbox, and reaches its model there alone."""
    made, model = KINDS[kind]
    cli, place = request.getfixturevalue(kind), request.getfixturevalue("place")
    found = made(cli, place, request.getfixturevalue(model))
    found.begin(80, runtime=f"{MECHANICAL}, restart: {{cooldown: 0s}}{runtime}")
    manifest = found.project / "rekindle.yaml"
    network = f"network: ['{urlsplit(found.model.url).netloc}']"
    sandbox = f"sandbox: {{{network}, container: {container}}}"
    manifest.write_text(manifest.read_text().replace("cycles: 1", f"cycles: 1\n    {sandbox}"))
    return found


@pytest.mark.parametrize(("kind", "container"), CONTAINED)
def test_a_session_in_a_sandbox_resumes_after_a_kill_and_a_hang(request, kind, container):
    """The same session survives SIGKILL in a tool call, and a model that never answers."""
    watch = f", watch: {{silence: {SILENCES[kind]}, every: 0.5s}}"
    found = begin(request, kind, watch, container)
    rekindle, silent = found.rekindle, Hang(Text("too late"))
    found.model.play(found.call(1, seconds=600), silent, Text("all done"))
    running = rekindle.start("run")
    rekindle.place.wait_for(lambda: (found.project / "began-1").exists() or None)
    living = rekindle.place.living()
    # Gemini CLI is a program for node.
    (pid,) = [pid for pid, argv in living.items() if kind in {Path(one).name for one in argv[:2]}]
    rekindle.place.signal(pid, signal.SIGKILL)
    found.model.log.wait_for(lambda request: request.step is silent, timeout=120)
    assert not [argv for argv in rekindle.place.processes() if "step.py" in argv]
    assert running.wait() == 0, running.out + running.err
    silent.release.set()
    ended = rekindle.events("launch.ended")
    assert [one["exit"] for one in ended] == ["crash", "hang", "clean"]
    assert len({one["session"] for one in ended}) == 1
    started = rekindle.events("launch.started")
    assert [one.get("resumes", False) for one in started] == [False, True, True]
    reported = rekindle.events("session.started")
    assert {one["launch"] for one in reported} == {one["launch"] for one in started}


@pytest.mark.parametrize(("kind", "container"), CONTAINED)
def test_a_session_in_a_sandbox_hands_over(request, kind, container):
    """The hook measures the window and stops the session, whose rules it cannot write."""
    found = begin(request, kind, "", container)
    found.model.play(
        found.call(1, 20),
        found.call(2, 81),
        *[found.call("never", 82)] * found.REPLIES,
        found.call(3, 10),
        Text("all done", found.filled(11)),
    )
    found.run("--once")
    found.assert_nothing_cut(1, 2, 3)
    assert [MARK in one.text for one in found.openings] == [False, True]
    ended = found.rekindle.events("launch.ended")
    assert [one["exit"] for one in ended] == ["handoff", "clean"]


def test_a_person_uses_a_sandboxed_session_in_a_terminal(request, claude, network):
    """The terminal is the person's, and the tools run in the sandbox."""
    found = begin(request, "claude", "")
    known = {
        "hasCompletedOnboarding": True,
        "customApiKeyResponses": {"approved": [KEY[-20:]]},
        "projects": {str(claude.project): {"hasTrustDialogAccepted": True}},
    }
    (claude.home / ".claude.json").write_text(json.dumps(known))
    (secret := claude.home / "secret").touch()
    manifest = found.project / "rekindle.yaml"
    text = manifest.read_text().replace("    cycles: 1\n", "    mode: stay\n")
    manifest.write_text(text.replace('    until: ["true"]\n', ""))
    found.model.play(
        found.bash(f"cat {secret} || touch hidden"),
        Text("zebras answer"),
        Forever(Text("yaks answer")),
    )
    argv = network.argv([*ALONE, sys.executable, "-I", "-m", "rekindle", "run", "trades"])
    environment = claude.environment(TERM="xterm-256color", LC_ALL="C.UTF-8")
    with Desk(argv, env=environment, cwd=found.project, size=(100, 30)) as desk:
        desk.wait_for("zebras answer")
        desk.type("count the stars")
        desk.wait_for("stars")
        desk.type("\r")
        desk.wait_for("yaks answer")
        assert "count the stars" in found.model.log.main[-1].text
    assert (found.project / "hidden").exists(), "its tools are not in the sandbox"
