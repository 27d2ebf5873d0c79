"""The cost that Rekindle computes for a real CLI, compared with that of the scripted model.

The true cost is what the model's server charges for every request that it answered, at the prices
of the second source. It includes the turns of a process that was killed before it could report.
"""

import json
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest

from e2e.handing import KINDS
from loopback.script import Forever, Text, ToolCall, Usage
from rekindle.policy.exits.stop_reasons import OUTCOMES, STOP_REASONS

SECOND = Path(__file__).parents[1] / "unit/policy/supervision/litellm_prices.json"
PRICES = json.loads(SECOND.read_text())["models"]
TURN = Usage(input=3_000, cache_read=90_000, cache_write=4_000, output=700)
CLI = """\
import os, pathlib, sys
for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
    try:
        parent = path.with_name("stat").read_text().rpartition(")")[2].split()[1]
        words = path.parents[1].joinpath(parent, "cmdline").read_bytes().split(b"\\0")
        own = path.read_bytes()
    except OSError:
        continue
    if words[-3:-1] == [b"run", b"trades"] and sys.argv[1].encode() in own:
        print(path.parent.name)
"""
"""Prints the process ids of the CLI that the supervisor has started."""


def find_model(request):
    """Return the model that a request is for."""
    named = request.body.get("model") if isinstance(request.body, dict) else None
    return named or request.path.rpartition("/")[2].partition(":")[0]


def charge(request):
    """Return the true cost of an answered request, in dollars."""
    used = getattr(request.step, "usage", None)
    if used is None:
        return 0.0
    read, written, cached, stored = PRICES[find_model(request)]
    stored = read if stored is None else stored
    return (
        used.input * read
        + used.cache_read * cached
        + used.cache_write * stored
        + used.output * written
    ) / 1_000_000


def find_cli(found, kind):
    started = found.rekindle.place.start(
        [found.rekindle.program[0], "-c", CLI, kind], env={"PATH": "/bin"}, cwd=found.project
    )
    assert started.wait() == 0, started.err
    return [int(line) for line in started.out.split()]


def with_usage(call):
    return ToolCall(call.name, call.input, TURN)


@pytest.mark.parametrize("kind", KINDS)
def test_the_cost_of_a_run_is_within_five_percent(request, place, kind):
    """Also of a launch that was killed before its CLI reported anything."""
    made, model = KINDS[kind]
    cli, model = request.getfixturevalue(kind), request.getfixturevalue(model)
    found = made(cli, place, model).begin(99)
    model.play(
        with_usage(found.call("a")),
        with_usage(found.call("b", seconds=600)),
        with_usage(found.call("c")),
        Text("all done", TURN),
    )
    running = found.rekindle.start("run", "trades")
    place.wait_for(lambda: (found.project / "began-b").exists() or None)
    until_killed = sum(map(charge, model.log))
    for pid in find_cli(found, kind):
        place.signal(pid, signal.SIGKILL)
    assert running.wait() == 0, running.out + running.err
    killed, ended = found.rekindle.events("launch.ended")
    true = sum(map(charge, model.log))
    figures = f"{killed['run_usd']:.4f}/{until_killed:.4f} {ended['run_usd']:.4f}/{true:.4f}"
    print(f"\n{kind}: computed/true cost of the killed launch and the run, in dollars: {figures}")
    assert killed["exit"] == "crash"
    assert killed["run_usd"] == pytest.approx(until_killed, rel=0.05)
    assert ended["run_usd"] == pytest.approx(true, rel=0.05)
    assert ended["is_estimated"] is True
    assert f"~${ended['run_usd']:.2f}" in found.rekindle("status", "trades")


@pytest.mark.torture
@pytest.mark.parametrize("kind", KINDS)
def test_a_budget_in_dollars_ends_a_run(request, place, kind):
    """No price is set: the CLI's own count or the list price decides."""
    made, model = KINDS[kind]
    cli, model = request.getfixturevalue(kind), request.getfixturevalue(model)
    found = made(cli, place, model)
    cap = 3.5 * charge(SimpleNamespace(step=Text("", TURN), body={"model": found.MODEL}))
    found.MORE = f"{found.MORE}\n    budget: {{usd: {cap:.6f}}}"
    found.begin(99)
    model.play(Forever(with_usage(found.call("a"))))
    found.run(code=OUTCOMES[STOP_REASONS["budget"].outcome].exit_code)
    (ended,) = found.rekindle.events("run.ended")
    assert ended["why"] == "budget"
    spent, true = found.rekindle.events("launch.ended")[-1]["run_usd"], sum(map(charge, model.log))
    print(f"\n{kind}: cap {cap:.4f}, computed {spent:.4f}, true {true:.4f}")
    # The process is ended between two turns, and may already have asked for the next one.
    assert cap <= spent <= true <= cap * 2
