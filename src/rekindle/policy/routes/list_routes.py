"""List the routes on which an agent's work can run, in the order of its manifest."""

from collections.abc import Mapping

import msgspec

from rekindle.documents.launches.route import Route
from rekindle.documents.manifest import AgentEntry, Manifest
from rekindle.documents.manifest_routes import HarnessEntry


class RoutePlan(msgspec.Struct, frozen=True):
    """A route, and the entry of the agent's `harness:` list that it belongs to."""

    route: Route
    entry: HarnessEntry


def list_routes(
    manifest: Manifest, agent: str, aliases: Mapping[str, str], *, switches: bool
) -> list[RoutePlan]:
    """Return an agent's routes: for each CLI in order, each of its accounts in order.

    A CLI without a listed account uses its own configuration. Without `switches`, only the first
    account of each CLI is used. `aliases` maps other names of CLIs to those in routes.
    """
    entry = manifest.agents[agent]
    plans: dict[Route, RoutePlan] = {}
    own_item = HarnessEntry(entry.harness, entry.persona, entry.command)
    for item in entry.harnesses or [own_item]:
        harness = aliases.get(item.use, item.use)
        own = list_accounts(manifest, entry, harness, aliases)
        for account in (own if switches else own[:1]) or [""]:
            route = Route(harness, account)
            plans.setdefault(route, RoutePlan(route, item))
    return list(plans.values())


def list_accounts(
    manifest: Manifest, entry: AgentEntry, harness: str, aliases: Mapping[str, str]
) -> list[str]:
    """Return the names of the agent's accounts of a CLI, in order."""
    owners = {name: account.harness for name, account in manifest.accounts.items()}
    return [
        name
        for name in entry.accounts or ()
        if name in owners and aliases.get(owners[name], owners[name]) == harness
    ]
