"""Options of `rekindle fleet worker` that contain the host's agents."""

import re
from collections.abc import Callable
from typing import Any

import click

from rekindle.cli.options import Number
from rekindle.documents.manifest_sandbox import (
    CONTAINER,
    MAXIMUM_CORES,
    MINIMUM_CORES,
    SIZE_PATTERN,
)
from rekindle.policy.sandbox.profile import parse_size
from rekindle.thresholds.sandbox_limits import HOST_PROCESSES


class _SizeOption(click.ParamType[int]):
    """An amount of memory such as 8G."""

    name = "SIZE"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        if isinstance(value, int):
            return value
        if not re.match(SIZE_PATTERN, str(value)) or not (size := parse_size(str(value))):
            self.fail(f"{value!r} is not a size such as 512M or 8G", param, ctx)
        return size


_OPTIONS = (
    click.option(
        "--sandbox",
        type=click.Choice(["on", CONTAINER, "off"]),
        default="on",
        show_default=True,
        help="Sandbox for every agent on this host. An agent's own `sandbox:` can only be "
        "stricter. With `off`, the agent's own key decides.",
    ),
    click.option(
        "--memory",
        type=_SizeOption(),
        help="Maximum memory for each agent. Default: the host's memory divided by --slots, but at "
        "least 2G.",
    ),
    click.option(
        "--processes",
        type=Number(1),
        help=f"Maximum number of processes for each agent. Default: {HOST_PROCESSES}.",
    ),
    click.option(
        "--cpu",
        metavar="CORES",
        type=click.FloatRange(MINIMUM_CORES, MAXIMUM_CORES),
        help="Maximum CPU time for each agent, as a number of cores. Default: no limit.",
    ),
)


def containment_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
