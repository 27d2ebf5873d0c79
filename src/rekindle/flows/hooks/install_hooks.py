"""Install, examine and remove Rekindle's hooks in a CLI's settings files.

A record of each settings file holds the previous text and the hash of the text that Rekindle wrote.
If the file still has that hash, uninstalling restores the old bytes. If it was changed since, only
Rekindle's entries are removed. A project's record is in its `.rekindle`, where an agent can write,
so its text is used only if it equals the file without Rekindle's entries.
"""

import json
import os
import shlex
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import msgspec

from rekindle.documents.hooks import hook_settings
from rekindle.documents.hooks.hook_settings import HookEntries, HookInstallation, InstalledHook
from rekindle.errors import (
    DocumentError,
    RekindleError,
    StoreError,
    UnsafePathError,
    UsageError,
    translate_os_errors,
)
from rekindle.flows.hooks.hook_locations import HookLevel, HookLocation, list_levels, locate_hooks
from rekindle.formats import json_codec, json_edit
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.settings.runtime_settings import EDIT_LOCK_SECONDS
from rekindle.stores.folders import agent_folder
from rekindle.system.files import durable_files, file_locks, hook_program

HookState = Literal["installed", "not installed", "partly", "outdated", "muted", "unreadable"]

_SCHEMA = 1
_SHARED_MODE = 0o644
_SHARED_FOLDER_MODE = 0o755


class _InstallRecord(msgspec.Struct, frozen=True):
    before: str
    existed: bool
    written: str
    """Hash of the settings file as Rekindle wrote it."""
    made_folder: bool
    folder: str = ""
    """The agent's folder relative to the project; empty if it is the project or outside it."""
    v: int = _SCHEMA


class HookChanges(msgspec.Struct, frozen=True):
    settings_changed: bool
    program_changed: bool
    settings_made: bool = False
    settings_removed: bool = False


class HookReport(msgspec.Struct, frozen=True):
    place: HookLocation
    state: HookState
    problems: tuple[str, ...] = ()
    fix: str = ""

    @property
    def is_broken(self) -> bool:
        return self.state in {"partly", "outdated", "muted", "unreadable"}


def install_hooks(
    place: HookLocation, folder: Path | None, others: Collection[Path] = ()
) -> HookChanges:
    """Install the hooks, replacing older ones of Rekindle.

    Raises:
        UsageError: The installed hooks report for one of `others`, the folders of other agents.
    """
    hooks = _build_hooks(place, folder)
    with _hold_lock(place):
        text, current = _read_settings(place)
        installed = _find_installed(place, text)
        _refuse_other(place, installed, others)
        earlier = _read_record(place) if installed else None
        before = _restore_text(place, text, current, earlier)
        after = hook_settings.add_hooks(
            before, hooks, place.shown, comments=place.files.comments
        ).encode()
        program_changed = hook_program.provide_program()
        if _are_installed(installed, hooks) and earlier:
            return HookChanges(settings_changed=False, program_changed=program_changed)
        made_folder = _make_settings_folder(place)
        record = _InstallRecord(
            before=before,
            existed=earlier.existed if earlier else current is not None,
            written=json_codec.hash_bytes(after),
            made_folder=earlier.made_folder if earlier else made_folder,
            folder=_make_relative(place),
        )
        durable_files.replace_file(place.record, json_codec.encode(record, place.record.name))
        if after != current:
            _write_settings(place, after)
        return HookChanges(
            settings_changed=after != current,
            program_changed=program_changed,
            settings_made=current is None,
        )


def list_recorded_folders(project: Path) -> list[Path]:
    """Return the project's folders with recorded hooks, even if `dir:` has changed since.

    An agent can write the records, so paths outside the project are ignored.
    """
    folders = []
    with translate_os_errors(project / agent_folder.REKINDLE_FOLDER):
        records = sorted((project / agent_folder.REKINDLE_FOLDER).glob("hooks-*.json"))
    for path in records:
        with suppress(StoreError), translate_os_errors(path):
            record = _decode_record(durable_files.read_bytes(path), path.name)
            folder = (project / record.folder).resolve() if record and record.folder else None
            if folder and folder.is_dir() and folder.is_relative_to(project.resolve()):
                folders.append(folder)
    return folders


