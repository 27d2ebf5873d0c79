"""`rekindle doctor`."""

from collections.abc import Iterator
from contextlib import suppress

import click

from rekindle import config
from rekindle.cli.hooks import examine_all
from rekindle.cli.options import as_json, here, open_fleet, open_project, take_over
from rekindle.cli.output import echo, print_json, secho, styled
from rekindle.config import Project
from rekindle.errors import CheckFailedError, RekindleError
from rekindle.plugins import find_program
from rekindle.policy import connection
from rekindle.policy.row import Around, explain_safe_mode, make_row
from rekindle.policy.settings import Fleet
from rekindle.stores.files import FileStore
from rekindle.stores.files.inspection import Problem
from rekindle.system import clock
from rekindle.system.notify import Notifier
from rekindle.system.programs import find
from rekindle.wiring import guarded_path, protected, trust
from rekindle.wiring.start_checks import (
    REACH_HINT,
    UNHONOURED_HINT,
    explain_reach_of,
    find_obstacles,
    find_unhonoured,
)
from rekindle.wiring.store import HARNESSES, open_store

PROGRAMS = {"git": "keeps an audit trail of the relays", "tmux": "a window for each agent"}


@click.command()
@click.option("--fix", is_flag=True, help="Fix what can be fixed, then look again.")
@take_over
@as_json
def doctor(fix: bool, take_over: bool, as_json: bool) -> None:
    """What is wrong, and the command that fixes it.

    Ends with 0 when nothing is broken; a missing optional program is not a fault.
    """
    if fix or take_over:
        _fix(take_over=take_over)
    found = _examine()
    named = {find_program(one): f"the harness {one.NAME}" for one in HARNESSES.working()}
    uses = {name: use for name, use in (PROGRAMS | named).items() if name}
    programs = {name: find(name) is not None for name in uses}
    broken = [one for problems in found.values() for one in problems if not one.is_note]
    if as_json:
        print_json(
            {
                "ok": not broken,
                "agents": {
                    name: [
                        {"what": one.what, "mend": one.mend, "broken": not one.is_note}
                        for one in problems
                    ]
                    for name, problems in found.items()
                },
                "programs": programs,
            }
        )
    else:
        _print(found, {name: "" if there else uses[name] for name, there in programs.items()})
    if broken:
        number = f"{len(broken)} problem" + ("s" if len(broken) > 1 else "")
        raise CheckFailedError(f"{number} found", hint="run the commands after each arrow")


def _examine() -> dict[str, list[Problem]]:
    """The problems of each agent; those of the manifest stand under its own name."""
    try:
        project = config.load(here())
    except RekindleError as error:
        return {"rekindle.yaml": [Problem(str(error), error.hint)]}
    store = open_store(project)
    found: dict[str, list[Problem]] = {"rekindle.yaml": []}
    if not trust.is_trusted(project.path):
        words = "you have not accepted this folder on this host: hooks and watchdogs ignore it"
        fix = "read rekindle.yaml, then `rekindle run` asks for your trust"
        found["rekindle.yaml"].append(Problem(words, fix, is_note=True))
    try:
        Notifier(project.manifest.notify).check()
    except RekindleError as error:
        found["rekindle.yaml"].append(Problem(str(error), error.hint))
    if project.settings.fleet is not None:
        found |= _examine_fleet(project, project.settings.fleet)
    for name in project.manifest.agents:
        found.setdefault(name, []).extend(_exposed(project, name))
        # On a fleet nobody needs the files that are here.
        problems = store.inspect(name) if project.settings.fleet is None else []
        problems += _examine_settings(project, store, name)
        problems += _examine_start(project, store, name)
        found[name] = [*found.get(name, ()), *problems]
    for one in examine_all():
        if one.is_broken:  # no agent's name begins with a dot
            problems = [
                Problem(f"hooks for {one.place.level}: {what}", one.mend) for what in one.problems
            ]
            found.setdefault(one.place.files.folder, []).extend(problems)
    return found


