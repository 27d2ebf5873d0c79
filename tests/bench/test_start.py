"""The time of commands, as ratios to a bare Python in the same run."""

import os
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.bench

ROUNDS = 15
TRIES = 4
HELP, STATUS = 7, 18
"""Maximum ratios to `python -c pass`; they are about 5 and 14.5 on an idle machine."""
STATUS_LINE = 5
"""Maximum ratio of a status line to `rekindle --version`; it is about 2.7 on an idle machine."""
IMPORT = 1.3
"""Maximum ratio for `import rekindle`, which is about 1.02 on an idle machine."""


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A plain environment: no coverage, no flags, byte code cached as on a user's machine."""
    home = tmp_path_factory.mktemp("home")
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "PYTHONPYCACHEPREFIX": str(home / "pycache"),
    }


@pytest.fixture(scope="module")
def project(tmp_path_factory, environment):
    """A project with a relay and a loop."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "relay.md").write_text("## Next Action\nGo on\n")
    for arguments in (
        ["init", "--yes", "--agent", "trades"],
        ["relay", "set", "relay.md"],
        ["loops", "add", "a", "text"],
    ):
        subprocess.run(command(*arguments), cwd=folder, env=environment, check=True)
    return folder


def command(*arguments):
    """The installed program, as a person calls it."""
    return [os.path.join(os.path.dirname(sys.executable), "rekindle"), *arguments]  # noqa: PTH118, PTH120


def once(argv, folder, environment):
    start = time.perf_counter()
    subprocess.run(argv, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def best(commands, folder, environment):
    """The best of runs taken in turn: what the machine does meanwhile only ever adds."""
    times = {name: [] for name in commands}
    for argv in commands.values():
        once(argv, folder, environment)
    for _ in range(ROUNDS):
        for name, argv in commands.items():
            times[name].append(once(argv, folder, environment))
    return {name: min(found) for name, found in times.items()}


def test_a_start_costs_little_more_than_python(project, environment):
    commands = {
        "python": [sys.executable, "-c", "pass"],
        "click": [sys.executable, "-c", "import click"],
        "help": command("--help"),
        "status": command("status"),
        "resolve": command("resolve", "a", "done"),
    }
    for _ in range(TRIES):
        # A machine that is busy for long shares its caches too: what is large suffers most.
        found = best(commands, project, environment)
        ratio = {name: taken / found["python"] for name, taken in found.items()}
        print(
            f"\npython -c pass {found['python'] * 1000:.1f} ms; import click {ratio['click']:.1f}x,"
            f" --help {ratio['help']:.1f}x, status {ratio['status']:.1f}x,"
            f" resolve {ratio['resolve']:.1f}x"
        )
        if ratio["help"] < HELP and ratio["status"] < STATUS:
            break
    assert ratio["help"] < HELP
    assert ratio["status"] < STATUS


def test_a_status_line_costs_little_more_than_the_version(project, environment):
    """A CLI runs it after every message."""
    commands = {"version": command("--version"), "statusline": command("statusline")}
    for _ in range(TRIES):
        found = best(commands, project, environment)
        ratio = found["statusline"] / found["version"]
        print(f"\nstatusline {ratio:.1f}x of --version, {found['statusline'] * 1000:.0f} ms")
        if ratio < STATUS_LINE:
            break
    assert ratio < STATUS_LINE


def test_importing_the_package_costs_almost_nothing(tmp_path, environment):
    """Its names are loaded when a program uses them."""
    commands = {
        "python": [sys.executable, "-c", "pass"],
        "import": [sys.executable, "-c", "import rekindle"],
    }
    for _ in range(TRIES):
        found = best(commands, tmp_path, environment)
        ratio = found["import"] / found["python"]
        print(f"\nimport rekindle {ratio:.2f}x of python -c pass")
        if ratio < IMPORT:
            break
    assert ratio < IMPORT