def _make_relative(place: HookLocation) -> str:
    """Return the settings' folder relative to the project, or "" if it is not below it."""
    project = place.home.parent.resolve()
    folder = place.folder.resolve() if place.folder else project
    if folder == project or not folder.is_relative_to(project):
        return ""
    return os.fsencode(folder.relative_to(project)).decode("utf-8", "replace")


def _refuse_other(
    place: HookLocation, found: list[InstalledHook], others: Collection[Path]
) -> None:
    named = {hook.command.folder for hook in found}
    if taken := [other for other in others if str(other) in named]:
        name = taken[0].name
        raise UsageError(
            f"{place.shown} has the hooks of agent {name}",
            hint="give each agent a folder of its own (`dir:` in rekindle.yaml), or first"
            f" `rekindle hooks uninstall --for {place.level} --agent {name}`",
        )


def is_installed(place: HookLocation) -> bool:
    """Return whether the file contains Rekindle's hooks, or a record of it exists."""
    return bool(_find_installed(place, _read_settings(place)[0])) or place.record.exists()


def uninstall_hooks(place: HookLocation) -> HookChanges:
    """Remove the hooks, and keep all other content of the file, including later changes."""
    if not is_installed(place):
        return HookChanges(settings_changed=False, program_changed=False)
    with _hold_lock(place):
        text, current = _read_settings(place)
        installed = _find_installed(place, text)
        record = _read_record(place)
        after = _restore_text(place, text, current, record) if installed else text
        was_ours = bool(installed) and record is not None and not record.existed
        removed = was_ours and hook_settings.is_empty_file(
            after, place.shown, comments=place.files.comments
        )
        if removed:
            _remove_settings(place, made_folder=record is not None and record.made_folder)
        elif after != text:
            _write_settings(place, after.encode())
        program_changed = _forget_record(place)
    return HookChanges(
        settings_changed=removed or after != text,
        program_changed=program_changed,
        settings_removed=removed,
    )


def examine_hooks(place: HookLocation) -> HookReport:
    """Report whether the hooks are installed and can run."""
    try:
        text, _ = _read_settings(place)
        installed = _find_installed(place, text)
    except RekindleError as error:
        return HookReport(place, "unreadable", (str(error),), error.hint)
    if not installed:
        return HookReport(place, "not installed")
    how = ["--harness", place.harness.NAME, "--for", place.level]
    repair_command = shlex.join(["rekindle", "hooks", "install", *how, *_find_agents(installed)])
    problems = tuple(dict.fromkeys(_find_problems(installed)))
    wanted = hook_settings.list_wanted(place.harness.hooks([], supervised=False))
    present = [(hook.event, hook.matcher) for hook in installed]
    missing = [event for event, matcher, _ in wanted if (event, matcher) not in present]
    if missing:
        problems = (f"no hook for {', '.join(dict.fromkeys(missing))}", *problems)
    elif len(present) > len(set(present)):
        problems = ("some hooks are installed twice", *problems)
    if problems:
        return HookReport(place, "partly" if missing else "outdated", problems, repair_command)
    if muted := place.harness.muted(_make_installation(place, text)):
        return HookReport(place, "muted", (muted.why,), muted.fix)
    return HookReport(place, "installed")


