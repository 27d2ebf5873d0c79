"""Where workspaces are kept: a git remote, cloned, fetched from and pushed to with a lease.

These calls may use the network as the user has set it up: their ssh, their agent, their credential
helpers. They run in an empty repository of their own that only borrows the objects, so that what
an agent may have written into its repository's configuration starts no program and redirects no
push. No hook runs, nothing is asked, and no login of a url is in any message.
"""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from rekindle.documents.workspace import without_login
from rekindle.errors import WorkspaceError, storing
from rekindle.policy.settings import WORKSPACE_TRANSFER_SECONDS
from rekindle.system import disk, gitprocess, user_folder
from rekindle.system.gitprocess import Ended
from rekindle.system.workcopy import WorkingCopy, start

_NETWORK = (
    # The user's own way to their remote. Nothing that asks a person on a screen.
    *("SSH_AUTH_SOCK", "SSH_AGENT_PID", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT"),
    *("GIT_ASKPASS", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "DBUS_SESSION_BUS_ADDRESS"),
    *("USER", "LOGNAME", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH"),
    *("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"),
    *("no_proxy", "NO_PROXY"),
)
_USERS_OWN = ("core.sshCommand", "core.askPass", "credential.helper")
_SETTINGS = {
    "push.followTags": "false",
    "push.gpgSign": "false",
    "push.recurseSubmodules": "no",
    "fetch.recurseSubmodules": "no",
    "fetch.writeCommitGraph": "false",
    "core.fsync": "objects,reference",  # what is fetched comes as a pack
}
_NOT_OF_AGENTS = "^refs/heads/rekindle/*"
"""Nobody has a use for the branches of hundreds of agents. A clone alone would not heed it."""
_ALL_BRANCHES = "+refs/heads/*:refs/remotes/origin/*"


class Seen(msgspec.Struct, frozen=True):
    """What a remote says that it has."""

    branch: str
    """Its default branch; empty: it does not say."""
    head: str
    """Where that stands; empty: nothing was ever pushed there."""
    work: str
    """Where the work branch stands; empty: there is none."""


class Remote:
    def __init__(self, url: str, ref: str) -> None:
        self._url = url
        self._ref = ref

    def look(self) -> Seen:
        at, to = self._listed("--symref", "HEAD", self._ref)
        branch = to.get("HEAD", "").removeprefix("refs/heads/")
        return Seen(branch, at.get("HEAD", ""), at.get(self._ref, ""))

    def look_for_default(self) -> Seen:
        """The same where its default branch is to be begun with, which must be known then."""
        seen = self.look()
        if seen.head:
            return seen
        # Its HEAD may name a branch that nobody pushed, as a bare repository has it at first.
        every, _ = self._listed("--heads")
        others = [ref for ref in every if not ref.startswith("refs/heads/rekindle/")]
        if len(others) > 1:
            raise WorkspaceError(
                "headless",
                f"{without_login(self._url)} has branches, and none of them is its default",
                hint="set its default branch; in the remote: git symbolic-ref HEAD refs/heads/main",
            )
        for ref in others:
            return Seen(ref.removeprefix("refs/heads/"), every[ref], seen.work)
        return seen

    def clone(self, folder: Path) -> None:
        """Give a folder its repository, whole or not at all; the work tree is not touched."""
        half_made = folder.with_name(f".{folder.name}.arriving")
        with storing(folder):
            # Under a name that nobody takes for a workspace: killed meanwhile, it is begun again.
            if half_made.exists():
                shutil.rmtree(half_made)
            if (folder / ".git").exists():
                return
            folder.mkdir(parents=True, exist_ok=True)
            options = ("--quiet", "--no-checkout", "--origin", "origin", "--template=")
            few = ("--single-branch", "--config", f"remote.origin.fetch={_NOT_OF_AGENTS}")
            asked = ("clone", *options, *few, "--", self._url, str(half_made))
            self._call(asked, folder=folder.parent)
            all_else = ("config", "--add", "remote.origin.fetch", _ALL_BRANCHES)
            self._call(all_else, folder=half_made)
            self._call(("fetch", "--quiet", "origin"), folder=half_made)
            disk.set_aside(half_made / ".git", folder / ".git")
            disk.sync_folder(folder)
            half_made.rmdir()

    def fetch(self, copy: WorkingCopy, *what: str) -> None:
        """Have the objects of some refs or commits here; no ref is changed."""
        wanted = [f"+{one}:refs/fetched/{number}" for number, one in enumerate(what)]
        quiet = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance")
        with self._borrowing(copy) as place:
            # So that only what is new here is fetched.
            (place / "packed-refs").write_bytes(copy.refs())
            self._call(("fetch", *quiet, "--", self._url, *wanted), folder=place, borrowed=copy)

    def push(self, copy: WorkingCopy, commit: str, expected: str) -> bool:
        """Move the work branch if it still stands at `expected`; empty: if there is none."""
        lease = f"--force-with-lease={self._ref}:{expected}"
        asked = ("push", "--quiet", "--porcelain", "--no-verify", lease, "--", self._url)
        with self._borrowing(copy) as place:
            ended = self._start((*asked, f"{commit}:{self._ref}"), folder=place, borrowed=copy)
        if ended.code == 0:
            return True
        if not any(line.startswith(b"!\t") for line in ended.out.splitlines()):
            raise self._refused("push", ended)
        # Refused for whatever reason, in whatever words: what counts is what the remote has now.
        found = self.look().work
        if found not in {commit, expected}:
            return False
        if found == expected:
            raise self._refused("push", ended)
        return True

    def _listed(self, option: str, *names: str) -> tuple[dict[str, str], dict[str, str]]:
        """Where refs stand, and what symbolic ones are names for."""
        asked = ("ls-remote", option, "--", self._url, *names)
        with _empty_folder() as place:
            said = self._call(asked, folder=place).out.decode(errors="replace")
        at, to = {}, {}
        for line in said.splitlines():
            value, _, ref = line.partition("\t")
            if value.startswith("ref: "):
                to[ref] = value.removeprefix("ref: ")
            else:
                at[ref] = value
        return at, to

    @contextmanager
    def _borrowing(self, copy: WorkingCopy) -> Iterator[Path]:
        """A repository with no configuration but the user's, which has another one's objects."""
        with _empty_folder() as place:
            (place / "refs").mkdir()
            (place / "objects").mkdir()
            (place / "HEAD").write_text("ref: refs/heads/none\n")
            if copy.object_format != "sha1":
                (place / "config").write_text(
                    "[core]\n\trepositoryformatversion = 1\n\tbare = true\n"
                    f"[extensions]\n\tobjectformat = {copy.object_format}\n"
                )
            if copy.shallow.exists():
                shutil.copyfile(copy.shallow, place / "shallow")
            yield place

    def _call(
        self, arguments: Sequence[str], *, folder: Path, borrowed: WorkingCopy | None = None
    ) -> Ended:
        ended = self._start(arguments, folder=folder, borrowed=borrowed)
        if ended.code:
            raise self._refused(arguments[0], ended)
        return ended

    def _start(
        self, arguments: Sequence[str], *, folder: Path, borrowed: WorkingCopy | None = None
    ) -> Ended:
        settings = gitprocess.SETTINGS | _SETTINGS
        own = gitprocess.OWN_ENVIRONMENT | {"GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh"}
        if borrowed is not None:
            own |= {"GIT_DIR": str(folder), "GIT_OBJECT_DIRECTORY": str(borrowed.objects)}
        return start(
            arguments,
            folder=folder,
            environment=gitprocess.inherited((*gitprocess.ENVIRONMENT, *_NETWORK))
            | own
            | {"GIT_CEILING_DIRECTORIES": str(folder.parent)},
            settings={key: value for key, value in settings.items() if key not in _USERS_OWN},
            timeout=WORKSPACE_TRANSFER_SECONDS,
        )

    def _refused(self, command: str, ended: Ended) -> WorkspaceError:
        url = without_login(self._url)
        said = without_login(ended.reason.replace(self._url, url))
        return WorkspaceError(
            "remote", f"git {command}: {said}", hint=f"try it on this host: git ls-remote {url}"
        )


@contextmanager
def _empty_folder() -> Iterator[Path]:
    """Make a folder for one call of git, outside /tmp: a sandboxed agent may write there.

    Git would run the programs that a configuration in it names.
    """
    above = user_folder.make("git")
    with storing(above), tempfile.TemporaryDirectory(dir=above) as made:
        yield Path(made)
