"""Render agents' rows and counts in Prometheus's text format."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from rekindle.documents.screens import metric_names as names
from rekindle.documents.screens.agent_row import STATES, AgentRow
from rekindle.documents.screens.metric_names import METRICS, Metric

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class AgentCounts(msgspec.Struct, frozen=True):
    """Counts of an agent's events since its log began."""

    gen: int = 0
    """Generation of the last counted event."""
    cycles: Mapping[str, int] = {}
    """Number of cycles by verdict."""
    launches: Mapping[str, int] = {}
    """Number of launches by kind of exit."""
    handoffs: Mapping[str, int] = {}
    """Number of handoffs by cause."""
    past_tokens: int = 0
    """Number of tokens that earlier runs used, or 0 if unknown."""
    past_usd: float = 0.0
    """Amount that earlier runs spent, in dollars, or 0 if unknown."""
    run_tokens: int = 0
    """Number of tokens that the last run has used, or 0 if unknown."""
    run_usd: float = 0.0
    """Amount that the last run has spent, in dollars, or 0 if unknown."""

    @property
    def tokens(self) -> int:
        return self.past_tokens + self.run_tokens

    @property
    def usd(self) -> float:
        return self.past_usd + self.run_usd


class ProjectMetrics(msgspec.Struct, frozen=True):
    """A project's rows and counts at one moment."""

    project: str
    rows: Sequence[AgentRow] = ()
    counts: Mapping[str, AgentCounts] = {}
    """Counts by agent. Agents whose log could not be read have none."""
    is_readable: bool = True
    """Whether the project's manifest and store could be read."""


class MetricSample(msgspec.Struct, frozen=True):
    metric: Metric
    value: float
    labels: Mapping[str, str]


def render_metrics(projects: Iterable[ProjectMetrics]) -> str:
    """Return the metrics of several projects. Unknown figures are left out."""
    lines: dict[str, list[str]] = {metric.name: [] for metric in METRICS}
    for sample in list_samples(projects):
        lines[sample.metric.name].append(_render_line(sample))
    return "".join(
        f"# HELP {metric.name} {metric.meaning}\n# TYPE {metric.name} {metric.kind}\n"
        + "".join(lines[metric.name])
        for metric in METRICS
        if lines[metric.name]
    )


def list_samples(projects: Iterable[ProjectMetrics]) -> Iterator[MetricSample]:
    """Yield all known figures with their labels."""
    for project in projects:
        own = {"project": project.project}
        yield MetricSample(names.PROJECT_UP, project.is_readable, own)
        for row in project.rows:
            subject = own | {"agent": row.agent}
            for metric, value, *labels in _list_figures(row, project.counts.get(row.agent)):
                yield MetricSample(
                    metric, value, subject | dict(zip(metric.labels, labels, strict=True))
                )


_Figure = tuple[Metric, float] | tuple[Metric, float, str]
"""A metric, its value, and the value of its own label if it has one."""


def _list_figures(row: AgentRow, counts: AgentCounts | None) -> Iterator[_Figure]:
    yield names.AGENT_INFO, 1, row.harness
    for state in STATES:
        yield names.AGENT_STATE, state == row.state, state
    if row.window.percent.value is not None:
        yield names.WINDOW_USED, row.window.percent.value / 100
    spend = row.spend
    for unit, used, cap in (
        ("usd", spend.usd.value, spend.usd_cap),
        ("tokens", spend.tokens.value, spend.tokens_cap),
    ):
        if used is not None and cap:
            yield names.BUDGET_USED, used / cap, unit
    if row.at:  # Without a log, the row's counts are unknown.
        yield names.OPEN_LOOPS, row.open_loops - row.stale_loops, "false"
        yield names.OPEN_LOOPS, row.stale_loops, "true"
        yield names.OPEN_QUESTIONS, row.open_questions
    if row.last_active is not None:
        yield names.LAST_ACTIVE, row.last_active.timestamp()
    if row.waits_until is not None:
        yield names.WAITS_UNTIL, row.waits_until.timestamp()
    if counts is not None:
        yield from _list_counters(counts)


def _list_counters(counts: AgentCounts) -> Iterator[_Figure]:
    for metric, numbers in (
        (names.CYCLES, counts.cycles),
        (names.LAUNCHES, counts.launches),
        (names.HANDOFFS, counts.handoffs),
    ):
        for word, number in sorted(numbers.items()):
            yield metric, number, word
    if counts.tokens:
        yield names.TOKENS, counts.tokens
    if counts.usd:
        yield names.COST, counts.usd


def _render_line(sample: MetricSample) -> str:
    labels = ",".join(
        f'{name}="{value.translate(_ESCAPES)}"' for name, value in sample.labels.items()
    )
    return f"{sample.metric.name}{{{labels}}} {_render_number(sample.value)}\n"


def _render_number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
