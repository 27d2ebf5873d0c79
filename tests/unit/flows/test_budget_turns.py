"""The spending of a launch of a CLI that reports its turns in its transcript alone."""

import pytest

from rekindle.documents import events
from rekindle.documents.launches.launch_types import (
    UsageReport,
    WindowUsage,
)
from rekindle.documents.manifest_keys import Budget
from rekindle.stores.log import inbox
from unit.flows.cycles.test_cycle_runner import Scene

TURN = 410


@pytest.fixture
def scene(store, clock, tmp_path):
    return Scene(store, clock, tmp_path)


def test_equal_turns_all_count(scene, tmp_path):
    """This holds for turns of one moment; the launch ends as soon as the cap is reached."""
    transcript = tmp_path / "transcript"
    transcript.touch()
    scene.harness.turn = lambda line: UsageReport(
        WindowUsage(TURN, None, "unknown"), line.decode().split()[-1]
    )
    scene.facts["budget"] = Budget(tokens=5 * TURN)

    def hooked():
        session = scene.harness.starts[-1].session
        started = events.SessionStarted(
            ts=scene.clock(),
            session=session,
            harness="fake",
            source="startup",
            transcript=str(transcript),
        )
        inbox.append_records(scene.store.folder("trades").private.inbox, [started], durable=False)
        scene.rest(0.3)

    def turns(*names):
        def tick():
            with transcript.open("a") as file:
                file.writelines(f"turn {name}\n" for name in names)
            scene.rest(0.3)

        return tick

    told = []

    def look():
        told.append(list(scene.processes.children[-1].told))

    shown = [turns("1", "2"), look, turns("2", "3", "4"), look, turns("5"), look]
    scene.plays(("crash", scene.opens(), hooked, *shown))
    outcome = scene.run()
    assert told == [[], [], ["ask"]]
    assert outcome.why == "budget"
    assert scene.logged(events.LaunchEnded)[-1].run_tokens == 5 * TURN
