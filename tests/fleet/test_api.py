"""The Python API over a fleet: real engine, real worker."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import rekindle
from documented import join_python
from documented_agent import write_project
from fleet.engine import Engine
from fleet.working import Place, worker
from rekindle import events
from rekindle.errors import UsageError
from rekindle.wiring.access import trust_checks

GUIDE = Path(__file__).parents[2] / "docs/guides/python.md"
pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def shop(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project whose agents are on a fleet with one host."""
    place = Place(tmp_path, "scout")
    folder = place.project = place.project.rename(tmp_path / "shop")
    fleet = f"fleet: {{address: '{engine.address}', pool: api, heartbeat_timeout: 10s}}\n"
    summarizer = "personas: {summarizer: {adapter: command, command: ['false']}}\n"
    write_project(folder, "scout", more=summarizer + fleet)
    place.push()
    trust_checks.accept_folder(folder)
    monkeypatch.chdir(tmp_path)
    with worker(folder, tmp_path / "host", "a"):
        yield folder


def test_the_guide_runs_as_written(shop, capsys):
    """What works on this host only is refused, with another way."""
    exec(compile(join_python(GUIDE.read_text(), ""), "python.md", "exec"), {})  # noqa: S102 - the guide
    printed = capsys.readouterr().out
    assert "asks: Waiting for Ann to choose a database" in printed
    assert "ended: done" in printed
    assert "['Use sqlite']" in printed
    with rekindle.connect(shop) as home:
        scout = home.agent("scout")
        assert (scout.row().state, home.questions()) == ("done", [])
        kinds = {type(event) for event in scout.events()}
        assert {events.QuestionAnswered, events.RunEnded, events.LoopResolved} <= kinds
        with pytest.raises(UsageError, match="does not work for agents on a fleet"):
            scout.relay.set("## Next Action\nShip it.\n")
        with pytest.raises(rekindle.RekindleError, match="does not have a cap"):
            scout.raise_budget(usd=5)
