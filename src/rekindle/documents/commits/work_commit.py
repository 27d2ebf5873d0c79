"""A fleet agent's workspace, as it stands on a branch of its repository's remote.

Each push is a snapshot: a commit whose tree is the work tree as it was. Its message says whose:

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
_LOGIN = re.compile(r"(?<=://)[^\s/'\"]*@")
_PASSWORD = re.compile(r"(?<=://)([^\s/:@]*):[^\s/]*@")
_QUERY = re.compile(r"(://[^\s'\"?]*)\?[^\s'\"]*")


class PushedWork(msgspec.Struct, frozen=True):
    """What the remote has of a workspace."""

    revision: str
    """The commit on the work branch."""
    head: str
    """The commit that HEAD stood at; empty: none yet."""
    branch: str
    """The branch that was checked out; empty: detached."""


class RemoteLocation(msgspec.Struct, frozen=True):
    """Where a folder's repository is pushed to."""

    url: str
    path: str
    """The folder, as seen from the root of its repository; empty: it is the root."""


class WorkSnapshot(msgspec.Struct, frozen=True):
    """Who made a commit of the work branch, and where they stood."""

    agent: str
    generation: int
    host: str
    branch: str
    head: str


def make_work_ref(agent: str) -> str:
    return f"refs/heads/rekindle/{agent}/work"


def render(snapshot: WorkSnapshot) -> str:
    return (
        f"The workspace of {snapshot.agent}\n\n"
        f"Rekindle-Agent: {snapshot.agent}\n"
        f"Rekindle-Generation: {snapshot.generation}\n"
        f"Rekindle-Host: {to_one_line(snapshot.host)}\n"
        f"Rekindle-Branch: {snapshot.branch}\n"
        f"Rekindle-Head: {snapshot.head}\n"
    )


def parse(message: str) -> WorkSnapshot | None:
    """The snapshot that a commit's message tells of; None where the commit is not one of ours."""
    found = _LAST_PARAGRAPH.search(message)
    return found and WorkSnapshot(found[1], int(found[2]), found[3], found[4], found[5])


def strip_user(url: str) -> str:
    """A remote's url without what one person logs in with; the user of ssh is where it leads to."""
    scheme = url.partition("://")[0]
    if scheme == "file":
        return url
    return _PASSWORD.sub(r"\1@", url) if "ssh" in scheme else strip_login(url)


def strip_login(text: str) -> str:
    """Words without what a url would give away: who logs in, with which password or token."""
    return _QUERY.sub(r"\1", _LOGIN.sub("", text))
