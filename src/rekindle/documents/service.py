"""Units with which a host starts our daemon: systemd's and launchd's."""

import plistlib
from collections.abc import Mapping

import msgspec

_ESCAPED = {"\\": "\\\\", '"': '\\"', "%": "%%", "\n": "\\n", "$": "$$"}


class Service(msgspec.Struct, frozen=True):
    name: str
    argv: tuple[str, ...]
    folder: str
    environment: Mapping[str, str]


def systemd(service: Service) -> str:
    """A unit of the user's own. Agents live on when the daemon is stopped or upgraded."""
    environment = "".join(
        f"Environment={_quoted(f'{name}={value}', command=False)}\n"
        for name, value in sorted(service.environment.items())
    )
    start = " ".join(_quoted(word) for word in service.argv)
    return (
        "[Unit]\n"
        f"Description=Rekindle keeps the agents of {_specified(service.folder)} running\n"
        "After=network-online.target\n\n"
        "[Service]\n"
        f"ExecStart={start}\n"
        f"WorkingDirectory={_specified(service.folder)}\n"
        f"{environment}"
        "Restart=always\n"
        "RestartSec=2\n"
        "KillMode=process\n\n"
        "[Install]\n"
        "WantedBy=default.target\n"
    )


def launchd(service: Service) -> bytes:
    return plistlib.dumps(
        {
            "Label": service.name,
            "ProgramArguments": list(service.argv),
            "WorkingDirectory": service.folder,
            "EnvironmentVariables": dict(sorted(service.environment.items())),
            "RunAtLoad": True,
            "KeepAlive": True,
            "ThrottleInterval": 2,
            "AbandonProcessGroup": True,
        }
    )


def _quoted(word: str, *, command: bool = True) -> str:
    """A word as systemd reads it: quoted, specifiers and variables taken literally."""
    signs = _ESCAPED if command else {sign: to for sign, to in _ESCAPED.items() if sign != "$"}
    return '"' + "".join(signs.get(sign, sign) for sign in word) + '"'


def _specified(path: str) -> str:
    """A path where systemd takes the whole rest of the line."""
    return path.replace("%", "%%")
