"""Many agents of a host share the load on a git server and on the host's disk."""

import os
import subprocess
import threading

import pytest

from git_server import GitServer
from rekindle.fleet.hosts.work_branch import WorkBranch
from sampling import WHOLE
from throwaway import Repository, isolate

AGENTS = 20
VERSIONS = 100
FILE_BYTES = (10_000 if WHOLE else 300) * 1000
"""Size of a file that each of the commits replaces: 1 GB in all, or 30 MB in CI."""
MOST = 1.5

pytestmark = pytest.mark.torture


def make_history(bare):
    """Write commits that each replace one file by random bytes, which cannot be compressed."""
    with subprocess.Popen(
        ["git", "-C", str(bare.path), "fast-import", "--quiet"], stdin=subprocess.PIPE
    ) as importing:
        for number in range(VERSIONS):
            about = f"commit refs/heads/main\ncommitter a <a@localhost> {number} +0000\n"
            about += f"data 1\nx\nM 100644 inline data.bin\ndata {FILE_BYTES}\n"
            importing.stdin.write(about.encode())
            importing.stdin.write(os.urandom(FILE_BYTES))
            importing.stdin.write(b"\n")
    assert importing.returncode == 0


def count_bytes(folder):
    listed = subprocess.run(["du", "-s", "-B1", folder], capture_output=True, check=True, text=True)
    return int(listed.stdout.split()[0])


def test_twenty_agents_need_little_more_than_one_clone(tmp_path, monkeypatch):
    """Bytes transferred and disk use are at most 1.5 times those of one clone with its files."""
    isolate(monkeypatch, tmp_path / "home")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    make_history(Repository(tmp_path / "served/remote.git").init("--bare"))
    with GitServer(tmp_path / "served") as server:
        url = f"{server.url}/remote.git"
        Repository(tmp_path).git("clone", "-q", url, "one")
        clone = (server.transferred, count_bytes(tmp_path / "one"))
        server.transferred = 0
        failures = []

        def bring(name):
            place = WorkBranch(
                tmp_path / "host" / name / "work",
                remote=url,
                agent=name,
                generation=1,
                host="here",
                mirrors=tmp_path / "host/mirrors",
            )
            try:
                place.bring(None)
                (tmp_path / "host" / name / "work/new.txt").write_text(f"of {name}\n")
                assert place.push()
            except BaseException as error:
                failures.append(error)
                raise

        threads = [threading.Thread(target=bring, args=(f"a{one}",)) for one in range(AGENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        agents = (server.transferred, count_bytes(tmp_path / "host"))
    shares = [many / one for many, one in zip(agents, clone, strict=True)]
    print(f"one clone: {clone[0] / 1e6:.1f} MB sent, {clone[1] / 1e6:.1f} MB on disk")
    print(f"{AGENTS} agents: {agents[0] / 1e6:.1f} MB sent, {agents[1] / 1e6:.1f} MB on disk")
    print(f"ratios: {shares[0]:.2f}, {shares[1]:.2f}")
    assert clone[0] > VERSIONS * FILE_BYTES
    assert all(share <= MOST for share in shares)
