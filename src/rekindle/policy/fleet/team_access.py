"""Limit a host to the agents of some teams."""

from collections.abc import Collection

from rekindle.errors import UsageError
from rekindle.formats.identifiers import AGENT_NAME


def parse_teams(text: str) -> frozenset[str]:
    """Return the teams in a comma-separated list."""
    teams = frozenset(name.strip() for name in text.split(","))
    for name in sorted(teams):
        require_team_name(name)
    return teams


def require_team_name(name: str) -> str:
    """Return a team's name. Raise UsageError if it is not valid."""
    if not AGENT_NAME.match(name):
        raise UsageError(
            f"{name!r} is not a valid team name",
            hint="use up to 63 of a-z, 0-9, - and _, starting with a letter or a digit",
        )
    return name


def explain_refused_team(host: str, teams: Collection[str], team: str) -> str:
    """Explain why a host refuses the agents of a team, or return "" if it accepts them.

    A host without a list of teams accepts all agents.
    """
    if not teams or team in teams:
        return ""
    which = f"team {team}" if team else "an agent without a team"
    return (
        f"host {host} accepts only agents of {', '.join(sorted(teams))}, not {which}; correct "
        "`fleet: pool:` or `fleet: team:`, or start a worker whose --teams includes it"
    )
