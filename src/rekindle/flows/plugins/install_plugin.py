"""Install, check and remove the plugin in one agent CLI."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from rekindle import __version__
from rekindle.documents.hooks.hook_settings import HookFiles
from rekindle.documents.plugins import plugin_list, settings_copy
from rekindle.documents.plugins.plugin_clis import NAME, PluginCli
from rekindle.documents.plugins.plugin_list import InstalledPlugin
from rekindle.documents.plugins.settings_copy import SettingsCopy
from rekindle.errors import AgentError, RekindleError, translate_os_errors
from rekindle.flows.plugins import codex_trust
from rekindle.formats import json_codec
from rekindle.system.files import durable_files
from rekindle.system.processes.cli_program import CliProgram

PLUGIN_FILES = Path(__file__).parents[2] / "plugin_files"

PluginState = Literal["installed", "not installed", "outdated", "disabled", "untrusted"]


class PluginReport(msgspec.Struct, frozen=True):
    state: PluginState
    version: str = ""
    problem: str = ""
    """What is wrong, as part of a sentence; empty if nothing is."""


class PluginPlace(msgspec.Struct, frozen=True):
    """An agent CLI on this host, and the folder with the user's settings for it."""

    cli: PluginCli
    program: CliProgram
    own: Path
    """The CLI's own folder."""
    record: Path
    """Copy of the settings from before the installation."""

    @property
    def folder(self) -> Path:
        """Folder from which the CLI installs the plugin."""
        return (PLUGIN_FILES / self.cli.folder).resolve()

    @property
    def has_hook_trust(self) -> bool:
        """Whether the CLI runs a plugin's hooks only if the user trusts them."""
        return self.cli.harness == "codex"

    def list_hook_commands(self) -> list[str]:
        return plugin_list.list_commands((PLUGIN_FILES / self.cli.hooks).read_text("utf-8"))


def locate_plugin(
    cli: PluginCli, files: HookFiles, environment: Mapping[str, str], records: Path
) -> PluginPlace:
    """Return the place of a CLI whose settings files are described by `files`."""
    own = Path(files.find_own_folder(environment, str(Path.home()))).absolute()
    mark = json_codec.hash_bytes(os.fsencode(own))[:12]
    program = CliProgram(files.program, cli.environment)
    return PluginPlace(cli, program, own, records / f"plugin-{files.program}-{mark}.json")


def install_plugin(place: PluginPlace) -> bool:
    """Install the plugin, or replace an older one. The user has accepted the hooks' commands.

    Return whether the CLI runs the hooks.

    Raises:
        AgentError: The CLI did not install it.
    """
    remove_plugin(place)  # also the rest of an installation that was interrupted
    before = _read_settings(place)
    _write_record(place, settings_copy.make_copy(before, before))
    try:
        _run_install(place)
    except AgentError:
        with suppress(RekindleError):  # `remove` can repeat it, because the record is still there
            _write_record(place, settings_copy.make_copy(before, _read_settings(place)))
            remove_plugin(place)
        raise
    is_trusted = True
    if place.has_hook_trust:
        with suppress(AgentError):  # an older Codex has other methods
            is_trusted = False
            is_trusted = codex_trust.trust_hooks(place.program, place.list_hook_commands())
    _write_record(place, settings_copy.make_copy(before, _read_settings(place)))
    return is_trusted


def _run_install(place: PluginPlace) -> None:
    for words in place.cli.make_install(str(place.folder)):
        place.program.run(words)
    if _find_installed(place) is None:
        raise AgentError(
            f"{place.cli.title} did not install the plugin",
            hint=f"run `{_render_command(place)}` to see why",
        )


