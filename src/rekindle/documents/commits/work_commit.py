"""Snapshots of a fleet agent's workspace on its remote's work branch.

Each push is a commit whose tree is the work tree at that time. Its message says where the work came
from:

    The workspace of trades

    Rekindle-Agent: trades
    Rekindle-Generation: 3
    Rekindle-Host: here
    Rekindle-Branch: main
    Rekindle-Head: 9f86d0…
"""

import re

import msgspec

from rekindle.formats.identifiers import to_one_line

_LAST_PARAGRAPH = re.compile(
    r"\n\nRekindle-Agent: ([^\n]*)\nRekindle-Generation: (\d{1,18})\nRekindle-Host: ([^\n]*)\n"
    r"Rekindle-Branch: ?([^\n]*)\nRekindle-Head: ?([0-9a-f]*)\n*\Z"
)
_REPLACED = re.compile(
    r"^This snapshot replaces ([0-9a-f]{40,64}) and earlier ones\.$", re.MULTILINE
)
_LOGIN = re.compile(r"(?<=://)[^\s/'\"]*@")
_PASSWORD = re.compile(r"(?<=://)([^\s/:@]*):[^\s/]*@")
_QUERY = re.compile(r"(://[^\s'\"?]*)\?[^\s'\"]*")


class PushedWork(msgspec.Struct, frozen=True):
    """The state of a workspace on its remote."""

    revision: str
    """Id of the commit on the work branch."""
    head: str
    """Id of the commit that HEAD pointed to; empty if there was no commit yet."""
    branch: str
    """Name of the checked-out branch; empty for a detached HEAD."""


class RemoteLocation(msgspec.Struct, frozen=True):
    """The remote that a folder's repository is pushed to."""

    url: str
    path: str
    """Path of the folder relative to its repository's root; empty for the root."""


class WorkSnapshot(msgspec.Struct, frozen=True):
    """Origin of a commit on the work branch: agent, generation, host, branch and HEAD."""

    agent: str
    generation: int
    host: str
    branch: str
    head: str


def make_work_ref(agent: str) -> str:
    return f"refs/heads/rekindle/{agent}/work"


def render(snapshot: WorkSnapshot, replaced: str = "") -> str:
    """Render the message of a snapshot, which may replace earlier snapshots."""
    # Older versions expect the trailers in the last paragraph.
    above = f"This snapshot replaces {replaced} and earlier ones.\n\n" if replaced else ""
    return (
        f"The workspace of {snapshot.agent}\n\n{above}"
        f"Rekindle-Agent: {snapshot.agent}\n"
        f"Rekindle-Generation: {snapshot.generation}\n"
        f"Rekindle-Host: {to_one_line(snapshot.host)}\n"
        f"Rekindle-Branch: {snapshot.branch}\n"
        f"Rekindle-Head: {snapshot.head}\n"
    )


def parse(message: str) -> WorkSnapshot | None:
    """Return the snapshot in a commit message, or None if Rekindle did not write the commit."""
    match = _LAST_PARAGRAPH.search(message)
    return match and WorkSnapshot(match[1], int(match[2]), match[3], match[4], match[5])


def find_replaced(message: str) -> str:
    """Return the snapshot that a snapshot replaces, or ""."""
    match = _REPLACED.search(message) if parse(message) else None
    return match[1] if match else ""


def strip_user(url: str) -> str:
    """Return a remote's URL without credentials, but keep the user name of an ssh address."""
    scheme = url.partition("://")[0]
    if scheme == "file":
        return url
    return _PASSWORD.sub(r"\1@", url) if "ssh" in scheme else strip_login(url)


def strip_login(text: str) -> str:
    """Remove user names, passwords and tokens from all URLs in a text."""
    return _QUERY.sub(r"\1", _LOGIN.sub("", text))
