"""Fetch from and push to the git remote that stores workspaces.

These commands may use the network with the user's own setup: ssh, ssh-agent, credential helpers.
They run in a separate, empty repository that only borrows the objects. That way, an agent cannot
start a program or redirect a push by editing its repository's configuration. No hooks run, git
never prompts, and messages never contain the credentials in a URL.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from rekindle.documents.clone_files import parse_refs
from rekindle.documents.commits.work_commit import strip_login
from rekindle.errors import (
    WorkspaceError,
    translate_os_errors,
)
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.fleet.push_rate import is_limit_answer
from rekindle.policy.settings.runtime_settings import WORKSPACE_TRANSFER_SECONDS
from rekindle.system.files import (
    user_folder,
)
from rekindle.system.git import git_process
from rekindle.system.git.git_process import GitResult
from rekindle.system.git.push_queue import PushAnswer, PushQueue, RefUpdate
from rekindle.system.git.tree_snapshot import (
    WorkingCopy,
)
from rekindle.system.git.workspace_git import start_git
from rekindle.thresholds.storage import GIT_ERROR_CHARACTERS

_NETWORK = (
    # The user's credentials and network settings, except variables that would open a prompt.
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
    "core.fsync": "objects,reference",  # fetched objects arrive as a pack
}
_NOT_OF_AGENTS = "^refs/heads/rekindle/*"
"""Refspec that excludes agent branches, because there may be hundreds."""
_ALL_BRANCHES = "+refs/heads/*:refs/heads/*"


class RemoteState(msgspec.Struct, frozen=True):
    """The branches that a remote reports."""

    branch: str
    """Name of the default branch; empty if the remote does not report one."""
    head: str
    """Commit of the default branch; empty if nothing was ever pushed."""
    work: str
    """Commit of the work branch; empty if the branch does not exist."""

    @property
    def ref(self) -> str:
        """Return the ref from which a new agent starts."""
        return f"refs/heads/{self.branch}" if self.branch else "HEAD"


class RemoteRepository:
    def __init__(self, url: str, ref: str, queue: PushQueue | None = None) -> None:
        """Use a queue if other agents on this host push to the remote too."""
        self._url = url
        self._ref = ref
        self._queue = queue

    def look(self) -> RemoteState:
        at, to = self._list_refs("--symref", "HEAD", self._ref)
        branch = to.get("HEAD", "").removeprefix("refs/heads/")
        return RemoteState(branch, at.get("HEAD", ""), at.get(self._ref, ""))

    def look_up_base(self, branch: str = "") -> RemoteState:
        """Return the remote's state with the branch from which a new agent starts.

        Without a name, this is the default branch, which is found even if HEAD does not exist.

        Raises:
            WorkspaceError: The remote does not have this branch.
        """
        if branch:
            return self._look_up_branch(branch)
        seen = self.look()
        if seen.head:
            return seen
        # In a new bare repository, HEAD may name a branch that was never pushed.
        every, _ = self._list_refs("--heads")
        others = [ref for ref in every if not ref.startswith("refs/heads/rekindle/")]
        if len(others) > 1:
            raise WorkspaceError(
                "headless",
                f"{strip_login(self._url)} has several branches, but no default branch",
                hint="set a default branch; to do so in the remote repository: "
                "git symbolic-ref HEAD refs/heads/main",
            )
        for ref in others:
            return RemoteState(ref.removeprefix("refs/heads/"), every[ref], seen.work)
        return seen

    def _look_up_branch(self, branch: str) -> RemoteState:
        ref = f"refs/heads/{branch}"
        at, _ = self._list_refs("--refs", ref, self._ref)
        if ref not in at:
            raise WorkspaceError(
                "branch",
                f"{strip_login(self._url)} has no branch {branch!r}",
                hint="push the branch, or define the agent with another one",
            )
        return RemoteState(branch, at[ref], at.get(self._ref, ""))

    def list_refs(self, *patterns: str) -> dict[str, str]:
        """Return the commit of each ref that matches a pattern, such as `refs/heads/a/*`."""
        return self._list_refs("--refs", *patterns)[0]

    def clone_branches(self, folder: Path) -> None:
        """Clone all branches, except those of agents, into a new bare repository."""
        options = ("--quiet", "--bare", "--single-branch", "--template=")
        self._call_git(("clone", *options, "--", self._url, str(folder)), folder=folder.parent)
        self.fetch_branches(folder)

    def fetch_branches(self, folder: Path) -> None:
        """Update the branches of a bare repository. No commits are removed."""
        quiet = ("--quiet", "--prune", "--no-auto-maintenance")
        command = ("fetch", *quiet, "--", self._url, _ALL_BRANCHES, _NOT_OF_AGENTS)
        self._call_git(command, folder=folder)

    def init(self, folder: Path, *, like: Path, branch: str) -> None:
        """Create an empty repository with the object format of another."""
        asked = ("rev-parse", "--show-object-format")
        kept = self._call_git(asked, folder=like).out.decode().strip()
        options = ("--quiet", "--template=", f"--object-format={kept}")
        command = ("init", *options, f"--initial-branch={branch}", "--", str(folder))
        self._call_git(command, folder=folder.parent)

    def read_refs(self, folder: Path) -> dict[str, str]:
        """Return the refs of a bare repository on this host."""
        command = ("for-each-ref", "--format=%(objectname) %(refname)")
        return parse_refs(os.fsdecode(self._call_git(command, folder=folder).out))

    def has_commit(self, folder: Path, commit: str) -> bool:
        """Return whether a bare repository on this host has a commit."""
        return self._start_git(("cat-file", "-e", f"{commit}^{{commit}}"), folder=folder).code == 0

    def is_sound(self, folder: Path) -> bool:
        """Return whether a bare repository on this host is undamaged. Reads all of its objects."""
        command = ("fsck", "--no-progress", "--no-dangling")
        return self._start_git(command, folder=folder).code == 0

    def fetch(self, copy: WorkingCopy, *what: str, again: bool = False) -> None:
        """Fetch the objects for refs or commits without updating any local ref.

        With `again`, also fetch objects that should be here but may be missing.
        """
        wanted = [f"+{ref}:refs/fetched/{number}" for number, ref in enumerate(what)]
        quiet = ["--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance"]
        quiet += ["--refetch"] if again else []
        with self._borrow_objects(copy) as place:
            if not again:
                # These refs tell git which objects exist here, so it fetches only missing ones.
                (place / "packed-refs").write_bytes(copy.refs())
            self._call_git(("fetch", *quiet, "--", self._url, *wanted), folder=place, borrowed=copy)

    def copy_refs(self, copy: WorkingCopy, *patterns: str) -> dict[str, str]:
        """Update local refs that match a pattern from the remote, and return their commits.

        A pattern is a ref, or ends with `*`. Local refs that are not on the remote are kept.
        """
        starts = tuple(pattern.removesuffix("*") for pattern in patterns)
        # Git matches a pattern at the end of a ref, so it also lists refs in other folders.
        there = {
            ref: commit
            for ref, commit in self.list_refs(*patterns).items()
            if ref.startswith(starts)
        }
        here = parse_refs(copy.refs().decode())
        missing = {ref: commit for ref, commit in there.items() if here.get(ref) != commit}
        if missing:
            self.fetch(copy, *missing)
            lines = "".join(f"update {ref} {commit}\n" for ref, commit in missing.items())
            copy.refuse_link(*missing)
            copy.call("update-ref", "--no-deref", "--stdin", stdin=lines.encode())
        return there

    def push(self, copy: WorkingCopy, commit: str, expected: str) -> bool:
        """Move the work branch if it is still at `expected` (empty: if it does not exist yet)."""
        shallow = copy.shallow.exists()
        update = RefUpdate(str(copy.objects), self._ref, commit, expected, is_alone=shallow)

        def send(updates: Sequence[RefUpdate]) -> dict[str, PushAnswer]:
            return self._send(copy, updates)

        answer = self._queue.push(update, send) if self._queue else send([update])[self._ref]
        if answer.is_done:
            return True
        refusal = WorkspaceError("remote", f"git push: {answer.complaint}", hint=self._hint)
        if not answer.is_rejected:
            raise refusal
        # Git's message depends on its version and the server, so check the actual state.
        current = self.look().work
        if current not in {commit, expected}:
            return False
        if current == expected:
            raise refusal
        return True

    def _send(self, copy: WorkingCopy, updates: Sequence[RefUpdate]) -> dict[str, PushAnswer]:
        """Push updates, whose objects may be in several repositories."""
        leases = (f"--force-with-lease={one.ref}:{one.expected}" for one in updates)
        command = ("push", "--quiet", "--porcelain", "--no-verify", *leases, "--", self._url)
        refspecs = (f"{one.commit}:{one.ref}" for one in updates)
        folders = {one.objects for one in updates} - {str(copy.objects)}
        with self._borrow_objects(copy) as place:
            ended = self._start_git(
                (*command, *refspecs), folder=place, borrowed=copy, beside=sorted(folders)
            )
        if ended.code == 0:
            return {one.ref: PushAnswer(is_done=True) for one in updates}
        lines = ended.out.decode(errors="replace").splitlines()
        flags = {
            fields[1].rpartition(":")[2]: fields[0]
            for line in lines
            if len(fields := line.split("\t")) > 1
        }
        stated = self._strip(_find_limit(ended.complaint) or ended.reason)
        answers = {}
        for one in updates:
            flag = flags.get(one.ref)
            is_done = flag is not None and flag != "!"
            answers[one.ref] = PushAnswer(is_done, flag == "!", "" if is_done else stated)
        return answers

    def delete(self, copy: WorkingCopy, refs: Mapping[str, str]) -> set[str]:
        """Remove refs that are still at the given commits, and return the removed refs."""
        leases = (f"--force-with-lease={ref}:{commit}" for ref, commit in refs.items())
        command = ("push", "--porcelain", "--no-verify", *leases, "--", self._url)
        with self._borrow_objects(copy) as place:
            ended = self._start_git(
                (*command, *(f":{ref}" for ref in refs)), folder=place, borrowed=copy
            )
        lines = ended.out.decode(errors="replace").splitlines()
        removed = {
            line.split("\t")[1].removeprefix(":") for line in lines if line.startswith("-\t")
        }
        if ended.code and not any(line.startswith("!\t") for line in lines):
            raise self._make_refusal("push", ended)
        return removed

    def _list_refs(self, option: str, *names: str) -> tuple[dict[str, str], dict[str, str]]:
        """Return the commit of each ref, and the target of each symbolic ref."""
        command = ("ls-remote", option, "--", self._url, *names)
        with _make_empty_folder() as place:
            output = self._call_git(command, folder=place).out.decode(errors="replace")
        at, to = {}, {}
        for line in output.splitlines():
            value, _, ref = line.partition("\t")
            if value.startswith("ref: "):
                to[ref] = value.removeprefix("ref: ")
            else:
                at[ref] = value
        return at, to

    @contextmanager
    def _borrow_objects(self, copy: WorkingCopy) -> Iterator[Path]:
        """Create a repository that shares the objects of another, but not its configuration."""
        copy.refuse_link()
        with _make_empty_folder() as place:
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

    def _call_git(
        self, arguments: Sequence[str], *, folder: Path, borrowed: WorkingCopy | None = None
    ) -> GitResult:
        ended = self._start_git(arguments, folder=folder, borrowed=borrowed)
        if ended.code:
            raise self._make_refusal(arguments[0], ended)
        return ended

    def _start_git(
        self,
        arguments: Sequence[str],
        *,
        folder: Path,
        borrowed: WorkingCopy | None = None,
        beside: Sequence[str] = (),
    ) -> GitResult:
        settings = git_process.SAFE_SETTINGS | _SETTINGS
        own = git_process.OWN_ENVIRONMENT | {"GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh"}
        if borrowed is not None:
            own |= {"GIT_DIR": str(folder), "GIT_OBJECT_DIRECTORY": str(borrowed.objects)}
        if beside:
            own |= {
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": ":".join(map(git_process.quote_path, beside))
            }
        return start_git(
            arguments,
            folder=folder,
            environment=git_process.inherit_variables((*git_process.ENVIRONMENT, *_NETWORK))
            | own
            | {"GIT_CEILING_DIRECTORIES": str(folder.parent)},
            settings={key: value for key, value in settings.items() if key not in _USERS_OWN},
            timeout=WORKSPACE_TRANSFER_SECONDS,
        )

    def _make_refusal(self, command: str, ended: GitResult) -> WorkspaceError:
        return WorkspaceError(
            "remote", f"git {command}: {self._strip(ended.reason)}", hint=self._hint
        )

    @property
    def _hint(self) -> str:
        return f"to test the connection: git ls-remote {strip_login(self._url)}"

    def _strip(self, text: str) -> str:
        """Remove the credentials from git's message."""
        return strip_login(text.replace(self._url, strip_login(self._url)))


def _find_limit(complaint: str) -> str:
    """Return the line in which a remote says that there are too many pushes, or ""."""
    lines = complaint.splitlines()
    return to_one_line(next(filter(is_limit_answer, lines), ""), GIT_ERROR_CHARACTERS)


@contextmanager
def _make_empty_folder() -> Iterator[Path]:
    """Create an empty folder for one git command.

    It is not in /tmp, where a sandboxed agent could put a configuration that makes git run a
    program.
    """
    above = user_folder.make_user_folder("git")
    with translate_os_errors(above), tempfile.TemporaryDirectory(dir=above) as made:
        yield Path(made)
