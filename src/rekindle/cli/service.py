"""`rekindle service`: have the daemon started with the host."""

import os
import sys
from pathlib import Path

import click

from rekindle.cli.options import open_project
from rekindle.documents import service as units
from rekindle.documents.identity import derived_id
from rekindle.errors import UsageError, storing
from rekindle.policy import environment
from rekindle.system import disk

_KINDS = {"linux": "systemd", "darwin": "launchd"}


@click.group()
def service() -> None:
    """Have the daemon started with the host."""


@service.command()
@click.option("--kind", type=click.Choice(["systemd", "launchd"]), help="Default: this host's.")
@click.option("--print", "only_print", is_flag=True, help="Write nothing, show the unit.")
def install(kind: str | None, only_print: bool) -> None:
    """Write a unit of your own that starts `rekindle daemon` for this project.

    Nothing is started and no rights are needed: the commands that it prints do that. Your PATH and
    the like are written into it; keys and tokens are not, see the guide.
    """
    kind = kind or _KINDS.get(sys.platform, "systemd")
    project, _store = open_project()
    found = _service(project.path)
    text = units.systemd(found).encode() if kind == "systemd" else units.launchd(found)
    if only_print:
        click.echo(text.decode(), nl=False)
        return
    path = _path(kind, found.name)
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    disk.replace(path, text)
    click.echo(f"✓ wrote {path}")
    if kind == "systemd":
        click.echo(f"Next: systemctl --user enable --now {found.name}.service")
        click.echo("      loginctl enable-linger   (so that it runs while you are logged out)")
    else:
        click.echo(f"Next: launchctl bootstrap gui/$(id -u) {path}")


@service.command()
@click.option("--kind", type=click.Choice(["systemd", "launchd"]), help="Default: this host's.")
def uninstall(kind: str | None) -> None:
    """Remove the unit; what runs goes on, until `rekindle down`."""
    kind = kind or _KINDS.get(sys.platform, "systemd")
    project, _store = open_project()
    name = _service(project.path).name
    path = _path(kind, name)
    if not path.exists():
        raise UsageError(f"{path} is not there", hint="`rekindle service install` writes it")
    with storing(path):
        path.unlink()
    click.echo(f"✓ removed {path}")
    if kind == "systemd":
        click.echo(f"Next: systemctl --user stop {name}.service; systemctl --user daemon-reload")
    else:
        click.echo(f"Next: launchctl bootout gui/$(id -u)/{name}")


def _service(folder: Path) -> units.Service:
    passed = environment.without_secrets(environment.allowed(os.environ, (), ()))
    kept = {name: value for name, value in passed.items() if value.isprintable()}
    if not str(folder).isprintable():
        raise UsageError(f"{str(folder)!r} cannot stand in a unit", hint="rename the folder")
    name = f"rekindle-{derived_id(str(folder))}"
    return units.Service(
        name, (sys.executable, "-P", "-m", "rekindle", "daemon"), str(folder), kept
    )


def _path(kind: str, name: str) -> Path:
    if kind == "systemd":
        own = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
        return Path(own) / "systemd/user" / f"{name}.service"
    return Path.home() / "Library/LaunchAgents" / f"{name}.plist"
