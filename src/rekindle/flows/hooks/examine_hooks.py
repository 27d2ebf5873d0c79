"""Check that Rekindle's hooks are installed in a settings file and can run."""

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from rekindle.documents.hooks import hook_settings
from rekindle.documents.hooks.hook_settings import HookInstallation, InstalledHook
from rekindle.errors import RekindleError, StoreError
from rekindle.flows.hooks import settings_file
from rekindle.flows.hooks.hook_locations import HookLocation
from rekindle.formats import json_edit
from rekindle.formats.identifiers import to_one_line
from rekindle.system.files import durable_files, hook_program

HookState = Literal["installed", "not installed", "partly", "outdated", "disabled", "unreadable"]


class HookReport(msgspec.Struct, frozen=True):
    place: HookLocation
    state: HookState
    problems: tuple[str, ...] = ()
    fix: str = ""

    @property
    def is_broken(self) -> bool:
        return self.state in {"partly", "outdated", "disabled", "unreadable"}


def examine_hooks(place: HookLocation) -> HookReport:
    """Report whether the hooks are installed and can run."""
    try:
        text, _ = settings_file.read_settings(place)
        installed = settings_file.find_installed(place, text)
    except RekindleError as error:
        return HookReport(place, "unreadable", (str(error),), error.hint)
    if not installed:
        return HookReport(place, "not installed")
    how = ["--harness", place.harness.NAME, "--for", place.level]
    repair_command = shlex.join(["rekindle", "hooks", "install", *how, *_find_agents(installed)])
    problems = tuple(dict.fromkeys(_find_problems(installed)))
    gate = place.harness.gate_hooks([]) if place.level == "user" else {}
    entries = hook_settings.list_wanted({**place.harness.hooks([], supervised=False), **gate})
    present = [(hook.event, hook.matcher) for hook in installed]
    missing = [event for event, matcher, _ in entries if (event, matcher) not in present]
    if missing:
        problems = (f"there is no hook for {', '.join(dict.fromkeys(missing))}", *problems)
    elif len(present) > len(set(present)):
        problems = ("some hooks are installed twice", *problems)
    if problems:
        return HookReport(place, "partly" if missing else "outdated", problems, repair_command)
    if obstacle := place.harness.find_hook_obstacle(_make_installation(place, text)):
        return HookReport(place, "disabled", (obstacle.why,), obstacle.fix)
    return HookReport(place, "installed")


def read_installation(place: HookLocation) -> HookInstallation:
    """Return the installed hooks and the files that decide whether they run."""
    text, _ = settings_file.read_settings(place)
    return _make_installation(place, text)


def _make_installation(place: HookLocation, text: str) -> HookInstallation:
    """Return the installed files that the CLI checks before it runs a hook."""
    deciding = {}
    for name in place.files.deciding:
        with suppress(StoreError):
            data = durable_files.read_bytes(Path(os.path.realpath(place.own / name)))
            deciding[name] = (data or b"").decode("utf-8", "replace")
    if place.files.comments:  # skip settings that are commented out
        text = json_edit.blank_comments(text)
        deciding = {name: json_edit.blank_comments(content) for name, content in deciding.items()}
    folder = os.path.realpath(place.folder) if place.folder else ""
    return HookInstallation(str(place.target), text, folder, deciding)


def _find_problems(installed: list[InstalledHook]) -> Iterator[str]:
    for hook in installed:
        command = hook.command
        python, program = Path(command.python), Path(command.program)
        if not os.access(python, os.X_OK):
            yield f"{to_one_line(command.python)} is gone"
        is_this_python = python == Path(sys.executable).absolute()
        if wrong := hook_program.find_problem(program, this_python=is_this_python):
            yield f"{to_one_line(command.program)} {wrong}"
        if command.folder and not Path(command.folder).is_dir():
            yield f"the agent's folder {to_one_line(command.folder)} no longer exists"


def _find_agents(installed: list[InstalledHook]) -> list[str]:
    folder = installed[0].command.folder
    return ["--agent", Path(folder).name] if folder and Path(folder).is_dir() else []
