"""Units with which a host starts our daemon, or has briefs written: systemd's and launchd's."""

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
    """It is for all trusted projects; `folder` is none of them."""


def render_systemd(service: ServiceUnit) -> str:
    """A unit of the user's own. Agents live on when the daemon is stopped or upgraded."""
    return (
        "[Unit]\n"
        f"Description=Rekindle keeps the agents of {_render_command(service)} running\n"
        "After=network-online.target\n\n"
        f"{_render_start(service)}"
        "Restart=always\n"
        "RestartSec=2\n"
        "KillMode=process\n"
        # Each launch gets a control group of its own: what it leaves behind is found there.
        "Delegate=yes\n\n"
        "[Install]\n"
        "WantedBy=default.target\n"
    )


def render_systemd_once(service: ServiceUnit) -> str:
    """What a timer starts."""
    about = f"Description=Rekindle writes the briefs of {_escape_path(service.folder)}\n\n"
    return f"[Unit]\n{about}{_render_start(service)}Type=oneshot\n"


def render_systemd_timer(service: ServiceUnit, at: str, zone: str, every: str = "") -> str:
    """The timer of such a unit: at a time of day; what was missed is made up for once.

    `every` is how often it looks beside that; without a time, all there is.
    """
    when = f"OnCalendar=*-*-* {at}:00{f' {zone}' if zone else ''}\n" if at else ""
    return (
        f"[Unit]\nDescription=When Rekindle writes the briefs of {_escape_path(service.folder)}\n\n"
        f"[Timer]\n{when}{f'OnCalendar={every}' + chr(10) if every else ''}"
        "Persistent=true\n\n[Install]\nWantedBy=timers.target\n"
    )


def render_launchd(service: ServiceUnit) -> bytes:
    always = {"KeepAlive": True, "ThrottleInterval": 2, "AbandonProcessGroup": True}
    return plistlib.dumps({**_make_label(service), **always})


def render_launchd_timer(service: ServiceUnit, seconds: int) -> bytes:
    """Looks again and again whether one is due: launchd knows no zone but the machine's."""
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
        # With a slash: else what a name ends with, a space or a backslash, would not be its own.
        f"WorkingDirectory={_escape_path(service.folder.rstrip('/'))}/\n"
        f"{environment}"
    )


def _make_startable(argv: tuple[str, ...]) -> tuple[str, ...]:
    """As it is, where systemd can: a program whose path has quotes or a `$` it does not start."""
    if not _UNSAFE & set(argv[0]):
        return argv
    return ("/bin/sh", "-c", 'exec "$0" "$@"', *argv)


def _quote_word(word: str, *, command: bool = True) -> str:
    """A word as systemd reads it: quoted, specifiers and variables taken literally."""
    signs = _ESCAPED if command else {sign: to for sign, to in _ESCAPED.items() if sign != "$"}
    return '"' + "".join(signs.get(sign, sign) for sign in word) + '"'


def _escape_path(path: str) -> str:
    """A path where systemd takes the whole rest of the line."""
    return path.replace("%", "%%")
