"""`rekindle stop` with disks that are full, read-only or failing: real, small file systems."""

import fcntl
import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import pytest

import prerequisites
from guarded import AGENT, Guarded
from loopback.place import Place
from rekindle import config
from rekindle.documents import events
from rekindle.documents.events import HandoffFailed
from rekindle.system import clock
from rekindle.system.files import user_folder
from rekindle.wiring.open_store import open_store

UNRECORDED = 13
MEGABYTES = 4
BLOCK = 1024
EXT4_IOC_SHUTDOWN, EXT4_GOING_FLAGS_NOLOGFLUSH = 0x8004587D, 2

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="mounts a file system in a namespace, which needs Linux"
)


@contextmanager
def small_disk(image: Path, at: Path) -> Iterator[Path]:
    """Mount an ext4 file system of a few megabytes that only the test's mount namespace sees."""
    if shutil.which("mkfs.ext4") is None:
        prerequisites.refuse("mkfs.ext4 is not installed: there is no real disk to fill")
    image.write_bytes(b"")
    with image.open("r+b") as file:
        file.truncate(MEGABYTES * 1024 * 1024)
    subprocess.run(
        ["mkfs.ext4", "-q", "-b", str(BLOCK), "-m", "0", "-O", "^has_journal", str(image)],
        check=True,
        capture_output=True,
    )
    at.mkdir(exist_ok=True)
    mounted = subprocess.run(
        ["mount", "-o", "loop", str(image), str(at)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        prerequisites.refuse(f"no loop mount here: {mounted.stderr.strip()}")
    at.chmod(0o700)
    try:
        yield at
    finally:
        subprocess.run(["umount", "-l", str(at)], check=True)


def fill(disk: Path) -> None:
    """Write until not a single byte fits any more."""
    with (disk / "ballast").open("ab", buffering=0) as ballast:
        for size in (65536, 1024, 1):
            try:
                while True:
                    ballast.write(b"x" * size)
            except OSError:
                continue
    assert shutil.disk_usage(disk).free == 0


def make_read_only(disk: Path) -> None:
    """Make the kernel refuse every write, as after a disk error, also to open files."""
    subprocess.run(["mount", "-o", "remount,abort", str(disk)], check=True)
    with pytest.raises(OSError, match="Read-only file system"):
        (disk / "refused").touch()


def make_failing(disk: Path) -> None:
    """Make the kernel fail every read and write, as for a disk that is gone."""
    fd = os.open(disk, os.O_RDONLY)
    try:
        fcntl.ioctl(fd, EXT4_IOC_SHUTDOWN, struct.pack("I", EXT4_GOING_FLAGS_NOLOGFLUSH))
    finally:
        os.close(fd)
    with pytest.raises(OSError, match="Input/output error"):
        (disk / "project/rekindle.yaml").read_bytes()


def fill_last_block(project: Guarded) -> None:
    """Append one event, so that the log's next one needs a new block."""
    store = open_store(config.load_project(project.path))
    with store.writer(AGENT) as writer:
        event = HandoffFailed(ts=clock.read_clock(), launch="none", words="")
        stamped = msgspec.structs.replace(event, seq=writer.projection.seq + 1, gen=1)
        end = project.log.stat().st_size + len(events.render(stamped)) + 1
        writer.append(msgspec.structs.replace(event, words="." * (-end % BLOCK)))
    assert project.log.stat().st_size % BLOCK == 0


@pytest.fixture
def make(network, tmp_path):
    """Create a project on its own disk; with `both`, the user's folder is on another small one."""
    with ExitStack() as stack:

        def made(*, both: bool) -> Guarded:
            disk = stack.enter_context(small_disk(tmp_path / "disk.img", tmp_path / "disk"))
            if both:
                stack.enter_context(
                    small_disk(tmp_path / "user.img", user_folder.make_user_folder())
                )
            # After the mounts, because its processes get the existing mounts.
            place = stack.enter_context(Place(network, tmp_path / "place"))
            return Guarded(place, disk, ledger=tmp_path / "ledger")

        yield made


def desired(project: Guarded) -> str:
    shown = json.loads(project("status", "--json").out)
    [row] = [one for one in shown["agents"] if one["agent"] == AGENT]
    found: str = row["run"]["desired"]
    return found


def start_and_fill_disks(make, tmp_path):
    """Return a project whose agent runs with every disk full, its supervisor, and its log."""
    project = make(both=True)
    running = project.start("run")
    project.until_up()
    fill_last_block(project)
    fill(tmp_path / "disk")
    fill(user_folder.find_user_folder())
    return project, running, project.log.read_bytes()


def test_stop_works_on_a_full_disk(make, tmp_path):
    """The command is outside the workspace; the supervisor obeys though it cannot fold it."""
    project = make(both=False)
    running = project.start("run")
    project.until_up()
    fill_last_block(project)
    fill(tmp_path / "disk")
    size = project.log.stat().st_size
    stopping = project("stop")
    assert "stopped" in stopping.out
    assert running.wait() == 130, running.err
    project.until_gone()
    assert project.log.stat().st_size == size
    assert "stopped by the operator" in project("watch", "--once").out
    (tmp_path / "disk" / "ballast").unlink()
    assert desired(project) == "stopped"
    assert project.supervisors() == []


def test_a_stop_with_every_disk_full_is_noted_beside_the_lock(make, tmp_path):
    """The slot needs no new block; nothing starts the agent again, and the exit code tells."""
    project, running, before = start_and_fill_disks(make, tmp_path)
    stopping = project("stop", code=UNRECORDED)
    assert "stopped by a signal; the stop could not be recorded in its folder" in stopping.err
    assert "nothing starts the agent again" in stopping.err
    assert running.wait() == 130, running.err
    project.until_gone()
    assert project.log.read_bytes() == before
    assert "stopped by the operator" in project("watch", "--once").out
    assert "is not running, and stays stopped" in project("stop").out
    (tmp_path / "disk" / "ballast").unlink()
    (user_folder.find_user_folder() / "ballast").unlink()
    assert desired(project) == "stopped"
    project("up")
    project.until_up(after=1)
    assert desired(project) == "running"
    project("stop")
    assert project.events("desired.set")[-1]["desired"] == "stopped"


@contextmanager
def unwritable_locks() -> Iterator[None]:
    """Make the kernel refuse every write to the locks outside the folder, also by root."""
    locks = [str(path) for path in (user_folder.find_user_folder() / "locks").iterdir()]
    assert locks
    subprocess.run(["chattr", "+i", *locks], check=True)
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", *locks], check=True)


def test_a_signal_alone_delivers_a_stop_with_every_disk_full(make, tmp_path):
    """The supervisor cannot read the stop anywhere: neither in its folder nor beside its lock."""
    project, running, before = start_and_fill_disks(make, tmp_path)
    with unwritable_locks():
        stopping = project("stop", code=UNRECORDED)
        assert "stopped by a signal; the stop could not be recorded in its folder" in stopping.err
        assert "a watchdog may start the agent again" in " ".join(stopping.err.split())
        assert running.wait() == 130, running.err
        project.until_gone()
    assert project.log.read_bytes() == before
    assert desired(project) == "running"


@pytest.mark.parametrize("both", [False, True], ids=["project", "every disk"])
def test_stop_works_on_a_disk_that_became_read_only(make, tmp_path, both):
    """The kernel makes a file system read-only after an error, under a running supervisor."""
    project = make(both=both)
    running = project.start("run")
    project.until_up()
    before = project.log.read_bytes()
    make_read_only(tmp_path / "disk")
    if both:
        make_read_only(user_folder.find_user_folder())
    stopping = project("stop", code=UNRECORDED if both else 0)
    assert running.wait() == 130, running.err
    project.until_gone()
    assert project.log.read_bytes() == before
    if both:
        assert "stopped by a signal; the stop could not be recorded in its folder" in stopping.err
    else:
        assert "stopped" in stopping.out
        assert desired(project) == "stopped"
        assert "stopped by the operator" in project("watch", "--once").out


def test_stop_works_on_a_disk_that_fails(make, tmp_path):
    """Neither the manifest nor the log can be read; the lock outside names the supervisor."""
    project = make(both=False)
    running = project.start("run")
    project.until_up()
    make_failing(tmp_path / "disk")
    stopping = project("stop")
    assert f"✓ {AGENT}: stopped" in stopping.out
    assert "Input/output error" in stopping.err
    running.wait()
    project.until_gone()
