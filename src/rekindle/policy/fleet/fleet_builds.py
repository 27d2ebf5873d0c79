"""The builds of Rekindle that decide for a fleet's agents, and the problems with them."""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

import msgspec

from rekindle.formats.counts import render_count

BuildRole = Literal["current", "ramping", "former", "new"]


class Build(msgspec.Struct, frozen=True, kw_only=True):
    """One build: a version of the code that decides, under the name that its workers register."""

    build: str
    role: BuildRole
    """`current`, `ramping`, `former` if it was current once, or `new`."""
    workers: int = 0
    """Number of workers that decide with this build."""
    agents: int = 0
    """Number of agents whose current run needs this build."""
    pipelines: int = 0
    """Number of pipeline runs that need this build."""
    last_current: datetime | None = None

    @property
    def has_work(self) -> bool:
        return bool(self.agents or self.pipelines)

    def render_work(self) -> str:
        counts = ((self.agents, "agent"), (self.pipelines, "pipeline"))
        return " and ".join(render_count(count, noun) for count, noun in counts if count)


class FleetBuilds(msgspec.Struct, frozen=True, kw_only=True):
    """All builds that are registered with the engine."""

    builds: tuple[Build, ...] = ()
    percent: float = 0.0
    """Share of the agents that move to the ramping build, in percent."""

    @property
    def current(self) -> str:
        return self._find_role("current")

    @property
    def ramping(self) -> str:
        return self._find_role("ramping")

    def find(self, build: str) -> Build | None:
        return next((known for known in self.builds if known.build == build), None)

    def find_previous(self) -> str:
        """Return the build that was current before the current one, or ""."""
        former = [known for known in self.builds if known.role != "current" and known.last_current]
        newest = max(former, key=lambda known: str(known.last_current), default=None)
        return newest.build if newest else ""

    def find_abandoned(self) -> list[Build]:
        """Return the builds that the fleet needs, but that no worker runs."""
        return [
            known
            for known in self.builds
            if not known.workers and (known.has_work or known.role in {"current", "ramping"})
        ]

    def find_with_workers(self) -> list[str]:
        """Return the builds with workers, the current one first and then the newest one."""
        order = ("current", "ramping", "new", "former")
        working = [known for known in self.builds if known.workers]
        return [known.build for known in sorted(working, key=lambda one: order.index(one.role))]

    def _find_role(self, role: BuildRole) -> str:
        return next((known.build for known in self.builds if known.role == role), "")


class BuildProblem(msgspec.Struct, frozen=True):
    what: str
    fix: str


def explain_abandoned(builds: FleetBuilds, only: str = "") -> list[BuildProblem]:
    """Return what is wrong with each build, or `only` one, that no worker runs."""
    return [
        BuildProblem(_describe_abandoned(known), _suggest(known, builds.find_with_workers()))
        for known in builds.find_abandoned()
        if only in {"", known.build}
    ]


def explain_stuck(names: Iterable[str], build: str, cause: str) -> BuildProblem:
    """Return the problem of agents whose build fails to replay or continue their history."""
    all_names = sorted(names)
    verb = "is" if len(all_names) == 1 else "are"
    where = f"build {build}" if build else "its worker"
    return BuildProblem(
        f"{', '.join(all_names)} {verb} stuck: {where} fails to decide ({cause})",
        "start a worker of the build that ran them before, under another `--build`, then run "
        "`rekindle fleet deploy BUILD --move`",
    )


def parse_cause(reported: Iterable[str]) -> str:
    """Return the cause from the engine's search attribute, such as `NonDeterministicError`.

    The attribute has the words `category=CATEGORY` and `cause=CATEGORYCauseCAUSE`.
    """
    words = dict(word.partition("=")[::2] for word in reported)
    category = words.get("category", "")
    cause = words.get("cause", "")
    return cause.removeprefix(f"{category}Cause") or category or "unknown cause"


def _describe_abandoned(known: Build) -> str:
    if known.role in {"current", "ramping"}:
        return f"no worker runs the fleet's {known.role} build {known.build}, so its agents wait"
    verb = "needs" if known.agents + known.pipelines == 1 else "need"
    return f"{known.render_work()} {verb} build {known.build}, but no worker runs it"


def _suggest(known: Build, others: list[str]) -> str:
    start = f"start a worker of build {known.build}"
    if not others:
        return start
    return f"{start}, or continue on another: `rekindle fleet deploy {others[0]} --move`"
