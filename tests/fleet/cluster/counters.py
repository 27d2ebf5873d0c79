"""Counters of an engine and of its database: names and amounts, and how they are summarized."""

import re
from collections.abc import Mapping

Counted = dict[str, float]
"""Amounts by name: `statement INSERT tasks_v2`, `request CreateTasks`, `transactions`, …"""
STATEMENT, REQUEST = "statement ", "request "
WRITES = ("INSERT", "UPDATE", "DELETE")
_TABLE = re.compile(
    r"(?i)^\s*(?:(INSERT)\s+INTO|(UPDATE)|(DELETE)\s+FROM|(SELECT)\b.*?\bFROM)\s+(\w+)", re.DOTALL
)
_LOCKS = re.compile(r"(?i)\bFOR\s+(?:UPDATE|SHARE)\b")
_CONTROL = re.compile(r"(?i)^\s*(BEGIN|COMMIT|ROLLBACK)")


def name_statement(query: str) -> str:
    """Return the kind and the table of an SQL statement, or '' for one of the measurement."""
    if "pg_" in query:
        return ""
    if found := _TABLE.match(query):
        *kinds, table = found.groups()
        kind = next(one for one in kinds if one).upper()
        return f"{'LOCK' if kind == 'SELECT' and _LOCKS.search(query) else kind} {table}"
    control = _CONTROL.match(query)
    return control[1].upper() if control else "OTHER"


def subtract(later: Mapping[str, float], earlier: Mapping[str, float]) -> Counted:
    return {name: value - earlier.get(name, 0.0) for name, value in later.items()}


def divide(counted: Mapping[str, float], number: float) -> Counted:
    return {name: value / number for name, value in counted.items()}


def subtract_background(counted: Mapping[str, float], quiet: Mapping[str, float]) -> Counted:
    """Return what is left without the share that the same seconds cost with no work."""
    rate = divide(quiet, quiet["seconds"])
    return {
        name: value if name == "seconds" else value - rate.get(name, 0.0) * counted["seconds"]
        for name, value in counted.items()
    }


def add_up(counted: Mapping[str, float], *starts: str) -> float:
    """Return the sum of all amounts whose name starts like this."""
    return sum(value for name, value in counted.items() if name.startswith(starts))


def summarize(counted: Mapping[str, float]) -> Counted:
    """Return the few amounts that a reader compares; counters that were not read are left out."""
    found = {
        "requests": add_up(counted, REQUEST),
        "server_ms": 1e3 * counted["cpu servers"],
        "worker_ms": 1e3 * counted["cpu worker"],
        "bytes": counted["bytes"],
    }
    if "transactions" in counted:
        found |= {
            "transactions": counted["transactions"],
            "commits": counted["commits"],
            "writes": add_up(counted, *(STATEMENT + kind for kind in WRITES)),
            "locks": add_up(counted, f"{STATEMENT}LOCK"),
            "reads": add_up(counted, f"{STATEMENT}SELECT"),
            "database_ms": 1e3 * counted["cpu database"],
            "wal_bytes": counted["wal bytes"],
            "syncs": counted["syncs"],
        }
    return found
