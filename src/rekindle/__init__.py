"""Rekindle keeps an AI agent's work alive across its sessions.

    import rekindle

    home = rekindle.connect("shop")
    for row in home.rows():
        print(row.agent, row.state, row.reason)

All names are loaded when they are first used, so that importing the package is fast.
"""

__version__ = "0.1.0"
__all__ = [
    "Agent",
    "Budget",
    "Home",
    "Operator",
    "RekindleError",
    "Row",
    "WaitTimeoutError",
    "connect",
    "run",
]

TYPE_CHECKING = False  # type checkers take it as true; `typing` would be slow to import
if TYPE_CHECKING:
    from typing import Any

    from rekindle.api.agent import Agent
    from rekindle.api.home import Home
    from rekindle.api.home import Home as connect  # noqa: N813 - a function to its callers
    from rekindle.api.operator import Operator
    from rekindle.api.run_agent import run
    from rekindle.documents.manifest_keys import Budget
    from rekindle.documents.screens.agent_row import AgentRow as Row
    from rekindle.errors import RekindleError, WaitTimeoutError

_MODULES = {
    "Agent": ("api.agent", "Agent"),
    "Budget": ("documents.manifest_keys", "Budget"),
    "Home": ("api.home", "Home"),
    "Operator": ("api.operator", "Operator"),
    "RekindleError": ("errors", "RekindleError"),
    "Row": ("documents.screens.agent_row", "AgentRow"),
    "WaitTimeoutError": ("errors", "WaitTimeoutError"),
    "connect": ("api.home", "Home"),
    "run": ("api.run_agent", "run"),
}
"""The module and the name of each public object."""


def __getattr__(name: str) -> "Any":
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - only needed here

    module, attribute = _MODULES[name]
    return getattr(import_module(f"rekindle.{module}"), attribute)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
