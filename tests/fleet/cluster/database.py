"""A PostgreSQL of its own for a cluster: created from nothing, and broken on purpose.

It runs as the user postgres if the tests run as root, and ends with them. With a limit in
megabytes, its files are in a file system of that size which only its own processes see.
"""

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from fleet.cluster.networks import Network
from fleet.cluster.server_config import DatabaseAddress

USER = "temporal"
SCHEMAS = {"temporal": "temporal", "temporal_visibility": "visibility"}
_WAIT_SECONDS = 60
_SETTINGS = {
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.max": "5000",
    "max_connections": "400",
    "shared_buffers": "128MB",
    # A history process that is frozen in a transaction would keep its shards locked for good.
    "idle_in_transaction_session_timeout": "5s",
    # A limited disk must have room for what is kept until the next checkpoint.
    "min_wal_size": "32MB",
    "max_wal_size": "128MB",
}

_ACCESS = """\
local all all trust
host all all samenet scram-sha-256
"""
"""Who may connect: this user over a socket that no other user can reach, and the servers."""


class Postgres:
    def __init__(
        self, programs: Path, network: Network, port: int, *, megabytes: int | None = None
    ) -> None:
        self._programs, self._network, self.port = programs, network, port
        self._password = secrets.token_hex(16)
        self.folder = Path(tempfile.mkdtemp(prefix="rekindle-cluster-"))
        self._files = self.folder / "data"
        self._files.mkdir(mode=0o700)
        self._megabytes = megabytes
        self._holder: subprocess.Popen[bytes] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._said = self.folder / "log"
        if os.geteuid() == 0:
            owner = pwd.getpwnam("postgres")
            for path in (self.folder, self._files):
                os.chown(path, owner.pw_uid, owner.pw_gid)

    @property
    def address(self) -> DatabaseAddress:
        return DatabaseAddress(f"{self._network.database_ip}:{self.port}", USER, self._password)

    def create(self) -> None:
        """Create the files of the database, with one user."""
        if self._megabytes:
            self._limit(self._megabytes)
        password = self.folder / "password"
        password.write_text(self._password)
        password.chmod(0o644)  # in a folder that only its owner can enter
        argv = [str(self._programs / "initdb"), "-D", str(self._files), "-U", USER]
        argv += ["--pwfile", str(password), "--auth-local=trust", "--auth-host=scram-sha-256"]
        argv += ["-E", "UTF8", "--no-locale", "--no-sync"]
        self._access.write_text(_ACCESS)
        self._access.chmod(0o644)
        self._run(argv)

    def start(self) -> None:
        """Start the server, and return when it answers."""
        argv = [str(self._programs / "postgres"), "-D", str(self._files), "-p", str(self.port)]
        argv += ["-h", self._network.database_ip, "-k", str(self.folder)]
        for name, value in {**_SETTINGS, "hba_file": str(self._access)}.items():
            argv += ["-c", f"{name}={value}"]
        with self._said.open("ab") as log:
            self._process = subprocess.Popen(
                self._argv(argv), stdout=log, stderr=log, start_new_session=True
            )
        self.wait()

    def wait(self, seconds: float = _WAIT_SECONDS) -> None:
        """Wait until the server answers."""
        deadline = time.monotonic() + seconds
        while not self.is_ready():
            assert self.is_running, f"PostgreSQL has ended: {self.log[-3000:]}"
            assert time.monotonic() < deadline, f"PostgreSQL does not answer: {self.log[-3000:]}"
            time.sleep(0.1)

    def is_ready(self) -> bool:
        argv = [str(self._programs / "pg_isready"), "-q", "-t", "1", "-d", "postgres"]
        argv += ["-h", str(self.folder), "-p", str(self.port)]
        return subprocess.run(argv, capture_output=True, check=False).returncode == 0

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None, "it was not started"
        return self._process.pid

    @property
    def log(self) -> str:
        return self._said.read_text(errors="replace") if self._said.exists() else ""

    def query(self, sql: str, database: str = "temporal") -> list[list[str]]:
        """Return the rows of an SQL query."""
        argv = [str(self._programs / "psql"), "-X", "-q", "-At", "-F", "\t"]
        argv += ["-v", "ON_ERROR_STOP=1", "-h", str(self.folder), "-p", str(self.port)]
        argv += ["-U", USER, "-d", database, "-c", sql]
        return [line.split("\t") for line in self._run(argv).splitlines()]

    def set_up(self, sql_tool: Path) -> None:
        """Create both databases of the engine with its own tool."""
        host, _, port = self.address.address.rpartition(":")
        tool = [str(sql_tool), "--plugin", "postgres12", "--endpoint", host, "--port", port]
        tool += ["--user", USER, "--database"]
        variables = {**os.environ, "SQL_PASSWORD": self._password}
        for name, schema in SCHEMAS.items():
            steps = [
                ["create-database", "--defaultdb", "postgres"],
                ["setup-schema", "-v", "0.0"],
                ["update-schema", "--schema-name", f"postgresql/v12/{schema}"],
            ]
            for step in steps:
                argv = self._network.argv("", [*tool, name, *step])
                _check(subprocess.run(argv, env=variables, capture_output=True, check=False))
            self.query("CREATE EXTENSION IF NOT EXISTS pg_stat_statements", name)

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """Stop it: SIGINT ends sessions, and SIGQUIT leaves the rest to recovery."""
        process = self._process
        assert process is not None, "it was not started"
        process.send_signal(number)
        try:
            process.wait(_WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._process = None

    def freeze(self) -> list[int]:
        """Stop the server and all its sessions; return the pids of the frozen processes."""
        frozen: list[int] = []
        while new := [one for one in self._pids() if one not in frozen]:
            for pid in new:
                os.kill(pid, signal.SIGSTOP)
            frozen += new
        return frozen

    def wake(self) -> None:
        for pid in reversed(self._pids()):
            os.kill(pid, signal.SIGCONT)

    def fill(self) -> int:
        """Fill the file system of the database; return the bytes that it took."""
        assert self._megabytes, "its files have no limit"
        ballast, taken = self._ballast, 0
        with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            for size in (1 << 20, 1 << 12):
                with contextlib.suppress(OSError):
                    while True:
                        taken += file.write(b"\0" * size)
        return taken

    def free(self) -> None:
        self._ballast.unlink()

    @property
    def bytes_free(self) -> int:
        left = os.statvfs(self._ballast.parent)
        return left.f_bavail * left.f_frsize

    def close(self) -> None:
        if self.is_running:
            self.wake()
            self.stop(signal.SIGQUIT)
        if self._holder is not None:
            self._holder.kill()
            self._holder.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def _access(self) -> Path:
        return self.folder / "access"

    @property
    def _ballast(self) -> Path:
        assert self._holder is not None
        return Path(f"/proc/{self._holder.pid}/root{self._files}/ballast")

    def _limit(self, megabytes: int) -> None:
        """Mount a file system of this size, in a mount namespace that a process keeps open."""
        argv = ["unshare", "--mount", "--propagation", "private", "setpriv", "--pdeathsig", "KILL"]
        self._holder = subprocess.Popen([*argv, "--", "sleep", "infinity"])
        there, here = Path(f"/proc/{self._holder.pid}/ns/mnt"), Path("/proc/self/ns/mnt")
        deadline = time.monotonic() + _WAIT_SECONDS
        while there.readlink() == here.readlink():
            assert time.monotonic() < deadline, "there is no mount namespace"
            time.sleep(0.01)
        owner = pwd.getpwnam("postgres")
        options = f"size={megabytes}m,mode=0700,uid={owner.pw_uid},gid={owner.pw_gid}"
        mount = ["mount", "-t", "tmpfs", "-o", options, "none", str(self._files)]
        _check(subprocess.run([*self._enter(), *mount], capture_output=True, check=False))

    def _enter(self) -> list[str]:
        if self._holder is None:
            return []
        return ["nsenter", f"--mount=/proc/{self._holder.pid}/ns/mnt", "--"]

    def _run(self, argv: list[str]) -> str:
        done = subprocess.run(
            self._argv(argv), capture_output=True, check=False, cwd=self.folder, text=True
        )
        assert done.returncode == 0, f"{argv[0]}: {done.stderr}"
        return done.stdout

    def _argv(self, argv: list[str]) -> list[str]:
        """Return the command as the database's user, in its network and with its files."""
        drop = ["setpriv", "--pdeathsig", "KILL"]
        if os.geteuid() == 0:
            drop += ["--reuid", "postgres", "--regid", "postgres", "--init-groups"]
        return self._network.argv("", [*self._enter(), *drop, "--", *argv])

    def _pids(self) -> list[int]:
        """Return the server's first process, and those that it has started."""
        return list(_family(self.pid))


def _family(pid: int) -> Iterator[int]:
    yield pid
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield from _family(int(child))


def _check(done: subprocess.CompletedProcess[bytes]) -> None:
    told = (done.stdout + done.stderr).decode(errors="replace")
    assert done.returncode == 0, f"{done.args[0]}: {told}"