def _make_installation(place: HookLocation, text: str) -> HookInstallation:
    """Return the files that the CLI checks before it runs a hook."""
    deciding = {}
    for name in place.files.deciding:
        with suppress(StoreError):
            data = durable_files.read_bytes(Path(os.path.realpath(place.own / name)))
            deciding[name] = (data or b"").decode("utf-8", "replace")
    if place.files.comments:  # a commented-out setting must not count
        text = json_edit.blank_comments(text)
        deciding = {name: json_edit.blank_comments(content) for name, content in deciding.items()}
    folder = os.path.realpath(place.folder) if place.folder else ""
    return HookInstallation(str(place.target), text, folder, deciding)


def _build_hooks(place: HookLocation, folder: Path | None) -> HookEntries:
    # Not resolved: a virtual environment is recognized by the path of its link to Python.
    python = Path(sys.executable).absolute() if sys.executable else None
    words = [str(python), str(hook_program.find_hook_path()), str(folder or "")]
    if python is None or not python.is_file():
        raise UsageError("this Python does not know its own path", hint="run rekindle by its path")
    try:
        "".join(words).encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"a path is not valid Unicode, which JSON requires: {to_one_line(' '.join(words))}",
            hint="rename the folder",
        ) from error
    program = [str(python), "-I", "-S", str(hook_program.find_hook_path())]
    return place.harness.hooks(program, supervised=False, folder=str(folder or ""))


def _are_installed(found: list[InstalledHook], hooks: HookEntries) -> bool:
    """Return whether exactly these hooks are installed, ignoring the hooks of other tools."""
    present = [(one.event, one.matcher, one.hook) for one in found]
    wanted = hook_settings.list_wanted(hooks)
    return len(present) == len(wanted) and all(one in present for one in wanted)


def _restore_text(
    place: HookLocation, text: str, current: bytes | None, record: _InstallRecord | None
) -> str:
    """Return the text without Rekindle's hooks: the recorded one if valid, else the file's."""
    before = record.before if record else ""
    comments = place.files.comments
    without = hook_settings.remove_hooks(text, place.shown, before, comments=comments)
    is_as_written = record and current and json_codec.hash_bytes(current) == record.written
    return before if is_as_written and _says_same(place, before, without) else without


def _says_same(place: HookLocation, text: str, other: str) -> bool:
    """Return whether two settings texts differ only in layout."""
    values = []
    for each in (text, other):
        bare = json_edit.blank_comments(each) if place.files.comments else each
        try:
            values.append(json.loads(bare.removeprefix("\ufeff").strip() or "{}"))
        except (ValueError, RecursionError):
            return False
    return bool(values[0] == values[1])


def _find_installed(place: HookLocation, text: str) -> list[InstalledHook]:
    return hook_settings.find_installed(text, place.shown, comments=place.files.comments)


def _find_problems(found: list[InstalledHook]) -> Iterator[str]:
    for hook in found:
        command = hook.command
        python, program = Path(command.python), Path(command.program)
        if not os.access(python, os.X_OK):
            yield f"{to_one_line(command.python)} is gone"
        is_this_python = python == Path(sys.executable).absolute()
        if wrong := hook_program.find_problem(program, this_python=is_this_python):
            yield f"{to_one_line(command.program)} {wrong}"
        if command.folder and not Path(command.folder).is_dir():
            yield f"the agent's folder {to_one_line(command.folder)} is gone"


def _find_agents(found: list[InstalledHook]) -> list[str]:
    folder = found[0].command.folder
    return ["--agent", Path(folder).name] if folder and Path(folder).is_dir() else []


@contextmanager
def _hold_lock(place: HookLocation) -> Iterator[None]:
    """Hold the lock on the settings, because two concurrent edits would undo each other.

    Raises:
        UnsafePathError: The settings of a project lead to a file outside of it.
    """
    target, _ = _find_target(place)
    with translate_os_errors(place.home):
        place.home.parent.mkdir(parents=True, exist_ok=True)
    durable_files.make_folder(place.home)
    with file_locks.hold_lock(place.home / "lock", EDIT_LOCK_SECONDS) as lock:
        if lock is None:
            raise UsageError("another process is changing the hooks", hint="repeat the command")
        durable_files.sweep_temporary(place.home, of=f"-{place.record.name}")
        if target.parent.is_dir():
            durable_files.sweep_temporary(target.parent, of=f"-{target.name}")
        yield


