"""`rekindle fleet deploy` and `rekindle fleet decider`: change the build, and decide apart."""

import asyncio
import os
import re
from typing import TYPE_CHECKING, Any

import click
import msgspec

from rekindle import __version__
from rekindle.cli.options import (
    Number,
    find_fleet,
    json_option,
    open_fleet,
    require_operator,
)
from rekindle.cli.output import echo, print_json, print_styled
from rekindle.cli.trust_prompt import ensure_trust, print_changes, trust_option
from rekindle.config import Project
from rekindle.errors import UsageError
from rekindle.formats.counts import render_count
from rekindle.policy.fleet.fleet_builds import FleetBuilds, explain_abandoned
from rekindle.policy.settings.metrics_settings import MetricsSettings
from rekindle.policy.settings.runtime_settings import FleetSettings
from rekindle.wiring.access.trust_checks import accept_fleet, require_fleet

if TYPE_CHECKING:
    from rekindle.fleet.commands.deploy_build import DeployResult

_PERCENT = Number(0, 100)
_BUILD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")


def _parse_build(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> str | None:
    del context, parameter
    if value is None or _BUILD.fullmatch(value):
        return value
    raise UsageError(
        f"{value!r} cannot be the name of a build",
        hint="use letters, digits and . _ + -, such as 0.2.0 or 0.2.0-fix1",
    )


build_option = click.option(
    "--build",
    metavar="NAME",
    envvar="REKINDLE_BUILD",
    default=__version__,
    callback=_parse_build,
    help="Name of the code that decides, if it is not a release. Default: Rekindle's version.",
)


def accept_worker(*, trust: bool) -> tuple[Project, FleetSettings]:
    """Return the project and its fleet after the operator has accepted both."""
    project, fleet = find_fleet()
    ensure_trust(project, trust=trust)
    if trust:
        require_operator(project)
        print_changes("fleet", accept_fleet(project))
    require_fleet(project)
    return project, fleet


@click.command()
@click.option(
    "--metrics",
    "listen",
    metavar="HOST:PORT",
    help="Address where Prometheus can read this decider's metrics.",
)
@build_option
@trust_option
def decider(listen: str | None, build: str, trust: bool) -> None:
    """Decide for the fleet's agents, but run none of them.

    It runs until you stop it. Use it with `rekindle fleet worker --no-decide` on the other
    hosts, so that you can upgrade either without the other.
    """
    project, fleet = accept_worker(trust=trust)
    from rekindle.fleet.engine.connect import connect_when_up  # noqa: PLC0415 - needs the fleet extra
    from rekindle.fleet.engine.telemetry import make_runtime  # noqa: PLC0415 - as above
    from rekindle.fleet.hosts.decider import run_decider  # noqa: PLC0415 - as above

    # A worker on the same machine may listen on the manifest's address.
    metrics = MetricsSettings(prometheus=listen or "", otlp="" if listen else fleet.metrics.otlp)
    runtime = make_runtime(metrics, {"host": os.uname().nodename})

    async def run() -> None:
        client = await connect_when_up(fleet, project.path, os.environ, echo, runtime)
        await run_decider(client, build, echo)

    asyncio.run(run())


@click.command()
@click.argument("build", required=False, callback=_parse_build)
@click.option("--ramp", type=_PERCENT, metavar="PERCENT", help="Move only this share.")
@click.option("--rollback", is_flag=True, help="End a ramp, or return to the previous build.")
@click.option(
    "--move",
    "moves",
    is_flag=True,
    help="Move all agents immediately, in the middle of their history, also if they are stuck.",
)
@json_option
def deploy(
    build: str | None, ramp: float | None, rollback: bool, moves: bool, as_json: bool
) -> None:
    """Let BUILD decide for the fleet's agents. Default: the build of this command.

    Idle agents move immediately, and running agents with their next report, without interrupting
    their sessions. Repeat the command to see which agents have not moved yet.
    """
    if rollback and (build or ramp is not None):
        raise UsageError("--rollback needs no BUILD and no --ramp", hint="use only one of them")
    if ramp is not None and moves:
        raise UsageError("--ramp and --move cannot be used together", hint="use only one of them")
    project, fleet = find_fleet()
    require_operator(project)
    store = open_fleet(project, fleet)
    from rekindle.fleet.commands import deploy_build  # noqa: PLC0415 - needs the fleet extra

    client, wanted = store.agents.client, build or os.environ.get("REKINDLE_BUILD", __version__)
    if rollback:
        result = store.wait_for(deploy_build.roll_back(client, moves=moves))
    elif ramp is not None:
        result = store.wait_for(deploy_build.ramp(client, wanted, ramp))
    else:
        result = store.wait_for(deploy_build.deploy(client, wanted, moves=moves))
    if as_json:
        print_json(_make_json(result))
    else:
        _print_result(result)


def _make_json(result: "DeployResult") -> dict[str, Any]:
    after = result.after
    return {
        "build": result.build,
        "before": result.before,
        "current": after.current,
        "ramping": after.ramping,
        "percent": after.percent,
        "woken": result.woken,
        "moved": result.moved,
        "builds": msgspec.to_builtins(after.builds),
    }


def _print_result(result: "DeployResult") -> None:
    after = result.after
    if after.ramping:
        share = f"{after.percent:g} % of the agents move to it"
        print_styled(f"✓ build {after.ramping} is ramping: {share}", fg="green")
    else:
        was = "" if result.before in {"", after.current} else f"; it was {result.before} before"
        print_styled(f"✓ build {after.current} decides for the fleet{was}", fg="green")
    if result.moved:
        echo(f"  moved immediately: {result.moved}")
    if result.woken:
        echo(f"  idle agents that were told to move: {result.woken}")
    for known in after.builds:
        if known.workers or known.has_work or known.role in {"current", "ramping"}:
            work = known.render_work() or "no agents"
            workers = render_count(known.workers, "worker")
            echo(f"  {known.build} ({known.role}): {workers}, {work}")
    for problem in explain_abandoned(after):
        print_styled(f"  ! {problem.what}", fg="yellow")
        echo(f"    → {problem.fix}")
    echo(f"Next: {_suggest_next(after)}")


def _suggest_next(after: FleetBuilds) -> str:
    if after.ramping:
        return (
            f"`rekindle fleet deploy {after.ramping}` completes the ramp, and "
            "`rekindle fleet deploy --rollback` ends it."
        )
    leaving = [known.build for known in after.builds if known.role == "former" and known.has_work]
    if leaving:
        return (
            f"keep a worker of build {', '.join(leaving)} until `rekindle fleet deploy "
            f"{after.current}` shows no agents there."
        )
    return "you can stop the workers of all other builds."
