"""Our hooks in a CLI's settings files: installed, examined, taken out again.

A record of each settings file has the text from before, and the hash of what we wrote. As long as
the file has that hash, uninstalling puts the old bytes back; if it was changed since, only
our own entries go. A project's record is in its `.rekindle`, where an agent can write: its text is
used only if it says the same as the file does without our entries.
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

from rekindle.documents import hooksettings, jsonedit, jsontext
from rekindle.documents.hooksettings import Hooks, Installation, Installed
from rekindle.documents.identity import one_line
from rekindle.errors import (
    DocumentError,
    RekindleError,
    StoreError,
    UnsafePathError,
    UsageError,
    storing,
)
from rekindle.flows.hook_places import Level, Place, levels_of, place_of
from rekindle.policy.settings import LOCK_WAIT_SECONDS
from rekindle.stores.files import layout
from rekindle.system import disk, hook_program

State = Literal["installed", "not installed", "partly", "outdated", "muted", "unreadable"]

_SCHEMA = 1
_SHARED_MODE = 0o644
_SHARED_FOLDER_MODE = 0o755


class _Record(msgspec.Struct, frozen=True):
    before: str
    existed: bool
    written: str
    """The hash of what we left in the file."""
    made_folder: bool
    folder: str = ""
    """The agent's folder below the project's; empty: the project's own, or elsewhere."""
    v: int = _SCHEMA


class Done(msgspec.Struct, frozen=True):
    settings_changed: bool
    program_changed: bool
    settings_made: bool = False
    settings_removed: bool = False


class Report(msgspec.Struct, frozen=True):
    place: Place
    state: State
    problems: tuple[str, ...] = ()
    mend: str = ""

    @property
    def is_broken(self) -> bool:
        return self.state in {"partly", "outdated", "muted", "unreadable"}


def install(place: Place, folder: Path | None, others: Collection[Path] = ()) -> Done:
    """Put our hooks in, in the place of those that are there already.

    Raises:
        UsageError: They report for one of `others`, the folders of the project's other agents.
    """
    hooks = _hooks(place, folder)
    with _alone(place):
        text, current = _read(place)
        found = _installed(place, text)
        _refuse_other(place, found, others)
        earlier = _read_record(place) if found else None
        before = _text_before(place, text, current, earlier)
        after = hooksettings.with_hooks(
            before, hooks, place.shown, comments=place.files.comments
        ).encode()
        program_changed = hook_program.provide()
        if _stand(found, hooks) and earlier:
            return Done(settings_changed=False, program_changed=program_changed)
        made_folder = _make_settings_folder(place)
        record = _Record(
            before=before,
            existed=earlier.existed if earlier else current is not None,
            written=jsontext.fingerprint(after),
            made_folder=earlier.made_folder if earlier else made_folder,
            folder=_below(place),
        )
        disk.replace(place.record, jsontext.encode(record, place.record.name))
        if after != current:
            _write(place, after)
        return Done(
            settings_changed=after != current,
            program_changed=program_changed,
            settings_made=current is None,
        )


def recorded_folders(project: Path) -> list[Path]:
    """Return the folders below a project's that hooks were installed in, whatever `dir:` says now.

    An agent can write the records: nothing outside the project is believed.
    """
    found = []
    with storing(project / layout.FOLDER):
        records = sorted((project / layout.FOLDER).glob("hooks-*.json"))
    for path in records:
        with suppress(StoreError), storing(path):
            record = _decode_record(disk.read(path), path.name)
            at = (project / record.folder).resolve() if record and record.folder else None
            if at and at.is_dir() and at.is_relative_to(project.resolve()):
                found.append(at)
    return found


def _below(place: Place) -> str:
    """Return the folder of the settings as a path below the project's, if it is there."""
    project = place.home.parent.resolve()
    folder = place.folder.resolve() if place.folder else project
    if folder == project or not folder.is_relative_to(project):
        return ""
    return os.fsencode(folder.relative_to(project)).decode("utf-8", "replace")


def _refuse_other(place: Place, found: list[Installed], others: Collection[Path]) -> None:
    named = {one.command.folder for one in found}
    if taken := [other for other in others if str(other) in named]:
        name = taken[0].name
        raise UsageError(
            f"{place.shown} has the hooks of agent {name}",
            hint="give each agent a folder of its own (`dir:` in rekindle.yaml), or first"
            f" `rekindle hooks uninstall --for {place.level} --agent {name}`",
        )


def is_installed(place: Place) -> bool:
    """Return whether hooks of ours are in the file, or a record of it is kept."""
    return bool(_installed(place, _read(place)[0])) or place.record.exists()


