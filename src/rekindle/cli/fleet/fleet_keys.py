"""`rekindle fleet keys`: list the keys in use, and encrypt a fleet's data with the current key."""

from typing import TYPE_CHECKING

import click
import msgspec

from rekindle.cli.options import find_fleet, json_option, open_fleet, require_operator
from rekindle.cli.output import echo, print_json
from rekindle.formats.counts import render_count
from rekindle.thresholds.screens import AGENTS_NAMED

if TYPE_CHECKING:
    from rekindle.fleet.engine.keys_in_use import KeysInUse, KeyUse


@click.command(short_help="List the keys in use, or replace old ones.")
@click.option("--rotate", is_flag=True, help="Encrypt all open data with the first key.")
@json_option
def keys(rotate: bool, as_json: bool) -> None:
    """List the ids of the keys that workers have and that the engine's data needs.

    Before `--rotate`, move the new key to the front of `fleet: codec:` on every host, and restart
    the workers. Agents then change their key at once. A schedule needs its old key until its next
    run. Finished workflows keep their key until the
    engine deletes them.
    """
    project, fleet = find_fleet()
    if rotate:
        require_operator(project)
    store = open_fleet(project, fleet)
    from rekindle.fleet.engine import keys_in_use  # noqa: PLC0415 - needs the fleet extra

    client = store.agents.client
    if rotate:
        store.wait_for(keys_in_use.rotate_keys(client))
    used = store.wait_for(keys_in_use.find_keys_in_use(client))
    if as_json:
        print_json(msgspec.to_builtins(used))
        return
    if not used.keys:
        echo("No key is in use, and nothing is stored.")
    for use in used.keys:
        echo(_render_use(used, use))
    for line in _render_next(used, is_rotated=rotate):
        echo(line)


def _render_use(used: "KeysInUse", use: "KeyUse") -> str:
    label = use.key or "plain text"
    role = " (current)" if use.key and use.key == used.current else ""
    stored = render_count(len(use.stored), "workflow or schedule", "workflows and schedules")
    named = ", ".join(use.stored[:AGENTS_NAMED])
    more = ", …" if len(use.stored) > AGENTS_NAMED else ""
    names = f": {named}{more}" if named and not role else ""
    return f"{label}{role}  {render_count(len(use.workers), 'worker')}, {stored}{names}"


def _render_next(used: "KeysInUse", *, is_rotated: bool) -> list[str]:
    if not used.current:
        return ["Next: `rekindle fleet key` creates a key."]
    if outdated := used.list_outdated():
        count = render_count(len(outdated), "workflow or schedule", "workflows and schedules")
        if is_rotated:
            return [
                f"{count} will change the key with the next report or scheduled run.",
                "Next: repeat `rekindle fleet keys` until no other key is in use.",
            ]
        return [f"Next: `rekindle fleet keys --rotate` encrypts {count} with the current key."]
    if len(used.keys) == 1:
        return []
    hours = f"{used.closed_hours:g} hours"
    return [
        "Open workflows and schedules need only the current key.",
        f"Closed workflows keep the key of their time. The engine deletes them after {hours}.",
        "Next: after that time, remove the other keys from `fleet: codec:` on every host.",
    ]
