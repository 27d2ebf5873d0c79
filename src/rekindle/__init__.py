"""Rekindle keeps an AI agent's work alive across its sessions.

    import rekindle

    home = rekindle.connect("shop")
    for row in home.rows():
        print(row.agent, row.state, row.reason)

`rekindle.connect(fleet="HOST:PORT")` connects to a fleet without a folder.

All names are loaded when they are first used, so that importing the package is fast.
"""

__version__ = "0.1.0"
__all__ = [
    "Agent",
    "AgentSettings",
    "Budget",
    "BulkResult",
    "CodecSettings",
    "DefinitionError",
    "Fleet",
    "FleetAgent",
    "FleetChange",
    "FleetQuestion",
    "FleetQuestions",
    "FleetRow",
    "FleetUsage",
    "Home",
    "Operator",
    "Permissions",
    "RekindleError",
    "Row",
    "TlsSettings",
    "WaitTimeoutError",
    "connect",
    "run",
]

TYPE_CHECKING = False  # type checkers take it as true; `typing` would be slow to import
if TYPE_CHECKING:
    from typing import Any

    from rekindle.api.agent import Agent
    from rekindle.api.fleet import Fleet
    from rekindle.api.fleet_agent import FleetAgent
    from rekindle.api.home import Home
    from rekindle.api.open_connection import connect
    from rekindle.api.operator import Operator
    from rekindle.api.run_agent import run
    from rekindle.documents.manifest import Permissions
    from rekindle.documents.manifest_keys import Budget
    from rekindle.documents.screens.agent_row import AgentRow as Row
    from rekindle.documents.screens.fleet_row import FleetChange, FleetRow, FleetUsage
    from rekindle.errors import DefinitionError, RekindleError, WaitTimeoutError
    from rekindle.policy.fleet.agent_spec import AgentSettings
    from rekindle.policy.fleet.bulk_result import BulkResult
    from rekindle.policy.fleet.fleet_questions import FleetQuestion, FleetQuestions
    from rekindle.policy.settings.fleet_settings import CodecSettings, TlsSettings

_MODULES = {
    "Agent": ("api.agent", "Agent"),
    "AgentSettings": ("policy.fleet.agent_spec", "AgentSettings"),
    "Budget": ("documents.manifest_keys", "Budget"),
    "BulkResult": ("policy.fleet.bulk_result", "BulkResult"),
    "CodecSettings": ("policy.settings.fleet_settings", "CodecSettings"),
    "DefinitionError": ("errors", "DefinitionError"),
    "Fleet": ("api.fleet", "Fleet"),
    "FleetAgent": ("api.fleet_agent", "FleetAgent"),
    "FleetChange": ("documents.screens.fleet_row", "FleetChange"),
    "FleetQuestion": ("policy.fleet.fleet_questions", "FleetQuestion"),
    "FleetQuestions": ("policy.fleet.fleet_questions", "FleetQuestions"),
    "FleetRow": ("documents.screens.fleet_row", "FleetRow"),
    "FleetUsage": ("documents.screens.fleet_row", "FleetUsage"),
    "Home": ("api.home", "Home"),
    "Operator": ("api.operator", "Operator"),
    "Permissions": ("documents.manifest", "Permissions"),
    "RekindleError": ("errors", "RekindleError"),
    "Row": ("documents.screens.agent_row", "AgentRow"),
    "TlsSettings": ("policy.settings.fleet_settings", "TlsSettings"),
    "WaitTimeoutError": ("errors", "WaitTimeoutError"),
    "connect": ("api.open_connection", "connect"),
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
