"""Acceptance: the operator takes a log that is not as sealed for the agent's log."""

from rekindle.stores.files import log, seal
from rekindle.stores.files.layout import AgentFolder
from rekindle.stores.files.seal import Place, Seal
from rekindle.stores.files.view import View, made_at
from rekindle.system import disk


def accept(folder: AgentFolder, seen: View) -> str:
    """Seal the log as it is now; return the file, below the agent's folder, that was set aside.

    Lines behind what the seal covers are moved to a file of their own, unless state.json was made
    from them: then the seal is older than the log, as after a project was moved and moved back, or
    after the user's folder was restored. Such a log, and one that is different from its beginning
    on, is sealed as a whole. The caller holds the agent's lock.
    """
    if folder.private is None:
        return ""
    if seen.condition == "appended" and made_at(folder) <= seen.committed.seq:
        aside = _free_name(folder)
        disk.write_from(folder.path / aside, 0, log.pieces(folder.log, seen.end))
        disk.cut(folder.log, seen.end)
        seal.write(folder.private.seal, Seal(Place(seen.end, seen.chain)))
        return aside
    # The snapshot is of the log that was there before.
    folder.snapshot.unlink(missing_ok=True)
    reseal(folder)
    return folder.log.name


def reseal(folder: AgentFolder) -> None:
    """Seal the complete lines of the log as they are now."""
    if folder.private is None:
        return
    whole = log.place(folder.log)
    if log.size(folder.log) > whole.end:
        disk.cut(folder.log, whole.end)
    seal.write(folder.private.seal, Seal(whole))


def _free_name(folder: AgentFolder) -> str:
    number, name = 1, f"{folder.log.name}.rejected"
    while disk.exists(folder.path / name):
        number += 1
        name = f"{folder.log.name}.{number}.rejected"
    return name
