"""Install and remove Rekindle's hooks in a CLI's settings files.

For each settings file, Rekindle records the previous text and a hash of the text that it wrote. If
the file still has that hash, uninstalling restores the previous bytes. Otherwise only Rekindle's
entries are removed. A project's record is in its `.rekindle` folder, where an agent can write, so
the recorded text is used only if it equals the current file without Rekindle's entries.
"""

import json
import os
import shlex
import sys
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import msgspec

from rekindle.documents.hooks import hook_settings
from rekindle.documents.hooks.hook_settings import HookEntries, InstalledHook
from rekindle.errors import DocumentError, StoreError, UsageError, translate_os_errors
from rekindle.flows.hooks import settings_file
from rekindle.flows.hooks.hook_locations import HookLocation
from rekindle.formats import json_codec, json_edit
from rekindle.formats.identifiers import to_one_line
from rekindle.stores.folders import agent_folder
from rekindle.system.files import durable_files, hook_program

_SCHEMA = 1


class _InstallRecord(msgspec.Struct, frozen=True):
    before: str
    existed: bool
    written: str
    """Hash of the settings file as Rekindle wrote it."""
    made_folder: bool
    folder: str = ""
    """Agent's folder relative to the project; empty if it is the project or outside it."""
    v: int = _SCHEMA


class HookChanges(msgspec.Struct, frozen=True):
    settings_changed: bool
    program_changed: bool = False
    settings_made: bool = False
    settings_removed: bool = False
    status_line_added: bool = False


def install_hooks(
    place: HookLocation, folder: Path | None, others: Collection[Path] = ()
) -> HookChanges:
    """Install the hooks, replacing any that Rekindle installed before.

    Raises:
        UsageError: The hooks are already installed for another agent, whose folder is in `others`.
    """
    hooks = _build_hooks(place, folder)
    with settings_file.hold_lock(place):
        text, current = settings_file.read_settings(place)
        installed = settings_file.find_installed(place, text)
        _refuse_other(place, installed, others)
        earlier = _read_record(place) if installed else None
        before = _restore_text(place, text, current, earlier)
        after = hook_settings.add_hooks(before, hooks, place.shown, comments=place.files.comments)
        with_line = after
        if place.level == "user" and place.files.has_status_line:
            with_line = hook_settings.add_status_line(after, _make_status_line(), place.shown)
        data = with_line.encode()
        program_changed = hook_program.provide_program()
        if _are_installed(installed, hooks) and earlier:
            return HookChanges(settings_changed=False, program_changed=program_changed)
        made_folder = settings_file.make_settings_folder(place)
        record = _InstallRecord(
            before=before,
            existed=earlier.existed if earlier else current is not None,
            written=json_codec.hash_bytes(data),
            made_folder=earlier.made_folder if earlier else made_folder,
            folder=_make_relative(place),
        )
        durable_files.replace_file(place.record, json_codec.encode(record, place.record.name))
        if data != current:
            settings_file.write_settings(place, data)
        return HookChanges(
            settings_changed=data != current,
            program_changed=program_changed,
            settings_made=current is None,
            status_line_added=with_line != after,
        )


def list_recorded_folders(project: Path) -> list[Path]:
    """Return the folders in the project that have recorded hooks.

    This includes folders used before `dir:` was changed. Paths outside the project are ignored,
    because an agent can edit the records.
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
    """Return the settings folder relative to the project, or "" if it is outside."""
    project = place.home.parent.resolve()
    folder = place.folder.resolve() if place.folder else project
    if folder == project or not folder.is_relative_to(project):
        return ""
    return os.fsencode(folder.relative_to(project)).decode("utf-8", "replace")


def _refuse_other(
    place: HookLocation, installed: list[InstalledHook], others: Collection[Path]
) -> None:
    named = {hook.command.folder for hook in installed}
    if other_agents := [other for other in others if str(other) in named]:
        name = other_agents[0].name
        raise UsageError(
            f"{place.shown} already has the hooks of agent {name}",
            hint="give each agent its own folder (`dir:` in rekindle.yaml), or first run `rekindle "
            f"hooks uninstall --for {place.level} --agent {name}`",
        )


def is_installed(place: HookLocation) -> bool:
    """Return whether the file contains Rekindle's hooks, or a record exists for it."""
    return (
        bool(settings_file.find_installed(place, settings_file.read_settings(place)[0]))
        or place.record.exists()
    )


