"""Commands that accept several agents by name, and an agent as an argument instead of `-a`."""

import msgspec
import pytest

from rekindle.wiring.access.trust_checks import accept_folder

RELAY = "## Current Phase\nbuilding\n\n## Next Action\nWrite the {}\n"
NAMES = ("trades", "docs", "0001")


@pytest.fixture
def rekindle(tmp_path, monkeypatch, rekindle):
    """Return a function that runs commands in a project of three agents."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REKINDLE_AGENT", raising=False)
    (tmp_path / "PROMPT.md").write_text("Ship it.\n")
    entries = "".join(f"  '{name}': {{harness: command, command: /bin/true}}\n" for name in NAMES)
    (tmp_path / "rekindle.yaml").write_text(f"version: 1\nagents:\n{entries}")
    accept_folder(tmp_path)
    return rekindle


@pytest.fixture
def relays(rekindle, tmp_path):
    """Commit two relays for each agent."""
    for name in NAMES:
        for thing in ("parser", "printer"):
            (tmp_path / "relay.md").write_text(RELAY.format(f"{thing} of {name}"))
            assert rekindle("relay", "set", "relay.md", "-a", name)[0] == 0


def test_stop_takes_several_agents(rekindle):
    """Each is stopped once; an unknown name stops none of them."""
    code, out, err = rekindle("stop", "trades", "docs", "trades")
    assert (code, out) == (
        0,
        "✓ trades: is not running, and stays stopped\n✓ docs: is not running, and stays stopped\n",
    ), err
    assert msgspec.json.decode(rekindle("stop", "trades", "docs", "--json")[1])["stopped"] == [
        "trades",
        "docs",
    ]
    code, out, err = rekindle("stop", "0001", "tradez")
    assert (code != 0, out) == (True, "")
    assert "tradez" in err
    assert "by you" not in rekindle("status", "0001")[1]


def test_status_takes_several_agents(rekindle):
    """Each has one line, and no other agent has any."""
    code, out, _ = rekindle("status", "trades", "docs")
    assert (code, "trades" in out, "docs" in out, "0001" in out) == (0, True, True, False)
    found = msgspec.json.decode(rekindle("status", "docs", "trades", "docs", "--json")[1])
    assert [row["agent"] for row in found["agents"]] == ["docs", "trades"]
    assert rekindle("status", "--all", "trades", "docs")[0] == 2


def test_restart_takes_several_agents(rekindle, tmp_path):
    """Each is named with the command that starts it; a failing one does not block the others."""
    code, out, err = rekindle("restart", "trades", "docs")
    assert code == 0, err
    for name in ("trades", "docs"):
        assert f"· {name}: nothing is running: it was never started\n" in out
        assert f"Next: `rekindle run {name}`, or `rekindle up {name}`" in out
    found = msgspec.json.decode(rekindle("restart", "trades", "docs", "--json")[1])
    assert found["agents"] == [
        {"agent": name, "desired": None, "supervised": False} for name in ("trades", "docs")
    ]
    manifest = tmp_path / "rekindle.yaml"
    manifest.write_text(
        manifest.read_text().replace(
            "'trades': {harness: command,", "'trades': {harness: command, persona: gone,"
        )
    )
    code, out, err = rekindle("restart", "trades", "docs")
    assert code != 0
    assert "· docs: nothing is running" in out
    assert "no persona named 'gone'" in err


def test_relay_commands_take_the_agent_as_an_argument(rekindle, relays):
    """It works like `-a`; an agent comes before a relay's number."""
    assert "Write the printer of docs" in rekindle("relay", "show", "docs")[1]
    assert rekindle("relay", "history", "docs")[1] == rekindle("relay", "history", "-a", "docs")[1]
    assert "+Write the printer of docs" in rekindle("relay", "diff", "docs")[1]
    printed = msgspec.json.decode(rekindle("relay", "history", "docs", "--json")[1])
    newest, oldest = printed["relays"]
    by_name = rekindle("relay", "diff", "docs", str(oldest["seq"]), str(newest["seq"]))
    assert by_name == rekindle("relay", "diff", "-a", "docs", str(oldest["seq"]))
    assert "+Write the printer of 0001" in rekindle("relay", "diff", "0001")[1]


def test_a_word_that_is_not_an_agent_is_reported(rekindle, relays):
    """It is an unknown agent, and beside `-a` an unexpected argument."""
    assert "no agent named 'tradez'" in rekindle("relay", "show", "tradez")[2]
    assert "'tradez' is not an agent" in rekindle("relay", "diff", "tradez")[2]
    code, _, err = rekindle("relay", "show", "docs", "-a", "trades")
    assert (code, "docs" in err) == (2, True)
    assert rekindle("relay", "diff", "docs", "1", "2", "3")[0] == 2
    err = rekindle("relay", "diff", "-a", "docs", "x")[2]
    assert "is not a relay number" in err
    assert "`rekindle relay history docs --last 0`" in err


def test_an_argument_comes_before_the_variable(rekindle, relays, monkeypatch):
    """REKINDLE_AGENT names the agent only if no argument does."""
    monkeypatch.setenv("REKINDLE_AGENT", "trades")
    assert "printer of docs" in rekindle("relay", "show", "docs")[1]
    assert "printer of docs" in rekindle("relay", "diff", "docs")[1]
    assert "printer of trades" in rekindle("relay", "show")[1]
