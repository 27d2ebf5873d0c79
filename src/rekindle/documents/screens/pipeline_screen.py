"""Render pipeline runs: a one-line summary, and a live view with one line per step."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta, tzinfo
from itertools import groupby
from textwrap import wrap
from typing import NamedTuple

from rekindle.documents.screens.pipeline_row import (
    PersonTask,
    RunRow,
    RunStanding,
    StepRow,
    StepStanding,
    WorkerFailure,
)
from rekindle.documents.screens.status_table import cut_to_width, display_width, render_age
from rekindle.formats.counts import render_count
from rekindle.formats.identifiers import strip_invisible, to_one_line
from rekindle.thresholds.screens import (
    PIPELINE_BAR_COLUMNS,
    PIPELINE_FAILURES,
    PIPELINE_REASON_LINES,
)

_GAP = "  "
_COLOURS: dict[RunStanding | StepStanding, str] = {
    "done": "green",
    "failed": "red",
    "needs you": "red",
    "over budget": "red",
    "stopped": "yellow",
    "stopping": "yellow",
}


class Marks(NamedTuple):
    """Symbols for a terminal, which may support only ASCII."""

    done: str = "✓"
    failed: str = "✗"
    waiting: str = "–"
    arrow: str = "→"
    cut: str = "…"
    bar: str = "█▒x░"
    """Characters in a progress bar for workers that are done, running, failed and pending."""


UNICODE_MARKS = Marks()
ASCII_MARKS = Marks("ok", "failed", "-", "->", "...", "#+x.")


class RunLine(NamedTuple):
    """A line on the screen, with its colour in a terminal."""

    text: str
    colour: str | None = None


def render_summary(row: RunRow, columns: int, marks: Marks = UNICODE_MARKS) -> str:
    """Return a one-line summary of a run: its name, its steps and its spending.

    If the line is too long, adjacent steps with the same state are counted instead of named.
    """
    state = "" if row.state == "running" else row.state
    start = _GAP.join(filter(None, (f"{row.pipeline} {row.run}", state)))
    spent = _render_spending(row)
    end = f"   {spent}" if spent else ""
    line = _GAP.join((start, *(_summarize_step(step, marks) for step in row.steps))) + end
    if display_width(line) <= columns:
        return line
    steps = _GAP.join((start, *_count_steps(row.steps, marks)))
    return cut_to_width(steps, columns - display_width(end)) + end


def render_run(
    row: RunRow,
    now: datetime,
    columns: int,
    marks: Marks = UNICODE_MARKS,
    zone: tzinfo | None = None,
) -> list[RunLine]:
    """Return the lines of the live view: the steps, then tasks for a person, then failures."""
    lines = [RunLine(_render_header(row, now, columns), _COLOURS.get(row.state))]
    width = max((display_width(step.step) for step in row.steps), default=0)
    lines += [_render_step(step, width, columns, marks) for step in row.steps]
    lines += [RunLine(line) for line in _list_notes(row, columns, zone)]
    lines += render_tasks(row, columns)
    if row.failures:
        lines.append(RunLine("failed:", "red"))
        shown = row.failures[:PIPELINE_FAILURES]
        lines += [
            RunLine(line) for failure in shown for line in _render_failure(failure, columns, marks)
        ]
        if more := len(row.failures) - len(shown):
            lines.append(RunLine(f"  and {render_count(more, 'other')}"))
    if row.command:
        lines.append(RunLine(f"{marks.arrow} {row.command}"))
    return lines


def render_tasks(row: RunRow, columns: int) -> list[RunLine]:
    """Return what the run is waiting for a person to do, with the commands."""
    if not row.tasks:
        return []
    lines = [RunLine(line) for task in row.tasks for line in _render_task(task, columns)]
    return [RunLine("waits for you:", "red"), *lines]


def render_bar(step: StepRow, marks: Marks = UNICODE_MARKS) -> str:
    """Return a matrix step's progress bar, with one cell per worker if there are few workers."""
    counts = (step.done, step.running + step.retrying, step.failed, step.pending)
    total = sum(counts)
    cells = min(total, PIPELINE_BAR_COLUMNS)
    sizes = _share_cells(counts, total, cells)
    return "".join(mark * size for mark, size in zip(marks.bar, sizes, strict=True))


