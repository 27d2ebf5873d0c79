"""The `sandbox:` key for an agent or a persona in rekindle.yaml."""

from typing import Annotated, Literal

import msgspec

from rekindle.formats.validation import describe_key as _doc

SIZE_PATTERN = r"^([0-9]{1,9}(\.[0-9]+)?[KMG]|[0-9]{1,6}(\.[0-9]+)?T)(?!\n)$"
"""Regular expression for an amount of memory in rekindle.yaml, which the kernel can represent."""
HOST_PATTERN = r"^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?$"
"""Regular expression for a host in rekindle.yaml: a name with an optional port."""
PATH_PATTERN = r"^[^\x00]+$"
MINIMUM_CORES, MAXIMUM_CORES = 0.01, 4096
"""Limits for `cpu:`. The kernel refuses a smaller share of a core."""

CONTAINER = "container"
"""Value of `sandbox:` for a container instead of bubblewrap."""


class SandboxEntry(msgspec.Struct, frozen=True):
    """Extra access for a sandbox, and its limits. All keys are optional."""

    write: (
        Annotated[
            list[Annotated[str, msgspec.Meta(pattern=PATH_PATTERN)]],
            _doc(
                "Additional folders and files that the agent may write, in the project or "
                "below `~/`."
            ),
        ]
        | None
    ) = None
    read: (
        Annotated[
            list[Annotated[str, msgspec.Meta(pattern=PATH_PATTERN)]],
            _doc("Additional folders and files that the agent may read, such as `~/.gitconfig`."),
        ]
        | None
    ) = None
    network: (
        Annotated[
            list[Annotated[str, msgspec.Meta(pattern=HOST_PATTERN)]],
            _doc(
                "Additional hosts that the agent may reach, such as `api.example.org` or `db:8080`."
            ),
        ]
        | None
    ) = None
    memory: (
        Annotated[
            str,
            _doc("Maximum memory for the agent's processes, such as `8G`.", pattern=SIZE_PATTERN),
        ]
        | None
    ) = None
    processes: (
        Annotated[int, _doc("Maximum number of processes that the agent may run.", "count", ge=1)]
        | None
    ) = None
    cpu: (
        Annotated[
            float,
            _doc(
                "Maximum CPU time for the agent's processes together, as a number of cores, such "
                "as `1.5`.",
                "count",
                ge=MINIMUM_CORES,
                le=MAXIMUM_CORES,
            ),
        ]
        | None
    ) = None
    container: (
        Annotated[
            bool,
            _doc("Whether an OCI runtime creates the sandbox, as with `sandbox: container`."),
        ]
        | None
    ) = None


SandboxKey = Annotated[
    SandboxEntry | bool | Literal["container"] | None,
    _doc(
        "Whether the whole CLI runs in a sandbox: `off` (the default), `on` for bubblewrap, "
        "`container` for an OCI runtime, or a mapping that turns it on with further options. If "
        "the agent and its persona differ, the stricter setting applies."
    ),
]
