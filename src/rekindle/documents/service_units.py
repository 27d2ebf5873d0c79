"""Units of systemd and launchd that start the daemon or write briefs."""

import plistlib
from collections.abc import Mapping
from typing import Any

import msgspec

_ESCAPED = {"\\": "\\\\", '"': '\\"', "%": "%%", "\n": "\\n", "$": "$$"}
_UNSAFE = frozenset("\"'\\$")


class ServiceUnit(msgspec.Struct, frozen=True):
    name: str
    argv: tuple[str, ...]
    folder: str
    environment: Mapping[str, str]
    every: bool = False
    """Whether it is for all trusted projects; then `folder` is not one of them."""


def render_systemd(service: ServiceUnit) -> str:
    """Return a user unit of the daemon. Agents survive a stop or an upgrade of the daemon."""
    return (
        "[Unit]\n"
        f"Description=Rekindle keeps the agents of {_render_command(service)} running\n"
        "After=network-online.target\n\n"
        f"{_render_start(service)}"
        "Restart=always\n"
        "RestartSec=2\n"
        "KillMode=process\n"
        # Each launch gets a control group of its own, so that the processes it leaves can be found.
        "Delegate=yes\n\n"
        "[Install]\n"
        "WantedBy=default.target\n"
    )


def render_systemd_once(service: ServiceUnit) -> str:
    """Return the unit that a timer starts to write briefs."""
    about = f"Description=Rekindle writes the briefs of {_escape_path(service.folder)}\n\n"
    return f"[Unit]\n{about}{_render_start(service)}Type=oneshot\n"


def render_systemd_timer(service: ServiceUnit, at: str, zone: str, every: str = "") -> str:
    """Return the timer of that unit, for a time of day; a missed run is made up for once.

    `every` is an additional interval, or the only one if there is no time of day.
    """
    when = f"OnCalendar=*-*-* {at}:00{f' {zone}' if zone else ''}\n" if at else ""
    return (
        f"[Unit]\nDescription=Timer for the briefs of {_escape_path(service.folder)}\n\n"
        f"[Timer]\n{when}{f'OnCalendar={every}' + chr(10) if every else ''}"
        "Persistent=true\n\n[Install]\nWantedBy=timers.target\n"
    )


def render_launchd(service: ServiceUnit) -> bytes:
    always = {"KeepAlive": True, "ThrottleInterval": 2, "AbandonProcessGroup": True}
    return plistlib.dumps({**_make_label(service), **always})


def render_launchd_timer(service: ServiceUnit, seconds: int) -> bytes:
    """Return a job that checks regularly whether a brief is due: launchd knows no time zones."""
    return plistlib.dumps({**_make_label(service), "StartInterval": seconds})


def _render_command(service: ServiceUnit) -> str:
    return "all trusted projects" if service.every else _escape_path(service.folder)


def _make_label(service: ServiceUnit) -> dict[str, Any]:
    return {
        "Label": service.name,
        "ProgramArguments": list(service.argv),
        "WorkingDirectory": service.folder,
        "EnvironmentVariables": dict(sorted(service.environment.items())),
        "RunAtLoad": True,
    }


def _render_start(service: ServiceUnit) -> str:
    environment = "".join(
        f"Environment={_quote_word(f'{name}={value}', command=False)}\n"
        for name, value in sorted(service.environment.items())
    )
    start = " ".join(_quote_word(word) for word in _make_startable(service.argv))
    return (
        "[Service]\n"
        f"ExecStart={start}\n"
        # The final slash protects a space or backslash at the end of the name.
        f"WorkingDirectory={_escape_path(service.folder.rstrip('/'))}/\n"
        f"{environment}"
    )


def _make_startable(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Wrap a program in a shell if its path has quotes or a `$`, which systemd does not start."""
    if not _UNSAFE & set(argv[0]):
        return argv
    return ("/bin/sh", "-c", 'exec "$0" "$@"', *argv)


def _quote_word(word: str, *, command: bool = True) -> str:
    """Quote a word for systemd, so that it takes specifiers and variables literally."""
    escapes = (
        _ESCAPED
        if command
        else {character: to for character, to in _ESCAPED.items() if character != "$"}
    )
    return '"' + "".join(escapes.get(character, character) for character in word) + '"'


def _escape_path(path: str) -> str:
    """Escape a path for a setting in which systemd reads the rest of the line."""
    return path.replace("%", "%%")
