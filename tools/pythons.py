"""Run the pure tests on the supported versions of Python that are installed on this machine."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
UV = Path(sys.executable).with_name("uv")


def supported_versions() -> list[str]:
    """Return the versions of Python in the classifiers of the project, oldest first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pattern = re.compile(r"Programming Language :: Python :: (3\.\d+)")
    versions = [match[1] for line in project["classifiers"] if (match := pattern.fullmatch(line))]
    return sorted(versions, key=lambda version: int(version.partition(".")[2]))


def find_python(version: str) -> Path | None:
    """Return the interpreter of this version, or None if it is not installed."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    # A shim of pyenv on the PATH fails for a version that is installed but not active.
    candidates = [shutil.which(f"python{version}")]
    candidates += map(str, pyenv.glob(f"versions/{version}.*/bin/python{version}"))
    for candidate in filter(None, candidates):
        probe = [candidate, "-c", "import sys; print(sys.executable)"]
        ended = subprocess.run(probe, capture_output=True, text=True, check=False)
        if ended.returncode == 0:
            return Path(ended.stdout.strip())
    return None


def run_tests(version: str, python: Path) -> int:
    """Run the pure tests on this Python, in an environment that later runs reuse."""
    place = ROOT / f".venv-{version}"
    if not (place / "bin/python").exists():
        subprocess.run([UV, "venv", "-q", "-p", python, place], check=True)
    install = [UV, "pip", "sync", "-q", "--require-hashes", "-p", place, "requirements/dev.txt"]
    subprocess.run(install, cwd=ROOT, check=True)
    tests = [place / "bin/python", "-m", "pytest", "-q", "-n", "2", "-m", "pure", "tests/unit"]
    environment = {**os.environ, "PYTHONPATH": "src", "PYTEST_ADDOPTS": "-p no:cacheprovider"}
    return subprocess.run(tests, cwd=ROOT, env=environment, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--newest", action="store_true", help="only on the newest one")
    arguments = parser.parse_args()
    versions = supported_versions()
    found = {version: python for version in versions if (python := find_python(version))}
    missing = [version for version in versions if version not in found]
    print(f"Python {', '.join(found)}; not installed: {', '.join(missing) or 'none'}", flush=True)
    if not found:
        parser.error("no supported Python was found, so no test would run")
    if arguments.newest:
        found = dict(list(found.items())[-1:])
    codes = {}
    for version, python in found.items():
        print(f"Python {version}:", flush=True)
        codes[version] = run_tests(version, python)
    return max(codes.values(), default=0)


if __name__ == "__main__":
    sys.exit(main())
