"""Systemd and launchd units that start the daemon or write briefs."""

import plistlib
from collections.abc import Mapping
from typing import Any

import msgspec

DAEMON_GROUP = "supervisors"
"""Control group for the daemon and the supervisors, below the unit's own group."""
_ESCAPED = {"\\": "\\\\", '"': '\\"', "%": "%%", "\n": "\\n", "$": "$$"}
_UNSAFE = frozenset("\"'\\$")


class ServiceUnit(msgspec.Struct, frozen=True):
    name: str
    argv: tuple[str, ...]
    folder: str
    environment: Mapping[str, str]
    every: bool = False
    """Whether the unit serves all trusted projects. If so, `folder` is not a project."""


def render_systemd(service: ServiceUnit) -> str:
    """Return a user unit for the daemon. Agents keep running when it stops or is upgraded."""
    return (
        "[Unit]\n"
        f"Description=Rekindle keeps the agents of {_render_command(service)} running\n"
        "After=network-online.target\n\n"
        f"{_render_start(service)}"
        "Restart=always\n"
        "RestartSec=2\n"
        "KillMode=process\n"
        # Each launch gets its own control group, so that Rekindle can find leftover processes.
        "Delegate=yes\n"
        # The kernel only limits groups whose parent has no processes of its own. Before version
        # 254, systemd ignores this key.
        f"DelegateSubgroup={DAEMON_GROUP}\n\n"
        "[Install]\n"
        "WantedBy=default.target\n"
    )


def render_systemd_once(service: ServiceUnit) -> str:
    """Return the unit that writes briefs. Its timer starts it."""
    about = f"Description=Rekindle writes the briefs of {_escape_path(service.folder)}\n\n"
    return f"[Unit]\n{about}{_render_start(service)}Type=oneshot\n"


def render_systemd_timer(service: ServiceUnit, at: str, zone: str, every: str = "") -> str:
    """Return the timer that starts the brief unit at a time of day, or later if that was missed.

    `every` is an additional interval. Without a time of day, it is the only trigger.
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
    """Return a job that regularly checks for due briefs, because launchd has no time zones."""
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
        # The final slash keeps a space or backslash at the end of the folder's name.
        f"WorkingDirectory={_escape_path(service.folder.rstrip('/'))}/\n"
        f"{environment}"
    )


def _make_startable(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Wrap a program in a shell if systemd does not support the quotes or `$` in its path."""
    if not _UNSAFE & set(argv[0]):
        return argv
    return ("/bin/sh", "-c", 'exec "$0" "$@"', *argv)


def _quote_word(word: str, *, command: bool = True) -> str:
    """Quote a word so that systemd does not expand specifiers or variables in it."""
    escapes = (
        _ESCAPED
        if command
        else {character: to for character, to in _ESCAPED.items() if character != "$"}
    )
    return '"' + "".join(escapes.get(character, character) for character in word) + '"'


def _escape_path(path: str) -> str:
    """Escape a path in a setting whose value is the rest of the line."""
    return path.replace("%", "%%")
