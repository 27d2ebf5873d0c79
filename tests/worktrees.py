"""Random work trees, and the damage that an agent may do to them."""

import os
import random
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

NAMES = [
    "a",
    "b c",
    "naïve",
    "日本",
    "tab\tname",
    "new\nline",
    "-dash",
    "quote'\"",
    ":colon",
    "*",
    "é",
]
IGNORED = "*.log\nbuild/\nsecret*\n"


def git(folder, *words, check=True, **more):
    settings = ("user.name=a", "user.email=a@localhost", "protocol.file.allow=always")
    options = [word for one in settings for word in ("-c", one)]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", *options, *words],
        cwd=folder,
        env=environment,
        check=check,
        capture_output=True,
        **more,
    )
    return done.stdout


def content(dice: random.Random) -> bytes:
    kind = dice.randrange(5)
    if kind == 0:
        return b""
    if kind == 1:
        return dice.randbytes(dice.randrange(1, 3000))
    if kind == 2:
        return b"one\r\ntwo\nthree\r\n$Id$\n"
    return b"".join(b"line %d\n" % dice.randrange(9) for _ in range(dice.randrange(40)))


def place(dice: random.Random) -> str:
    folders = [dice.choice(NAMES) for _ in range(dice.randrange(3))]
    return "/".join([*folders, dice.choice(NAMES) + dice.choice(["", ".txt", ".log", ".bin"])])


def write(folder: Path, name: str, dice: random.Random) -> None:
    path = folder / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir() and not path.is_symlink():
            return
        path.unlink(missing_ok=True)
        if dice.random() < 0.15:
            path.symlink_to(dice.choice(["a", "/etc/hostname", "gone", "b c"]))
        else:
            path.write_bytes(content(dice))
            path.chmod(dice.choice([0o644, 0o755]))
    except OSError:
        pass  # a file, or a link to itself, is where the folder would be


def grow(folder: Path, dice: random.Random) -> None:
    """Write, change, rename and remove files at random."""
    for _ in range(dice.randrange(3, 25)):
        write(folder, place(dice), dice)
    files = [path for path in folder.rglob("*") if not path.is_dir() and ".git" not in path.parts]
    for path in dice.sample(files, min(len(files), dice.randrange(4))):
        if dice.random() < 0.5:
            path.unlink()
        else:
            target = folder / f"renamed-{dice.randrange(99)}"
            if not target.exists():
                path.rename(target)


def make_tree(folder: Path, dice: random.Random, large: int) -> None:  # noqa: C901 - one case each
    """Create a repository: commits, staged and unstaged changes, links, a submodule, a stash."""
    folder.mkdir()
    git(folder, "init", "-q", "-b", dice.choice(["main", "trunk"]))
    (folder / ".gitignore").write_text(IGNORED)
    if dice.random() < 0.5:
        (folder / ".gitattributes").write_text("*.txt text eol=crlf ident\n*.bin filter=gone\n")
    if dice.random() < 0.9:
        grow(folder, dice)
        git(folder, "add", "-A")
        (folder / "secret-tracked").write_text("tracked, although it is ignored\n")
        git(folder, "add", "-f", "secret-tracked")
        git(folder, "commit", "-qm", "one")
        if dice.random() < 0.3:
            (folder / "large-tracked").write_bytes(dice.randbytes(large + 1))
            git(folder, "add", "large-tracked")
        if dice.random() < 0.4:
            other = folder.with_name(f"{folder.name}-module")
            other.mkdir()
            git(other, "init", "-q")
            (other / "inside").write_text("inside\n")
            git(other, "add", "-A")
            git(other, "commit", "-qm", "inside")
            git(folder, "submodule", "--quiet", "add", str(other), "module")
        if dice.random() < 0.4:
            write(folder, "stashed", dice)
            git(folder, "stash", "push", "-q", "-u", check=False)
        if dice.random() < 0.2:
            git(folder, "checkout", "-q", "--detach")
    grow(folder, dice)
    if dice.random() < 0.5:
        git(folder, "add", "-A")
        grow(folder, dice)
    for name in ("debug.log", "build/out"):
        if dice.random() < 0.5 and not (folder / name).exists():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text("ignored\n")
    if dice.random() < 0.4:
        (folder / "large").write_bytes(bytes(large + 1))


def damage(folder: Path, dice: random.Random) -> None:
    """Change files at random, then do what agents are known to do."""
    grow(folder, dice)
    for words in dice.sample(
        [
            ("clean", "-ffdxq"),
            ("reset", "-q", "--hard"),
            ("add", "-A"),
            ("commit", "-qam", "changed"),
            ("checkout", "-qb", "elsewhere"),
            ("rm", "-rqf", "."),
            ("stash", "push", "-qu"),
        ],
        dice.randrange(1, 5),
    ):
        git(folder, *words, check=False)
    if dice.random() < 0.5:
        for path in list(folder.iterdir()):
            if path.name != ".git":
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def promised(folder: Path, large: int) -> dict[str, str | tuple[bytes, int]]:
    """Return every file that a rewind restores: tracked, or neither ignored nor too large."""
    tracked = set(git(folder, "ls-files", "-z").split(b"\0")[:-1])
    others = set(git(folder, "ls-files", "-z", "-o", "--exclude-standard").split(b"\0")[:-1])
    names = map(os.fsdecode, tracked | others)
    files = read_files(folder, names)
    return {
        name: value
        for name, value in files.items()
        if value is not None
        and (os.fsencode(name) in tracked or isinstance(value, str) or len(value[0]) <= large)
    }


def read_files(folder: Path, names: Iterable[str]) -> dict[str, str | tuple[bytes, int] | None]:
    """Return each file's link target, or its content and whether it is executable, or None."""
    files: dict[str, str | tuple[bytes, int] | None] = {}
    for name in names:
        path = folder / name
        if path.is_symlink():
            files[name] = str(path.readlink())
        elif path.is_file():
            files[name] = (path.read_bytes(), path.stat().st_mode & 0o100)
        else:
            files[name] = None
    return files


def own_state(folder: Path) -> object:
    """Return what a snapshot must not change: index, refs, stash and HEAD."""
    index = folder / ".git/index"
    refs = git(folder, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    return (
        index.read_bytes() if index.exists() else b"",
        [line for line in refs if not line.startswith(b"refs/rekindle/")],
        git(folder, "stash", "list"),
        (folder / ".git/HEAD").read_bytes(),
        sorted(str(path) for path in (folder / ".git").glob("*")),
    )


def head_of(folder: Path) -> tuple[bytes, bytes]:
    return (
        git(folder, "symbolic-ref", "-q", "HEAD", check=False),
        git(folder, "rev-parse", "-q", "--verify", "HEAD", check=False),
    )
