"""Search the files that a host is about to push for keys and other secrets.

Only keys that can be recognized with certainty are refused, because a refused push leaves the work
on one host. Files that the remote already has are not searched again.
"""

import os
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from rekindle.errors import WorkspaceError
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.redact.find_secrets import find_secrets
from rekindle.system.git.repository import parse_blobs
from rekindle.system.git.tree_snapshot import WorkingCopy
from rekindle.thresholds.storage import PUSH_SEARCH_BYTES, PUSH_SEARCH_FILES, PUSH_SEARCH_GROUP

_RULES = frozenset(
    {
        *("private-key", "github-token", "gitlab-token", "anthropic-key", "openai-key"),
        "slack-token",
    }
)


class SecretSearch(msgspec.Struct, frozen=True):
    """What to search for in one agent's work."""

    allow: tuple[str, ...] = ()
    """The project's exceptions, `redact: allow:`."""
    never: tuple[str, ...] = ()
    """Files with secrets of the fleet, relative to the repository."""

    def require_none(self, copy: WorkingCopy, new: Sequence[str], known: Sequence[str]) -> None:
        """Search all files of the commits and trees in `new` that `known` does not contain.

        Raises:
            WorkspaceError: One of them contains a secret.
        """
        blobs = _list_blobs(copy, new, known)
        for path in self.never:
            if path in blobs.values():
                raise _make_error(path, "contains a secret of the fleet according to rekindle.yaml")
        for path, text in _read_texts(copy, blobs):
            for finding in find_secrets(text, self.allow):
                if finding.rule in _RULES:
                    line = text.count("\n", 0, finding.start) + 1
                    raise _make_error(path, f"contains a {finding.rule} in line {line}")


def _list_blobs(copy: WorkingCopy, new: Sequence[str], known: Sequence[str]) -> dict[str, str]:
    """Return the paths of new files and folders by their objects."""
    wanted = (*filter(None, new), "--not", *filter(None, known))
    lines = os.fsdecode(copy.call("rev-list", "--objects", *wanted, "--")).splitlines()
    return dict(line.split(" ", 1) for line in lines if not line.endswith(" ") and " " in line)


def _read_texts(copy: WorkingCopy, blobs: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each file, unless it is large or not a text."""
    query = ("cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)")
    about = copy.call(*query, stdin="".join(f"{oid}\n" for oid in blobs).encode())
    fitting = [
        oid
        for oid, kind, size in (line.split() for line in about.decode().splitlines())
        if kind == "blob" and int(size) <= PUSH_SEARCH_BYTES
    ]
    searched = fitting[:PUSH_SEARCH_FILES]
    for start in range(0, len(searched), PUSH_SEARCH_GROUP):
        group = searched[start : start + PUSH_SEARCH_GROUP]
        data = copy.call("cat-file", "--batch", stdin="".join(f"{oid}\n" for oid in group).encode())
        for oid, content in zip(group, parse_blobs(data), strict=True):
            if content and b"\0" not in content:
                yield blobs[oid], content.decode(errors="replace")


def _make_error(path: str, reason: str) -> WorkspaceError:
    return WorkspaceError(
        "secret",
        f"{to_one_line(path)} would be pushed, but {reason}",
        hint="remove it from the file and from the agent's commits; if it is not secret, add it "
        "to `redact: allow:`",
    )