def remove_plugin(place: PluginPlace) -> bool:
    """Remove the plugin and its catalogue. Return whether the plugin was installed.

    Settings files that only the installation has changed get their previous bytes back.
    """
    if _find_installed(place) is None and not durable_files.path_exists(place.record):
        return False
    last = _read_settings(place)
    failed: RekindleError | None = None
    if place.has_hook_trust:
        with suppress(AgentError):
            codex_trust.forget_trust(place.program, place.own / place.cli.settings[0])
    for words in place.cli.remove:
        try:
            place.program.run(words)
        except AgentError as error:
            failed = failed or error
    if failed is not None and (plugin := _find_installed(place)) is not None:
        if plugin.version:
            raise failed
        _remove_dead_link(place)
    if record := _read_record(place):
        restored = settings_copy.find_restorable(record, last, _read_settings(place))
        for name, data in restored.items():
            _restore_file(place.own / name, data)
    durable_files.remove_file(place.record)
    return True


def examine_plugin(place: PluginPlace) -> PluginReport:
    """Report whether the plugin is installed and matches this package."""
    plugin = _find_installed(place)
    if plugin is None:
        return PluginReport("not installed")
    if not plugin.is_enabled:
        return PluginReport("disabled", plugin.version, f"is disabled in {place.cli.title}")
    if not plugin.version:
        return PluginReport("outdated", "", "is broken, because its files are gone")
    if plugin.version != __version__:
        problem = f"has version {plugin.version}, but Rekindle has {__version__}"
        return PluginReport("outdated", plugin.version, problem)
    if place.has_hook_trust and not all(
        hook.is_trusted for hook in codex_trust.list_hooks(place.program)
    ):
        problem = f"has hooks that {place.cli.title} does not trust, so it does not run them"
        return PluginReport("untrusted", plugin.version, problem)
    return PluginReport("installed", plugin.version)


def _find_installed(place: PluginPlace) -> InstalledPlugin | None:
    if place.cli.listing:
        try:
            return plugin_list.find_plugin(place.program.run(place.cli.listing))
        except AgentError as error:
            if NAME in str(error):  # Codex cannot list a plugin whose catalogue is gone
                return InstalledPlugin("")
            raise
    metadata = place.own / place.cli.metadata
    text = _read_text(metadata)
    if text is None:
        return None
    folder = Path(plugin_list.read_source(text) or metadata.parent)
    return InstalledPlugin(plugin_list.read_version(_read_text(folder / place.cli.manifest) or ""))


def _remove_dead_link(place: PluginPlace) -> None:
    """Remove the rest of an extension whose files are gone, which Gemini CLI cannot remove."""
    metadata = place.own / place.cli.metadata
    if place.cli.metadata and plugin_list.read_source(_read_text(metadata) or ""):
        durable_files.remove_file(metadata)
        with suppress(OSError):
            metadata.parent.rmdir()


def _read_text(path: Path) -> str | None:
    data = durable_files.read_bytes(path)
    return None if data is None else data.decode("utf-8", "replace")


def _render_command(place: PluginPlace) -> str:
    return " ".join((place.program.name, *place.cli.make_install(str(place.folder))[0]))


def _read_settings(place: PluginPlace) -> dict[str, bytes | None]:
    return {
        name: durable_files.read_bytes(Path(os.path.realpath(place.own / name)))
        for name in place.cli.settings
    }


def _restore_file(path: Path, data: bytes | None) -> None:
    """Write the previous content, through a link if the user has one, or remove the file."""
    target = Path(os.path.realpath(path))
    if data is None:
        durable_files.remove_file(target)
        return
    with translate_os_errors(target):
        mode = target.stat().st_mode & 0o777 if target.exists() else durable_files.FILE_MODE
    durable_files.replace_file(target, data, mode=mode)


def _write_record(place: PluginPlace, copy: SettingsCopy) -> None:
    with translate_os_errors(place.record):
        place.record.parent.mkdir(mode=durable_files.FOLDER_MODE, parents=True, exist_ok=True)
    durable_files.replace_file(place.record, json_codec.encode(copy, place.record.name))


def _read_record(place: PluginPlace) -> SettingsCopy | None:
    data = durable_files.read_bytes(place.record)
    try:
        return None if data is None else msgspec.json.decode(data, type=SettingsCopy)
    except msgspec.MsgspecError:
        return None  # the CLI's own removal is enough
