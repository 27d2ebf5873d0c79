"""Report how a pipeline run ended or was stopped, and refuse to resume some runs."""

from rekindle.cli.output import echo
from rekindle.documents.screens.pipeline_row import RunRow
from rekindle.errors import UnfinishedError, UsageError


def print_continues(name: str) -> None:
    """Tell the user that a run continues without this command."""
    echo(
        f"\n{name} continues without this command."
        f"\n  → `rekindle pipeline status {name} --watch` shows it"
        f"\n  → `rekindle pipeline stop {name}` stops it",
        err=True,
    )


def finish_run(row: RunRow) -> int:
    """Return the exit code for a run that is done.

    Raises:
        UnfinishedError: The run did not finish successfully.
    """
    name = f"{row.pipeline} {row.run}"
    if row.state == "done":
        return 0
    words = "failed" if row.state == "failed" else f"is {row.state}"
    # If a step does not need all of its workers, it may be done even if some failed.
    failed = {step.step for step in row.steps if step.state == "failed"}
    agents = [each.agent for each in row.failures if each.agent and each.step in failed]
    shows = f"rekindle logs {agents[0]}" if agents else f"rekindle pipeline status {name}"
    hint = f"`{shows}` shows why"
    if row.command:
        is_failed = row.state == "failed"
        hint = f"{hint}; `{row.command}` lists finished work" if is_failed else row.command
    raise UnfinishedError(
        f"{name} {words}" + (f": {row.reason}" if row.reason else ""),
        hint=hint,
        outcome=row.state,
        exit_code=UnfinishedError.exit_code,
    )


def print_stopped(row: RunRow) -> None:
    """Print whether a run has stopped or is still stopping."""
    if row.is_over:
        echo(f"✓ {row.pipeline} {row.run}: {row.state}")
        if row.command:
            echo(f"Next: `{row.command}`.")
    else:
        echo(f"· {row.pipeline} {row.run} is stopping: its workers have not exited yet")
        echo(f"Next: `rekindle pipeline status {row.pipeline} {row.run} --watch`.")


def is_resumable(row: RunRow) -> bool:
    return row.state not in {"done", "failed"}


def refuse_resume(row: RunRow, raised: dict[str, float]) -> None:
    """Refuse to resume a finished run, or with a limit that is not larger than the current one."""
    name = f"{row.pipeline} {row.run}"
    if not is_resumable(row):
        raise UsageError(
            f"{name} is {row.state}, so it cannot be resumed",
            hint=f"start a new run: `rekindle pipeline run {row.pipeline}`",
        )
    current = _find_caps(row)
    for unit, cap in raised.items():
        if unit not in current:
            raise UsageError(
                f"{name} has no limit in {unit}, so there is none to raise",
                hint=f"its limits are in: {', '.join(current) or 'none of usd, tokens and hours'}",
            )
        if cap <= current[unit]:
            raise UsageError(
                f"the limit {unit}={cap:g} is not larger than the current one, {current[unit]:g}",
                hint=f"set a higher limit: --budget {unit}=CAP",
            )
    if row.state == "over budget" and not raised:
        unit = next(iter(current), "usd")
        raise UsageError(
            f"{name} has reached its budget: {row.reason}",
            hint=f"raise it: `rekindle pipeline resume {name} --budget {unit}="
            f"{2 * current.get(unit, 1.0):g}`",
        )


def _find_caps(row: RunRow) -> dict[str, float]:
    """Return a run's limits, by unit."""
    caps = {"usd": row.usd_cap, "tokens": row.tokens_cap, "hours": row.hours_cap}
    return {unit: cap for unit, cap in caps.items() if cap is not None}
