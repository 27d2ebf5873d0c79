"""`rekindle decisions`: the decisions in force, and the fate of the others."""

import json

import pytest

from rekindle.cli import main


@pytest.fixture
def rekindle(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REKINDLE_AGENT", raising=False)

    def run(*arguments):
        code = main.run(list(arguments))
        said = capfd.readouterr()
        assert code == 0, said.err
        return said.out

    run("init", "--yes", "--agent", "bakery")
    return run


def hand_in(rekindle, tmp_path, decided, rest=""):
    text = f"## Key Decisions Made\n{decided}\n\n## Next Action\nBake.\n{rest}"
    (tmp_path / "next.md").write_text(text)
    rekindle("relay", "set", "next.md")


def found(rekindle, *arguments):
    return json.loads(rekindle("decisions", *arguments, "--json"))["decisions"]


def test_only_what_the_relay_holds_is_in_force(rekindle, tmp_path):
    assert "No decision" in rekindle("decisions")
    hand_in(rekindle, tmp_path, "- Rye: keeps longer (2026-05-01)\n- Two ovens")
    hand_in(rekindle, tmp_path, "- Rye: people like it (2026-05-02)")
    (one,) = found(rekindle)
    assert (one["text"], one["made"], one["status"]) == (
        "Rye: people like it",
        "2026-05-02",
        "in force",
    )
    assert one["last"]["seq"] > 0
    assert "people like it" in rekindle("decisions", "bakery")


def test_what_is_gone_is_found_with_where_it_stood(rekindle, tmp_path):
    hand_in(rekindle, tmp_path, "- Rye: keeps longer\n- Two ovens")
    hand_in(rekindle, tmp_path, "- Rye: people like it")
    old, dropped, new = found(rekindle, "--all")
    assert (old["status"], old["by"]) == ("superseded", "Rye: people like it")
    assert (dropped["text"], dropped["status"]) == ("Two ovens", "dropped")
    assert old["first"]["seq"] == old["last"]["seq"] < new["first"]["seq"]
    assert [one["text"] for one in found(rekindle, "--search", "ovens TWO")] == ["Two ovens"]
    assert found(rekindle, "--search", "marble") == []
    shown = rekindle("decisions", "--all")
    assert "superseded" in shown
    assert "→ Rye: people like it" in shown


def test_what_was_trimmed_is_archived_and_holds(rekindle, tmp_path):
    many = "\n".join(f"- Rule {n}: {'flour and water ' * 20}(2026-05-{n:02})" for n in range(1, 29))
    hand_in(rekindle, tmp_path, f"- Cash only: no fees (2026-04-01)\n{many}")
    assert "Cash only: no fees" not in rekindle("decisions")
    (one,) = found(rekindle, "--search", "cash")
    assert one["status"] == "archived"


def test_what_was_trimmed_from_below_a_heading_is_found(rekindle, tmp_path):
    many = "\n".join(f"- Rule {n}: {'flour and water ' * 20}(2026-05-{n:02})" for n in range(1, 29))
    decided = f"### Spring\n- Cash only: no fees (2026-04-01)\n\n### Summer\n{many}"
    hand_in(rekindle, tmp_path, decided)
    assert found(rekindle, "--search", "cash")[0]["status"] == "archived"


def test_an_uncommitted_edit_counts(rekindle, tmp_path):
    hand_in(rekindle, tmp_path, "- Rye: keeps longer")
    relay = tmp_path / ".rekindle/agents/bakery/memories/consensus.md"
    relay.write_text(relay.read_text().replace("keeps longer", "people like it"))
    assert found(rekindle)[0]["text"] == "Rye: people like it"
    assert [one["status"] for one in found(rekindle, "--all")] == ["superseded", "in force"]


def test_the_plain_call_does_not_read_the_history(rekindle, tmp_path):
    hand_in(rekindle, tmp_path, "- Rye: keeps longer")
    hand_in(rekindle, tmp_path, "- Rye: people like it")
    for kept in (tmp_path / ".rekindle/agents/bakery/memories/archive").iterdir():
        kept.unlink()
    assert found(rekindle)[0]["text"] == "Rye: people like it"


def test_a_relay_that_the_archive_has_lost_drops_nothing(rekindle, tmp_path):
    for number in range(3):
        hand_in(rekindle, tmp_path, "- Two ovens", f"Batch {number}.\n")
    archive = tmp_path / ".rekindle/agents/bakery/memories/archive"
    sorted(archive.iterdir())[1].unlink()
    (one,) = found(rekindle, "--all")
    assert one["status"] == "in force"
    assert one["first"]["seq"] < one["last"]["seq"]


def test_an_agent_without_a_relay_has_none(rekindle):
    assert found(rekindle) == found(rekindle, "--all") == []
