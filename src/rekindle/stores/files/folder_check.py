"""Find problems in an agent's folder, each with a command that fixes it.

The check only reads. Problems that a writer can repair are fixed by `rekindle doctor --fix`, and by
any other command that writes.
"""

import stat
from collections.abc import Iterator, Sequence
from shlex import quote

import msgspec

from rekindle.documents import state
from rekindle.documents.events import UnknownEvent
from rekindle.errors import (
    DocumentError,
    ForgedCommandError,
    NewerSchemaError,
    RekindleError,
    TamperedLogError,
    translate_os_errors,
)
from rekindle.formats import json_codec
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.projection.projection import CommittedDocument, LostEvents
from rekindle.policy.redact.redaction import Redaction
from rekindle.stores.files import ownership
from rekindle.stores.folders.agent_folder import AgentFolder
from rekindle.stores.log import (
    event_log,
    view,
)
from rekindle.stores.log.inbox import (
    HookParsers,
    InboxRecord,
)
from rekindle.stores.log.seal import ChainPosition
from rekindle.stores.log.view import AgentView
from rekindle.system.files import durable_files, file_status

_FIX = "rekindle doctor --fix"


class FolderProblem(msgspec.Struct, frozen=True):
    what: str
    fix: str
    is_note: bool = False
    """Whether this is only a note, because nothing is broken."""


def inspect_folder(
    folder: AgentFolder, host: str, harnesses: HookParsers, redaction: Redaction
) -> list[FolderProblem]:
    if not folder.exists():
        return [
            FolderProblem(
                "nothing is stored yet", "the first command creates the folder", is_note=True
            )
        ]
    # Check paths first, because a wrong path may prevent the other checks from reading anything.
    if misplaced := list(_check_places(folder)):
        return misplaced
    try:
        return _find_problems(folder, host, harnesses, redaction)
    except RekindleError as error:
        return [FolderProblem(str(error), error.hint or _FIX)]


def _find_problems(
    folder: AgentFolder, host: str, harnesses: HookParsers, redaction: Redaction
) -> list[FolderProblem]:
    agent_view = view.read_view(folder, harnesses, redaction)
    return [
        *_check_owner(folder, host),
        *_check_modes(folder),
        *_check_log(folder, agent_view, harnesses),
        *_check_documents(folder, agent_view),
        *_check_state(folder),
        *_check_leftovers(folder),
    ]


def _check_places(folder: AgentFolder) -> Iterator[FolderProblem]:
    """Report paths of the wrong kind, such as a link where a file should be."""
    for expected, paths in (
        ("folder", (*folder.folders, folder.resolutions)),
        ("file", folder.files),
    ):
        for path in paths:
            kind = file_status.name_kind(path)
            if kind not in {"", expected}:
                away = quote(f"{path}.away")
                yield FolderProblem(
                    f"{path}: is a {kind}, not a {expected}",
                    f"move it away: mv {quote(str(path))} {away}",
                )


def _check_owner(folder: AgentFolder, host: str) -> Iterator[FolderProblem]:
    try:
        owner = ownership.read_owner(folder)
    except DocumentError as error:
        yield FolderProblem(str(error), error.hint)
        return
    if owner and owner.host.startswith(ownership.FLEET_PREFIX):
        foreign = ownership.make_foreign_error(folder.name, owner.host)
        yield FolderProblem(str(foreign), foreign.hint, is_note=True)
    elif owner and owner.host != host:
        yield FolderProblem(
            f"belongs to host {owner.host}; this host is {host}",
            "if that host no longer works on the agent: rekindle doctor --fix --take-over",
        )


def _check_modes(folder: AgentFolder) -> Iterator[FolderProblem]:
    documents = [folder.document(name) for name in ("relay", "checkpoint", "brief")]
    for path in (*folder.folders, folder.log, folder.state, *documents):
        if not durable_files.path_exists(path):
            continue
        with translate_os_errors(path):
            mode = stat.S_IMODE(path.lstat().st_mode)
        if mode & 0o077:
            right_mode = "700" if path in folder.folders else "600"
            yield FolderProblem(
                f"other users can read {path}", f"chmod {right_mode} {quote(str(path))}"
            )


def _check_log(
    folder: AgentFolder, agent_view: AgentView, harnesses: HookParsers
) -> Iterator[FolderProblem]:
    if agent_view.is_tampered:
        error = TamperedLogError(folder.name, agent_view.condition)
        yield FolderProblem(error.reason, error.hint)
        return
    try:
        view.require_whole_log(folder, agent_view.committed.seq)
    except DocumentError as error:
        yield FolderProblem(str(error), error.hint)
    bad: list[event_log.BadLine] = []
    losses: list[LostEvents] = []
    position = ChainPosition()
    # Start at offset 0 to find damage that the snapshot would hide.
    for batch in event_log.read_batches(folder.log, chain=""):
        bad += batch.bad
        losses += batch.losses
        position = ChainPosition(batch.end, batch.chain)
    if folder.private and position.end == agent_view.end and position.chain != agent_view.chain:
        yield FolderProblem(
            "ops.jsonl was changed before its last snapshot; the current state is not affected",
            "restore it from a backup, or ignore this",
        )
    if skipped := [line for line in bad if not line.is_damaged]:
        first = skipped[0]
        yield FolderProblem(
            f"lines in ops.jsonl that do not count: {len(skipped)}, the first at byte "
            f"{first.offset}: {first.reason}",
            "nothing to do: these lines were never acknowledged, and Rekindle skips them",
            is_note=True,
        )
    yield from _check_losses(folder, agent_view, [line for line in bad if line.is_damaged], losses)
    defects = [_find_defect(record, harnesses) for record in agent_view.pending]
    if forged := defects.count("forged"):
        yield FolderProblem(
            f"the workspace's inbox has operator commands, which do not count there: {forged}",
            "check what the agent did; only it or a program that it started can have written them",
        )
    if "newer" in defects:
        yield FolderProblem(
            "the inbox has a record from a newer version of Rekindle",
            "pip install --upgrade rekindle-agents",
        )
    elif agent_view.pending:
        yield FolderProblem(
            f"inbox records that are not in the log yet: {len(agent_view.pending)}", _FIX
        )


