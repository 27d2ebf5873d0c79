"""Title and body of a pull request with the result of a run."""

from rekindle.documents.screens.pipeline_row import RunRow
from rekindle.formats.identifiers import strip_invisible, to_one_line
from rekindle.thresholds.texts import LINE_LIMIT


def render_title(row: RunRow, text: str) -> str:
    """Return the title: the first line of the run's input, or the pipeline's name."""
    lines = strip_invisible(text).strip().splitlines()
    return to_one_line(lines[0]) if lines else f"{row.pipeline}, run {row.run}"


def render_body(row: RunRow, text: str) -> str:
    """Return the body in Markdown: the run's input, its steps and the workers that failed."""
    parts = [f"Result of run {row.run} of the pipeline `{row.pipeline}`."]
    if words := strip_invisible(text).strip():
        parts.append("\n".join(f"> {line}" for line in words.splitlines()))
    parts.append(
        "\n".join(
            [
                "| step | result | workers |",
                "|---|---|---|",
                *(
                    f"| {step.step} | {step.state} | {step.done} of {step.workers or 0} done |"
                    for step in row.steps
                ),
            ]
        )
    )
    if row.failures:
        listed = (
            f"- {' '.join(filter(None, (failure.step, failure.worker)))}: "
            f"{to_one_line(strip_invisible(failure.why), LINE_LIMIT)}"
            for failure in row.failures
        )
        parts.append("Not included, because these workers failed:\n\n" + "\n".join(listed))
    return "\n\n".join(parts) + "\n"