def _share_cells(counts: tuple[int, ...], total: int, cells: int) -> list[int]:
    """Divide the cells in proportion to the counts. Every count above 0 gets at least one cell."""
    if total <= cells:
        return list(counts)
    sizes = [max(1, count * cells // total) if count else 0 for count in counts]
    while sum(sizes) != cells:
        step = 1 if sum(sizes) < cells else -1
        # Adjust the size that is furthest from its exact share.
        place = max(
            (place for place, count in enumerate(counts) if count and sizes[place] + step > 0),
            key=lambda place: step * (counts[place] * cells / total - sizes[place]),
        )
        sizes[place] += step
    return sizes


def _summarize_step(step: StepRow, marks: Marks) -> str:
    if not step.is_matrix or step.workers is None:
        return f"{step.step} {_mark_state(step, marks)}"
    figure = f"{step.done}/{step.workers}"
    mark = _mark_state(step, marks) if step.state not in {"running", "waiting"} else ""
    counts = _count_workers(step)
    return " ".join(filter(None, (step.step, figure, mark, f"({counts})" if counts else "")))


def _mark_state(step: StepRow, marks: Marks) -> str:
    marked = {
        "done": marks.done,
        "failed": marks.failed,
        "waiting": marks.waiting,
        "needs you": "!",
    }
    return marked.get(step.state) or _name_state(step)


def _name_state(step: StepRow) -> str:
    is_retrying = step.state == "running" and not step.is_matrix and step.retrying
    return "retrying" if is_retrying else step.state


def _count_workers(step: StepRow) -> str:
    """Return the numbers of running, retrying and failed workers as text."""
    counts = (
        (step.running, "running"),
        (step.retrying, "retrying"),
        (step.failed, "failed"),
    )
    return ", ".join(f"{count} {words}" for count, words in counts if count)


def _count_steps(steps: Iterable[StepRow], marks: Marks) -> Iterator[str]:
    """Yield the parts of a summary. Adjacent steps with the same state are counted."""

    def find_kind(step: StepRow) -> str:
        return f" {step.step}" if step.is_matrix and step.workers else _mark_state(step, marks)

    for _, group in groupby(steps, find_kind):
        steps_alike = list(group)
        if len(steps_alike) == 1:
            yield _summarize_step(steps_alike[0], marks)
        else:
            yield f"{len(steps_alike)} steps {_mark_state(steps_alike[0], marks)}"


def _render_spending(row: RunRow) -> str:
    """Return the run's spending and its limits."""
    parts = []
    if row.usd or row.usd_cap is not None:
        cap = f" of ${row.usd_cap:g}" if row.usd_cap is not None else ""
        parts.append(f"{_render_usd(row)}{cap}")
    if row.tokens_cap is not None or (row.tokens and not parts):
        cap = f" of {row.tokens_cap:,}" if row.tokens_cap is not None else ""
        parts.append(f"{row.tokens:,}{cap} tokens")
    return ", ".join(parts)


def _render_usd(row: RunRow | StepRow) -> str:
    return f"{'~' * row.is_estimated}${row.usd:.2f}"


def _render_header(row: RunRow, now: datetime, columns: int) -> str:
    parts = [f"{row.pipeline} {row.run}", row.state]
    if row.began is not None:
        end = row.updated if row.is_over else now
        worked_from = row.began + timedelta(seconds=row.stopped_seconds)
        duration = render_age(worked_from, end or now)
        if row.hours_cap is not None:
            duration = f"{duration} of {render_count(row.hours_cap, 'hour')}"
        words = f"{'after' if row.is_over else 'for'} {duration}"
        parts.append("just started" if duration.startswith("now") else words)
    return _place_right(_GAP.join(parts), _render_spending(row), columns)


def _render_step(step: StepRow, width: int, columns: int, marks: Marks) -> RunLine:
    name = step.step + " " * (width - display_width(step.step))
    states = {"done": marks.done, "failed": marks.failed}
    mark = f"{states[step.state]} " if step.state in states and marks is UNICODE_MARKS else ""
    parts = [f"{_GAP}{name}", f"{mark}{_name_state(step)}"]
    if step.is_matrix and step.workers is not None:
        parts[-1] = f"{parts[-1]:<9}"
        counts = _count_workers(step)
        figure = f"{step.done}/{step.workers}"
        parts += [f"[{render_bar(step, marks)}]", ", ".join(filter(None, (figure, counts)))]
    spent = _render_usd(step) if step.usd else f"{step.tokens:,} tok" if step.tokens else ""
    return RunLine(_place_right(_GAP.join(parts), spent, columns), _COLOURS.get(step.state))


def _place_right(left: str, right: str, columns: int) -> str:
    """Return a line with a left and a right part. The left part is cut if the line is too long."""
    if not right:
        return cut_to_width(left, columns)
    room = columns - display_width(right) - len(_GAP)
    left = cut_to_width(left, room)
    return left + " " * (room - display_width(left)) + _GAP + right


def _list_notes(row: RunRow, columns: int, zone: tzinfo | None) -> Iterator[str]:
    if row.reason and not row.failures:
        yield from wrap(f"{row.state}: {_clean(row.reason)}", columns, subsequent_indent=_GAP)
    if row.until is not None:
        yield f"waits for a usage limit until {row.until.astimezone(zone):%H:%M}"
    if not row.is_coordinated and not row.is_over:
        yield "! its coordinator is not running; this starts it:"
        yield f"    rekindle pipeline resume {row.pipeline} {row.run}"


def _render_task(task: PersonTask, columns: int) -> Iterator[str]:
    place = " ".join(filter(None, (task.step, task.worker)))
    text = f"{place}: {_clean(task.text)}" if place else _clean(task.text)
    yield from wrap(text, columns, initial_indent=_GAP, subsequent_indent="    ")
    # Do not cut or wrap commands, so that people can copy them.
    yield from (f"    {_clean(command)}" for command in task.commands)


def _render_failure(failure: WorkerFailure, columns: int, marks: Marks) -> Iterator[str]:
    place = " ".join(filter(None, (failure.step, failure.worker)))
    yield from wrap(
        f"{place}: {_clean(failure.why) or 'no reason given'}",
        columns,
        initial_indent=_GAP,
        subsequent_indent="    ",
        max_lines=PIPELINE_REASON_LINES,
        placeholder=f" {marks.cut}",
    )
    if failure.agent:
        yield f"    {marks.arrow} rekindle logs {failure.agent}"


def _clean(text: str) -> str:
    return to_one_line(strip_invisible(text))