def _examine_settings(project: Project, store: FileStore, name: str) -> Iterator[Problem]:
    """Report settings that the operator has not accepted: an agent that is to run does not."""
    if trust.is_unknown(project, name):
        fix = f"`rekindle run {name}` or `rekindle up {name}` shows and accepts them"
        yield Problem(trust.UNKNOWN, fix, is_note=True)
    changes = trust.find_changes(project, name)
    if not changes:
        return
    is_to_run = True
    with suppress(RekindleError):  # damage is reported by the inspection
        is_to_run = store.exists(name) and store.read(name).projection.run.desired == "running"
    for change in changes:
        words = f"changed without your command: {change.render()}"
        fix = (
            f"check rekindle.yaml; `rekindle {'restart' if is_to_run else 'run'} {name}` accepts it"
        )
        yield Problem(words, fix, is_note=not is_to_run)


def _examine_start(project: Project, store: FileStore, name: str) -> Iterator[Problem]:
    """Report why `run` would refuse the agent, or start nothing."""
    on_this_host = project.settings.fleet is None
    for error in find_obstacles(project, name, on_this_host=on_this_host):
        yield Problem(str(error), error.hint)
    for line in find_unhonoured(project, name):
        yield Problem(line, UNHONOURED_HINT, is_note=True)
    words, is_useless = explain_reach_of(project, name)
    if words:
        yield Problem(words, REACH_HINT, is_note=not is_useless)
    if project.settings.fleet is not None or not store.exists(name):
        return
    with suppress(RekindleError):  # damage is reported by the inspection
        known = store.read(name).projection
        if known.run.is_safe:
            around = Around(clock.now(), is_supervised=store.is_supervised(name))
            row = make_row(known, around)
            stopped = ", and you stopped it" if row.state == "stopped" else ""
            yield Problem(f"is in safe mode: {explain_safe_mode(known)}{stopped}", row.command)


def _exposed(project: Project, name: str) -> list[Problem]:
    found = (
        (protected.exposed(project, name), protected.EXPOSED_HINT),
        (guarded_path.explain_path(project, name), guarded_path.PATH_HINT),
    )
    return [Problem(words, hint, is_note=True) for words, hint in found if words]


def _examine_fleet(project: Project, fleet: Fleet) -> dict[str, list[Problem]]:
    """Its engine, under its address; each agent's workspace; what the manifest says of it."""
    try:
        store = open_fleet(project, fleet)
        from rekindle.fleet import checks  # noqa: PLC0415 - wants the extra
    except RekindleError as error:
        return {"fleet": [Problem(str(error), error.hint)]}

    said = [Problem(one.what, one.mend, is_note=True) for one in connection.warnings(fleet)]
    return {
        f"fleet {fleet.address}": [*checks.of_engine(store, fleet), *said],
        "briefs": checks.of_briefs(project),
        **{
            name: checks.of_definition(project, fleet, name) + checks.of_workspace(project, name)
            for name in project.manifest.agents
        },
    }


def _fix(*, take_over: bool) -> None:
    project, store = open_project("--fix")
    for name in project.manifest.agents:
        try:
            _mend(store, name, take_over=take_over)
        except RekindleError as error:
            secho(f"{name}: could not be fixed: {error}", fg="red", err=True)
            if error.hint:
                echo(f"  → {error.hint}", err=True)


def _mend(store: FileStore, name: str, *, take_over: bool) -> None:
    with store.writer(name, take_over=take_over) as writer:
        writer.fold()
    store.catch_up_audit(name)


def _print(found: dict[str, list[Problem]], missing: dict[str, str]) -> None:
    """Print the problems, and each optional program; one that is missing has its use."""
    noted: dict[Problem, list[str]] = {}
    for name, problems in found.items():
        for one in problems:
            if one.is_note:
                noted.setdefault(one, []).append(name)
    for name, problems in found.items():
        if not problems:
            echo(f"✓ {name}")
        for one in problems:
            if one.is_note and one not in noted:
                continue  # printed with the first agent that it is about
            about = ", ".join(noted.pop(one)) if one.is_note else name
            mark = styled("·", dim=True) if one.is_note else styled("✗", fg="red")
            echo(mark, f" {about}: {one.what}")
            echo(f"    → {one.mend}")
    for name, use in missing.items():
        echo(f"· {name} is not installed (optional: {use})" if use else f"✓ {name}")
