"""`rekindle service`: system services that start the daemon or write scheduled briefs."""

import os
import sys
from pathlib import Path

import click

from rekindle.cli.options import open_project, require_operator
from rekindle.cli.output import echo
from rekindle.cli.trust_prompt import (
    ensure_trust,
    trust_option,
)
from rekindle.documents import service_units as units
from rekindle.errors import (
    UsageError,
    translate_os_errors,
)
from rekindle.policy.briefs.brief_schedule import NEVER
from rekindle.policy.settings.runtime_settings import (
    BRIEF_RETRY_SECONDS,
    BriefSettings,
)
from rekindle.policy.setup import environment
from rekindle.stores.folders.agent_folder import RekindleFolder
from rekindle.system.files import (
    durable_files,
    user_folder,
)
from rekindle.wiring.access.operator_check import refuse_agent_of
from rekindle.wiring.access.trust_checks import list_trusted
from rekindle.wiring.starting.unit_files import (
    make_unit_name,
    make_unit_path,
)

_KINDS = {"linux": "systemd", "darwin": "launchd"}


@click.group()
def service() -> None:
    """Install or remove a service that starts the daemon at boot."""


_kind = click.option(
    "--kind",
    type=click.Choice(["systemd", "launchd"]),
    help="Service manager. Default: this host's service manager.",
)
_briefs = click.option(
    "--briefs", is_flag=True, help="Use the timer for briefs instead of the daemon."
)
_all = click.option(
    "--all",
    "every",
    is_flag=True,
    help="Use the daemon for all projects that you trust on this host.",
)


@service.command(short_help="Write a unit that starts the daemon at boot.")
@_kind
@_briefs
@_all
@click.option("--print", "only_print", is_flag=True, help="Print the unit without writing it.")
@trust_option
def install(kind: str | None, briefs: bool, every: bool, only_print: bool, trust: bool) -> None:
    """Write a user unit that starts `rekindle daemon` for this project.

    With --all, the unit starts `rekindle daemon --all`, which also writes the briefs for all
    projects. With --briefs, the unit instead runs `rekindle brief --due` at the time set by
    `runtime: brief: at:`. You do not need --briefs if a daemon is running, because it writes briefs
    itself. This command does not start anything and does not need root privileges. It prints the
    commands to run next. The unit contains PATH and similar variables, but no keys or tokens.
    """
    kind = kind or _KINDS.get(sys.platform, "systemd")
    unit, brief = _choose_service(briefs=briefs, every=every, trust=trust)
    if brief and brief.at == NEVER and not brief.on_session_end:
        raise UsageError(
            "`runtime: brief: at:` is `never`", hint='set a time, such as `at: "06:30"`'
        )
    files = _render_units(kind, unit, brief)
    if only_print:
        echo("\n".join(data.decode() for data in files.values()), nl=False)
        return
    for path, data in files.items():
        with translate_os_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        durable_files.replace_file(path, data)
        echo(f"✓ wrote {path}")
    path = list(files)[-1]
    if kind == "systemd":
        echo(f"Next: systemctl --user enable --now {path.name}")
        echo("      loginctl enable-linger   (so that it runs while you are logged out)")
    else:
        echo(f"Next: launchctl bootstrap gui/$(id -u) {path}")


@service.command(short_help="Remove the unit. Agents keep running.")
@_kind
@_briefs
@_all
def uninstall(kind: str | None, briefs: bool, every: bool) -> None:
    """Remove the unit. Agents and the daemon continue until you stop them."""
    kind = kind or _KINDS.get(sys.platform, "systemd")
    unit, brief = _choose_service(briefs=briefs, every=every)
    paths = list(_render_units(kind, unit, brief))
    if not any(path.exists() for path in paths):
        raise UsageError(f"{paths[-1]} does not exist", hint="`rekindle service install` writes it")
    for path in paths:
        with translate_os_errors(path):
            path.unlink(missing_ok=True)
        echo(f"✓ removed {path}")
    if kind == "systemd":
        stop = f"systemctl --user stop {paths[-1].name}"
        echo(f"Next: {stop}; systemctl --user daemon-reload")
    else:
        echo(f"Next: launchctl bootout gui/$(id -u)/{unit.name}")


def _choose_service(
    *, briefs: bool, every: bool, trust: bool | None = None
) -> tuple[units.ServiceUnit, BriefSettings | None]:
    """Return the unit that the options select. With `trust`, require a trusted project."""
    if every:
        if briefs:
            raise UsageError(
                "the daemon for all projects writes briefs itself", hint="leave --briefs out"
            )
        for folder in list_trusted():
            refuse_agent_of(folder, RekindleFolder(folder).names(), "rekindle service")
        return _make_service(user_folder.make_user_folder(), briefs=False, every=True), None
    project, _store = open_project()
    require_operator(project)
    if trust is not None:
        ensure_trust(project, trust=trust)
    brief = project.settings.runtime.brief if briefs else None
    return _make_service(project.path, briefs=briefs), brief


def _render_units(
    kind: str, unit: units.ServiceUnit, brief: BriefSettings | None
) -> dict[Path, bytes]:
    """Return the text of each unit file, by path. The last entry is the unit to start."""
    path = make_unit_path(kind, unit.name)
    if kind == "launchd":
        content = (
            units.render_launchd(unit)
            if brief is None
            else units.render_launchd_timer(unit, int(BRIEF_RETRY_SECONDS))
        )
        return {path: content}
    if brief is None:
        return {path: units.render_systemd(unit).encode()}
    every = f"*:0/{BRIEF_RETRY_SECONDS / 60:.0f}" if brief.on_session_end else ""
    timer = units.render_systemd_timer(
        unit, "" if brief.at == NEVER else brief.at, brief.zone, every
    )
    return {
        path: units.render_systemd_once(unit).encode(),
        path.with_suffix(".timer"): timer.encode(),
    }


def _make_service(folder: Path, *, briefs: bool, every: bool = False) -> units.ServiceUnit:
    passed = environment.drop_secret_variables(environment.select_variables(os.environ, (), ()))
    variables = {name: value for name, value in passed.items() if value.isprintable()}
    if not str(folder).isprintable():
        raise UsageError(f"{str(folder)!r} cannot be written into a unit", hint="rename the folder")
    does = ("brief", "--due") if briefs else ("daemon", "--all") if every else ("daemon",)
    argv = (sys.executable, "-P", "-m", "rekindle", *does)
    return units.ServiceUnit(
        make_unit_name(folder, briefs=briefs, every=every), argv, str(folder), variables, every
    )
