"""Find services by name: built-in ones first, then those from installed plugins.

A plugin provides a service through an entry point in the group `rekindle.phones`. Its value is a
function that takes the service's settings and returns a `ports.PhoneChannel`.
"""

from collections.abc import Callable, Mapping
from typing import cast

from rekindle.errors import NotFoundError, PluginError
from rekindle.phone.ntfy import NtfyChannel
from rekindle.phone.telegram import TelegramChannel
from rekindle.ports import PhoneChannel

GROUP = "rekindle.phones"
MakeChannel = Callable[[Mapping[str, str]], PhoneChannel]
BUILT_IN: dict[str, MakeChannel] = {"telegram": TelegramChannel, "ntfy": NtfyChannel}


def open_channel(name: str, settings: Mapping[str, str]) -> PhoneChannel:
    """Return a service.

    Raises:
        NotFoundError: There is no such service.
        PluginError: The plugin cannot be loaded.
    """
    if name in BUILT_IN:
        return BUILT_IN[name](settings)
    from importlib.metadata import entry_points  # noqa: PLC0415 - reading package metadata is slow

    for entry_point in entry_points(group=GROUP):
        if entry_point.name == name:
            try:
                return cast(MakeChannel, entry_point.load())(settings)
            except Exception as error:
                raise PluginError(name, f"cannot be loaded: {error}") from error
    known = ", ".join(BUILT_IN)
    raise NotFoundError(
        f"there is no phone service {name!r}", hint=f"use one of {known}, or install its plugin"
    )