def uninstall_hooks(place: HookLocation) -> HookChanges:
    """Remove the hooks and keep everything else in the file, including later changes."""
    if not is_installed(place):
        return HookChanges(settings_changed=False)
    with settings_file.hold_lock(place):
        text, current = settings_file.read_settings(place)
        installed = settings_file.find_installed(place, text)
        record = _read_record(place)
        after = _restore_text(place, text, current, record) if installed else text
        was_ours = bool(installed) and record is not None and not record.existed
        removed = was_ours and hook_settings.is_empty_file(
            after, place.shown, comments=place.files.comments
        )
        if removed:
            settings_file.remove_settings(
                place, made_folder=record is not None and record.made_folder
            )
        elif after != text:
            settings_file.write_settings(place, after.encode())
        with translate_os_errors(place.home):
            durable_files.remove_file(place.record)
    return HookChanges(
        settings_changed=removed or after != text,
        settings_removed=removed,
    )


def _build_hooks(place: HookLocation, folder: Path | None) -> HookEntries:
    # Do not resolve links: Python finds its virtual environment by the link's path.
    python = Path(sys.executable).absolute() if sys.executable else None
    words = [str(python), str(hook_program.find_hook_path()), str(folder or "")]
    if python is None or not python.is_file():
        raise UsageError(
            "this Python does not know its own path", hint="run rekindle with its full path"
        )
    try:
        "".join(words).encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"a path is not valid Unicode, which JSON requires: {to_one_line(' '.join(words))}",
            hint="rename the folder",
        ) from error
    program = [str(python), "-I", "-S", str(hook_program.find_hook_path())]
    hooks = place.harness.hooks(program, supervised=False, folder=str(folder or ""))
    if place.level == "user":
        gate = [*program[:-1], str(hook_program.find_hook_path("gate"))]
        return {**hooks, **place.harness.gate_hooks(gate)}
    return hooks


def _make_status_line() -> str:
    """Return the command of the CLI's status line."""
    return f"{shlex.quote(sys.executable)} -I -m rekindle statusline"


def _are_installed(installed: list[InstalledHook], hooks: HookEntries) -> bool:
    """Return whether exactly these hooks are installed, ignoring other tools' hooks."""
    present = [(hook.event, hook.matcher, hook.hook) for hook in installed]
    expected = hook_settings.list_wanted(hooks)
    return len(present) == len(expected) and all(hook in present for hook in expected)


def _restore_text(
    place: HookLocation, text: str, current: bytes | None, record: _InstallRecord | None
) -> str:
    """Return the settings without Rekindle's hooks, from the record if it can be trusted."""
    before = record.before if record else ""
    comments = place.files.comments
    without = hook_settings.remove_hooks(text, place.shown, before, comments=comments)
    is_as_written = record and current and json_codec.hash_bytes(current) == record.written
    return before if is_as_written and _says_same(place, before, without) else without


def _says_same(place: HookLocation, text: str, other: str) -> bool:
    """Return whether two settings files differ only in formatting."""
    values = []
    for each in (text, other):
        bare = json_edit.blank_comments(each) if place.files.comments else each
        try:
            values.append(json.loads(bare.removeprefix("\ufeff").strip() or "{}"))
        except (ValueError, RecursionError):
            return False
    return bool(values[0] == values[1])


def _read_record(place: HookLocation) -> _InstallRecord | None:
    return _decode_record(durable_files.read_bytes(place.record), place.record.name)


def _decode_record(data: bytes | None, name: str) -> _InstallRecord | None:
    if data is None:
        return None
    try:
        json_codec.decode_object(data, name, schema=_SCHEMA)
        return msgspec.json.decode(data, type=_InstallRecord)
    except (DocumentError, msgspec.MsgspecError):
        return None  # Rekindle's hooks can be recognized without a record