def uninstall(place: Place) -> Done:
    """Take our hooks out: the file is as it was, or as others have changed it since."""
    if not is_installed(place):
        return Done(settings_changed=False, program_changed=False)
    with _alone(place):
        text, current = _read(place)
        found = _installed(place, text)
        record = _read_record(place)
        after = _text_before(place, text, current, record) if found else text
        was_ours = bool(found) and record is not None and not record.existed
        removed = was_ours and hooksettings.is_empty(
            after, place.shown, comments=place.files.comments
        )
        if removed:
            _remove_settings(place, made_folder=record is not None and record.made_folder)
        elif after != text:
            _write(place, after.encode())
        program_changed = _forget(place)
    return Done(
        settings_changed=removed or after != text,
        program_changed=program_changed,
        settings_removed=removed,
    )


def examine(place: Place) -> Report:
    """Whether our hooks stand there, and can run."""
    try:
        text, _ = _read(place)
        found = _installed(place, text)
    except RekindleError as error:
        return Report(place, "unreadable", (str(error),), error.hint)
    if not found:
        return Report(place, "not installed")
    how = ["--harness", place.harness.NAME, "--for", place.level]
    mend = shlex.join(["rekindle", "hooks", "install", *how, *_agent(found)])
    problems = tuple(dict.fromkeys(_problems(found)))
    wanted = hooksettings.wanted(place.harness.hooks([], supervised=False))
    there = [(one.event, one.matcher) for one in found]
    missing = [event for event, matcher, _ in wanted if (event, matcher) not in there]
    if missing:
        problems = (f"no hook for {', '.join(dict.fromkeys(missing))}", *problems)
    elif len(there) > len(set(there)):
        problems = ("some hooks stand there twice", *problems)
    if problems:
        return Report(place, "partly" if missing else "outdated", problems, mend)
    if muted := place.harness.muted(_installation(place, text)):
        return Report(place, "muted", (muted.why,), muted.mend)
    return Report(place, "installed")


def _installation(place: Place, text: str) -> Installation:
    """What the CLI itself looks at before it runs a hook."""
    deciding = {}
    for name in place.files.deciding:
        with suppress(StoreError):
            data = disk.read(Path(os.path.realpath(place.own / name)))
            deciding[name] = (data or b"").decode("utf-8", "replace")
    if place.files.comments:  # what they say is not for the one who reads the settings
        text = jsonedit.plain(text)
        deciding = {name: jsonedit.plain(held) for name, held in deciding.items()}
    folder = os.path.realpath(place.folder) if place.folder else ""
    return Installation(str(place.target), text, folder, deciding)


def _hooks(place: Place, folder: Path | None) -> Hooks:
    # Not resolved: the link in a virtual environment is what makes it that environment.
    python = Path(sys.executable).absolute() if sys.executable else None
    words = [str(python), str(hook_program.path()), str(folder or "")]
    if python is None or not python.is_file():
        raise UsageError("this Python does not know its own path", hint="run rekindle by its path")
    try:
        "".join(words).encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"a path is no text, and JSON holds nothing else: {one_line(' '.join(words))}",
            hint="rename the folder",
        ) from error
    program = [str(python), "-I", "-S", str(hook_program.path())]
    return place.harness.hooks(program, supervised=False, folder=str(folder or ""))


def _stand(found: list[Installed], hooks: Hooks) -> bool:
    """Whether exactly these hooks are there, wherever others stand between them."""
    there = [(one.event, one.matcher, one.hook) for one in found]
    wanted = hooksettings.wanted(hooks)
    return len(there) == len(wanted) and all(one in there for one in wanted)


def _text_before(place: Place, text: str, current: bytes | None, record: _Record | None) -> str:
    """Return the file's text without our hooks: the text from before, if that is still known."""
    before = record.before if record else ""
    comments = place.files.comments
    without = hooksettings.without_hooks(text, place.shown, before, comments=comments)
    is_as_written = record and current and jsontext.fingerprint(current) == record.written
    return before if is_as_written and _says_same(place, before, without) else without


def _says_same(place: Place, text: str, other: str) -> bool:
    """Return whether two texts of settings differ in their layout alone."""
    values = []
    for each in (text, other):
        bare = jsonedit.plain(each) if place.files.comments else each
        try:
            values.append(json.loads(bare.removeprefix("\ufeff").strip() or "{}"))
        except (ValueError, RecursionError):
            return False
    return bool(values[0] == values[1])


def _installed(place: Place, text: str) -> list[Installed]:
    return hooksettings.installed(text, place.shown, comments=place.files.comments)


