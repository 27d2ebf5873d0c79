"""Describe stop reasons to the operator: the cause, the wait, and the command to continue."""

from datetime import datetime, tzinfo

from rekindle.policy.exits.stop_reasons import (
    EXIT_KINDS,
    REACTIONS,
    STOP_REASONS,
    find_reaction,
    parse_reason,
)

TEXT_ARGUMENT = '"TEXT"'
"""Placeholder for free text in a command."""


def explain_reason(why: str, words: str = "") -> str:
    """Describe a stop reason in its recorded words, or in the table's if there are none."""
    return words or (STOP_REASONS[parse_reason(why)].text if why else "")


def explain_wait(
    why: str, until: datetime, now: datetime, zone: tzinfo | None = None, words: str = ""
) -> str:
    """Describe why the agent is waiting and until when, in the operator's time zone.

    `words` describes what the agent waits for, or how its last launch ended. The latter is shown
    only if that exit caused the wait.
    """
    moment = f"until {render_until(until, now, zone)}"
    if why not in EXIT_KINDS or not REACTIONS[find_reaction(why)].counts:
        details = f": {words}" if words and why not in EXIT_KINDS else ""
        return f"{moment}: {explain_reason(why)}{details}" if why else moment
    return f"{moment}, then retried: {explain_reason(why)}{f', {words}' if words else ''}"


def render_until(until: datetime, now: datetime, zone: tzinfo | None = None) -> str:
    """Format a time in the operator's time zone, with the date unless it is today."""
    local_until, local_now = until.astimezone(zone), now.astimezone(zone)
    return (
        f"{local_until:%H:%M}"
        if local_until.date() == local_now.date()
        else f"{local_until:%Y-%m-%d %H:%M}"
    )


def render_answer(name: str, choice: str = "") -> str:
    """Return the `rekindle answer` command, with a choice or a placeholder for free text."""
    return f"rekindle answer {name} {choice or TEXT_ARGUMENT}"


def render_continue_command(
    why: str, name: str, *, is_safe: bool = False, is_supervised: bool = True
) -> str:
    """Return the command that continues an agent; `is_safe` means that it is in safe mode.

    `rekindle restart` ends safe mode, or permits another start after a finished run, but only a
    supervisor can start the agent.
    """
    row = STOP_REASONS[parse_reason(why)]
    if row.command == "answer":
        return render_answer(name)
    restart = f"rekindle restart {name}"
    if is_supervised:
        return restart if is_safe else f"rekindle {row.command} {name}"
    needs_restart = is_safe or (row.command == "restart" and not row.between)
    return f"{restart} && rekindle run {name}" if needs_restart else f"rekindle run {name}"


def render_hint(
    why: str,
    name: str,
    *,
    is_safe: bool = False,
    is_supervised: bool = True,
    answer: str = "",
    takes_enter: bool = False,
) -> str:
    """Tell the operator what to do next, with the command that continues the agent.

    `answer` is the command that answers the agent's question, or "" if there is no question.
    `takes_enter` means that pressing Enter at the terminal gives the same answer.
    """
    row = STOP_REASONS[parse_reason(why)]
    command = answer or render_continue_command(
        why, name, is_safe=is_safe, is_supervised=is_supervised
    )
    enter = ", or press Enter here" if takes_enter else ""
    fix = row.fix.format(name=name)
    step = f"{fix}; then `{command}`{enter}" if fix else f"`{command}` continues{enter}"
    return f"{step}; `{row.off_switch}` disables such pauses" if row.off_switch else step
