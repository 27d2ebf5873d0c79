"""Copies of a CLI's settings from before the plugin was installed.

A CLI that removes a plugin may leave empty keys or another format. If nothing else has changed a
file since, the copy restores its exact bytes.
"""

from collections.abc import Mapping

import msgspec

from rekindle.formats import json_codec

SCHEMA = 1

Contents = Mapping[str, bytes | None]
"""Content of each settings file; None for a missing file."""


class FileCopy(msgspec.Struct, frozen=True):
    before: bytes | None
    """Content before the installation; None if the file was missing."""
    installed: str
    """Hash of the content after the installation; empty if the file was missing."""


class SettingsCopy(msgspec.Struct, frozen=True):
    files: dict[str, FileCopy]
    v: int = SCHEMA


def make_copy(before: Contents, installed: Contents) -> SettingsCopy:
    return SettingsCopy(
        {name: FileCopy(data, _hash_content(installed[name])) for name, data in before.items()}
    )


def find_restorable(
    copy: SettingsCopy, last: Contents, removed: Contents
) -> dict[str, bytes | None]:
    """Return the files to restore, with their contents.

    `last` is the content before the plugin was removed, and `removed` the content after.
    """
    return {
        name: file.before
        for name, file in copy.files.items()
        if name in last
        and _hash_content(last[name]) == file.installed
        and removed[name] != file.before
    }


def _hash_content(data: bytes | None) -> str:
    return "" if data is None else json_codec.hash_bytes(data)