def _problems(found: list[Installed]) -> Iterator[str]:
    for one in found:
        command = one.command
        python, program = Path(command.python), Path(command.program)
        if not os.access(python, os.X_OK):
            yield f"{one_line(command.python)} is gone"
        is_this_python = python == Path(sys.executable).absolute()
        if wrong := hook_program.problem(program, this_python=is_this_python):
            yield f"{one_line(command.program)} {wrong}"
        if command.folder and not Path(command.folder).is_dir():
            yield f"the agent's folder {one_line(command.folder)} is gone"


def _agent(found: list[Installed]) -> list[str]:
    folder = found[0].command.folder
    return ["--agent", Path(folder).name] if folder and Path(folder).is_dir() else []


@contextmanager
def _alone(place: Place) -> Iterator[None]:
    """One at a time: two that merge at once would each undo the other.

    Raises:
        UnsafePathError: The settings of a project lead to a file outside of it.
    """
    target, _ = _find_target(place)
    with storing(place.home):
        place.home.parent.mkdir(parents=True, exist_ok=True)
    disk.make_folder(place.home)
    with disk.locked(place.home / "lock", LOCK_WAIT_SECONDS * 10) as lock:
        if lock is None:
            raise UsageError("somebody else is changing the hooks", hint="repeat the command")
        disk.sweep_temporary(place.home, of=f"-{place.record.name}")
        if target.parent.is_dir():
            disk.sweep_temporary(target.parent, of=f"-{target.name}")
        yield


def _find_target(place: Place) -> tuple[Path, Path | None]:
    """Return the file to write, and the folder below which no link may lead to it."""
    target = place.target
    root = place.root_of(target)
    if root is None and place.level != "user":
        raise UnsafePathError(
            place.shown,
            f"leads to {one_line(str(target))}, outside the project",
            hint="replace the link by a file, or use --for user",
        )
    return target, root


def _read(place: Place) -> tuple[str, bytes | None]:
    data = disk.read(place.target)
    try:
        return (data or b"").decode(), data
    except UnicodeDecodeError as error:
        raise DocumentError(
            place.shown, f"is not UTF-8 text (byte {error.start})", hint="save it as UTF-8"
        ) from error


def _write(place: Place, data: bytes) -> None:
    target, root = _find_target(place)
    new = _SHARED_MODE if place.level == "project" else disk.FILE_MODE
    with storing(target):
        mode = target.stat().st_mode & 0o777 if target.exists() else new
        if target.exists() and not os.access(target, os.W_OK):
            # Its folder would let us replace it; whoever made it read-only did not mean that.
            raise StoreError(
                str(target), "is read-only", hint=f"chmod u+w {shlex.quote(str(target))}"
            )
    disk.replace(target, data, mode=mode, root=root)


def _make_settings_folder(place: Place) -> bool:
    """Make the folder of the settings; says whether it was not there."""
    folder = place.settings.parent
    with storing(folder):
        if folder.is_dir():
            return False
        if place.folder and not place.folder.is_dir():
            shown = one_line(str(place.folder))
            raise UsageError(f"there is no folder {shown}", hint="make it, or correct `dir:`")
        mode = disk.FOLDER_MODE if place.level == "user" else _SHARED_FOLDER_MODE
        folder.mkdir(mode, parents=True)
    disk.sync_folder(folder.parent)
    return True


def _remove_settings(place: Place, *, made_folder: bool) -> None:
    target, root = _find_target(place)
    disk.remove(target, root=root)
    disk.sync_folder(target.parent)
    if made_folder:
        with suppress(OSError):  # somebody else's files are in it by now
            place.settings.parent.rmdir()


def _read_record(place: Place) -> _Record | None:
    return _decode_record(disk.read(place.record), place.record.name)


def _decode_record(data: bytes | None, name: str) -> _Record | None:
    if data is None:
        return None
    try:
        jsontext.decode_object(data, name, schema=_SCHEMA)
        return msgspec.json.decode(data, type=_Record)
    except (DocumentError, msgspec.MsgspecError):
        return None  # without it our entries are still found, one by one


def _beside(place: Place) -> list[Place]:
    """The other settings files that the same folder of ours serves."""
    if place.level == "user":
        return []
    levels: tuple[Level, ...] = ("local", "project")
    return [
        place_of(place.harness, level, place.home.parent, {}, place.folder)
        for level in levels
        if level != place.level and level in levels_of(place.harness)
    ]


def _forget(place: Place) -> bool:
    """Remove the record, and an earlier version's program if no other settings need it."""
    with storing(place.home):
        disk.remove(place.record)
        if any(place.home.glob("hooks-*.json")) or not place.old_program.exists():
            return False
        if any(_installed(one, _read(one)[0]) for one in _beside(place)):
            return False  # its record is lost, and it needs the program all the same
        disk.remove(place.old_program)
    return True