def _find_target(place: HookLocation) -> tuple[Path, Path | None]:
    """Return the file to write, and the folder below which links are refused."""
    target = place.target
    root = place.root_of(target)
    if root is None and place.level != "user":
        raise UnsafePathError(
            place.shown,
            f"leads to {to_one_line(str(target))}, outside the project",
            hint="replace the link with a file, or use --for user",
        )
    return target, root


def _read_settings(place: HookLocation) -> tuple[str, bytes | None]:
    data = durable_files.read_bytes(place.target)
    try:
        return (data or b"").decode(), data
    except UnicodeDecodeError as error:
        raise DocumentError(
            place.shown, f"is not UTF-8 text (byte {error.start})", hint="save it as UTF-8"
        ) from error


def _write_settings(place: HookLocation, data: bytes) -> None:
    target, root = _find_target(place)
    new = _SHARED_MODE if place.level == "project" else durable_files.FILE_MODE
    with translate_os_errors(target):
        mode = target.stat().st_mode & 0o777 if target.exists() else new
        if target.exists() and not os.access(target, os.W_OK):
            # The folder's permissions allow replacing it, but its owner made it read-only.
            raise StoreError(
                str(target), "is read-only", hint=f"chmod u+w {shlex.quote(str(target))}"
            )
    durable_files.replace_file(target, data, mode=mode, root=root)


def _make_settings_folder(place: HookLocation) -> bool:
    """Create the settings' folder, and return whether it was missing."""
    folder = place.settings.parent
    with translate_os_errors(folder):
        if folder.is_dir():
            return False
        if place.folder and not place.folder.is_dir():
            shown = to_one_line(str(place.folder))
            raise UsageError(f"there is no folder {shown}", hint="make it, or correct `dir:`")
        mode = durable_files.FOLDER_MODE if place.level == "user" else _SHARED_FOLDER_MODE
        folder.mkdir(mode, parents=True)
    durable_files.sync_folder(folder.parent)
    return True


def _remove_settings(place: HookLocation, *, made_folder: bool) -> None:
    target, root = _find_target(place)
    durable_files.remove_file(target, root=root)
    durable_files.sync_folder(target.parent)
    if made_folder:
        with suppress(OSError):  # the folder contains other files by now
            place.settings.parent.rmdir()


def _read_record(place: HookLocation) -> _InstallRecord | None:
    return _decode_record(durable_files.read_bytes(place.record), place.record.name)


def _decode_record(data: bytes | None, name: str) -> _InstallRecord | None:
    if data is None:
        return None
    try:
        json_codec.decode_object(data, name, schema=_SCHEMA)
        return msgspec.json.decode(data, type=_InstallRecord)
    except (DocumentError, msgspec.MsgspecError):
        return None  # Rekindle's entries are recognizable without a record


def _list_other_locations(place: HookLocation) -> list[HookLocation]:
    """Return the project's other settings files that use the same hook program."""
    if place.level == "user":
        return []
    levels: tuple[HookLevel, ...] = ("local", "project")
    return [
        locate_hooks(place.harness, level, place.home.parent, {}, place.folder)
        for level in levels
        if level != place.level and level in list_levels(place.harness)
    ]


def _forget_record(place: HookLocation) -> bool:
    """Remove the record, and an old version's program if no other settings need it."""
    with translate_os_errors(place.home):
        durable_files.remove_file(place.record)
        if any(place.home.glob("hooks-*.json")) or not place.old_program.exists():
            return False
        if any(
            _find_installed(location, _read_settings(location)[0])
            for location in _list_other_locations(place)
        ):
            return False  # its record is lost, but it still needs the program
        durable_files.remove_file(place.old_program)
    return True