def _check_losses(
    folder: AgentFolder,
    agent_view: AgentView,
    damaged: Sequence[event_log.BadLine],
    losses: Sequence[LostEvents],
) -> Iterator[FolderProblem]:
    """Report damaged lines and gaps in the event numbers."""
    numbers = ", ".join(
        f"{loss.after + 1}"
        if loss.before == loss.after + 2
        else f"{loss.after + 1} to {loss.before - 1}"
        for loss in losses
        if loss.before
    )
    if damaged:
        first = damaged[0]
        yield FolderProblem(
            f"damaged lines in ops.jsonl: {len(damaged)}, the first at byte {first.offset}: "
            f"{first.reason}",
            _explain_loss(folder, agent_view),
            is_note=not agent_view.committed.may_miss_stop,
        )
    if numbers:
        yield FolderProblem(
            f"ops.jsonl has lost events: {to_one_line(numbers)}",
            _explain_loss(folder, agent_view),
            is_note=not agent_view.committed.may_miss_stop,
        )


def _explain_loss(folder: AgentFolder, agent_view: AgentView) -> str:
    if not agent_view.committed.may_miss_stop:
        return "these events are lost, unless a backup of ops.jsonl has them"
    return (
        "restore ops.jsonl from a backup. A stop may be among the lost events: the watchdog does "
        f"not start the agent until you run `rekindle run {folder.name}` or `rekindle stop "
        f"{folder.name}`"
    )


def _find_defect(record: InboxRecord, harnesses: HookParsers) -> str:
    """Return "forged", "newer" (if the command needs a newer Rekindle) or ""."""
    try:
        event = record.event(harnesses)
    except ForgedCommandError:
        return "forged"
    except NewerSchemaError:
        is_newer = True
    except DocumentError:
        return ""
    else:
        is_newer = isinstance(event, UnknownEvent)
    # A record in the workspace's inbox never waits for a newer Rekindle. The next fold rejects it.
    return "newer" if is_newer and record.is_from_operator else ""


def _check_documents(folder: AgentFolder, agent_view: AgentView) -> Iterator[FolderProblem]:
    for name in ("relay", "checkpoint", "brief"):
        last_commit = agent_view.committed.documents.get(name)
        condition = compare_document(folder, name, last_commit)
        if condition == "edited":
            yield FolderProblem(
                f"{folder.document(name)} was edited; the next command adopts it",
                _FIX,
                is_note=True,
            )
        elif condition in {"missing", "behind"}:
            shown = "missing" if condition == "missing" else "outdated"
            yield FolderProblem(f"{folder.document(name)} is {shown}", _FIX)
        if last_commit and not _archive_holds(folder, last_commit):
            yield FolderProblem(
                f"the archived copy of the {name} is missing or changed: {last_commit.path}",
                f"restore it from a backup, or set the {name} again",
            )


def compare_document(folder: AgentFolder, name: str, last_commit: CommittedDocument | None) -> str:
    """Compare a document with its last commit. Return none, clean, behind, missing or edited."""
    data = durable_files.read_bytes(folder.document(name))
    if data is None:
        return "missing" if last_commit else "none"
    if last_commit is None:
        return "edited"
    digest = json_codec.hash_bytes(data)
    # check this first: a relay that was set twice also equals the previous commit
    if digest == last_commit.sha256:
        return "clean"
    return "behind" if digest == last_commit.previous else "edited"


def is_state_edited(data: bytes) -> bool:
    """Return whether state.json was edited since Rekindle last wrote it."""
    try:
        return not state.is_unedited(data)
    except DocumentError:
        return True


def _archive_holds(folder: AgentFolder, last_commit: CommittedDocument) -> bool:
    data = durable_files.read_bytes(folder.path / last_commit.path)
    return data is not None and json_codec.hash_bytes(data) == last_commit.sha256


def _check_state(folder: AgentFolder) -> Iterator[FolderProblem]:
    data = durable_files.read_bytes(folder.state)
    if data is None:
        yield FolderProblem("state.json is missing", _FIX)
        return
    try:
        if not state.is_unedited(data):
            state.parse(data)
            yield FolderProblem(
                "state.json was edited; the next command adopts the additions", _FIX, is_note=True
            )
    except RekindleError as error:
        yield FolderProblem(str(error), error.hint or _FIX)


def _check_leftovers(folder: AgentFolder) -> Iterator[FolderProblem]:
    for parent in (folder.path, folder.memories):
        with translate_os_errors(parent):
            paths = sorted(parent.iterdir())
        for path in paths:
            if path.name.endswith(".rejected"):
                yield FolderProblem(
                    f"an edit could not be used and was set aside: {path}",
                    f"copy what you need from it, then run: rm {quote(str(path))}",
                    is_note=True,
                )
            elif path.name.startswith(durable_files.TEMPORARY_PREFIX):
                yield FolderProblem(f"a killed process left the file {path.name}", _FIX)
