"""Describe the mounts that a sandbox must have, to check them before the program runs.

bubblewrap follows links. A process that may write to the agent's folder, such as another agent,
could replace a folder with a link while the sandbox is being created, and so expose any file on the
host. The sandbox therefore compares its mounts with this description.
"""

from collections.abc import Iterable, Mapping

from rekindle.policy.sandbox.mounts import is_inside

_ESCAPES = {"\\": r"\134", " ": r"\040", "\t": r"\011", "\n": r"\012", "#": r"\043"}
_DEVICE, _ROOT, _POINT = 2, 3, 4
"""Fields of a line in mountinfo."""


def describe_mounts(identities: Mapping[str, str], mountinfo: str) -> str:
    """Return a line for each path: its device, its location there, the path and its identity.

    `identities` maps each path to its inode's identity, and `mountinfo` is the supervisor's own.
    Fields are escaped as in mountinfo.
    """
    mounts = [line.split(" ") for line in mountinfo.splitlines()]
    points = [(unescape(fields[_POINT]), fields) for fields in mounts if len(fields) > _POINT]
    return "\n".join(
        f"{_locate(path, points)} {escape(path)} {identity}"
        for path, identity in identities.items()
    )


def _locate(path: str, points: Iterable[tuple[str, list[str]]]) -> str:
    """Return the device that a path is on, and its location on that device."""
    # A later mount covers earlier ones.
    around = [(point, fields) for point, fields in points if is_inside(path, point)]
    if not around:
        return "- -"
    point, fields = around[-1]
    below = path.removeprefix(point.rstrip("/"))
    root = fields[_ROOT].rstrip("/")
    return f"{fields[_DEVICE]} {root}{escape(below)}" if root + below else f"{fields[_DEVICE]} /"


def escape(path: str) -> str:
    return "".join(_ESCAPES.get(character, character) for character in path)


def unescape(word: str) -> str:
    for character, code in reversed(_ESCAPES.items()):
        word = word.replace(code, character)
    return word
