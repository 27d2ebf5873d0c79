"""Recordings of the agents behind the bridge that are still true; CI plays two of the agents."""

import pytest

from loopback import install
from loopback.acp_agents import AGENTS
from loopback.fixtures import installed
from loopback.model import Model
from recordings.acp_cases import CASES, KEPT, SANDBOXES, AcpTape
from recordings.tape import traces
from sampling import WHOLE

pytestmark = [pytest.mark.torture, pytest.mark.timeout(600)]

ALL = [(agent, case) for agent in CASES for case in CASES[agent]]
IN_CI = [
    *(("kimi", case) for case in ("tool", "resume-after-sigkill")),
    ("copilot", "tool"),
]
"""The two agents that are the smallest and start the fastest."""


def shape(tape):
    """Return the types in the stream once each: the number of usage reports varies."""
    kinds = [line["type"] if isinstance(line, dict) else "torn" for line in tape.stream]
    return {kind for kind in kinds if kind != "alive"}


@pytest.mark.parametrize(("agent", "case"), ALL if WHOLE else IN_CI)
def test_a_recording_of_an_agent_is_still_true(agent, case, network, place, tmp_path):
    """The same launch has the same output and exit, and the model sees the old conversation."""
    program = installed(AGENTS[agent].package)
    if AGENTS[agent].node:
        installed(install.NODE)
    with Model(AGENTS[agent].api.dialect(), network.listener) as model:
        sandbox = SANDBOXES[agent](program, model=model, place=place, root=tmp_path / agent)
        now = CASES[agent][case](sandbox, model)
    kept = AcpTape.read(KEPT[agent] / f"{case}.jsonl")
    assert now.code == kept.code
    assert shape(now) == shape(kept)


@pytest.mark.parametrize("agent", CASES)
def test_every_case_is_recorded_and_tells_nothing_of_the_machine(agent):
    """Each case has one recording of the pinned version, without a path or a key."""
    assert {path.stem for path in KEPT[agent].glob("*.jsonl")} == set(CASES[agent])
    for path in KEPT[agent].glob("*.jsonl"):
        text = path.read_text()
        assert traces(text) == [], path.name
        assert "sk-test" not in text
