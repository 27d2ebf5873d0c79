"""`rekindle relay replay`: a history of relays that need not be ours."""

import json
import lzma
import shutil

import pytest

from throwaway import Repository, isolate

STEPS = ["Write the lexer", *["Wait for Ann to choose a name"] * 4, "Write the parser"]


@pytest.fixture
def rekindle(tmp_path, monkeypatch, rekindle):
    """Return a function that runs commands in an empty folder."""
    monkeypatch.chdir(tmp_path)
    isolate(monkeypatch, tmp_path / "home")
    return rekindle


def relay(directive: str, number: int = 0) -> str:
    return f"# Relay {number}\n\n## Next Action\n{directive}\n"


def jsonl(steps: list[str], **more: str) -> str:
    rows = [{"text": relay(step, number), **more} for number, step in enumerate(steps)]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def lines(result):
    code, out, err = result
    assert code == 0, err
    return [json.loads(line) for line in out.splitlines()]


@pytest.fixture
def repository(tmp_path):
    made = Repository(tmp_path / "repo").init()
    (made.path / "notes").mkdir()
    made.commit("other.txt")
    for number, step in enumerate(STEPS):
        made.commit("notes/[r] élan.md", relay(step, number))
    made.commit("other.txt", "more")
    return made


def test_a_jsonl_gives_a_line_for_each_pair_and_each_stretch(rekindle, tmp_path):
    """Pairs are counted from 0; the stretch names what it was stuck on and what that cost."""
    (tmp_path / "history.jsonl").write_text(jsonl(STEPS))
    *pairs, stretch = lines(rekindle("relay", "replay", "history.jsonl", "--json"))
    assert [(one["prev"], one["curr"]) for one in pairs] == [(n, n + 1) for n in range(5)]
    assert [one["verdict"] for one in pairs] == [*["waiting"] * 4, "progress"]
    assert all(one["why"] for one in pairs)
    assert stretch == {
        "stretch": [0, 4],
        "verdicts": {"waiting": 4},
        "cycles": 4,
        "about": "Wait for Ann to choose a name",
    }


def test_a_compressed_one_is_the_same(rekindle, tmp_path):
    """It is recognised by its first bytes, whatever its name is."""
    (tmp_path / "plain").write_text(jsonl(STEPS))
    (tmp_path / "packed").write_bytes(lzma.compress(jsonl(STEPS).encode()))
    plain, packed = (rekindle("relay", "replay", name, "--json") for name in ("plain", "packed"))
    assert lines(plain) == lines(packed)


def test_the_page_says_where_on_what_and_for_how_long(rekindle, tmp_path):
    """A person sees the days, the cycles and the directive."""
    text = jsonl(STEPS, ts="2026-04-09T12:00:00Z") + jsonl(["Bind names"] * 4, ts="2026-04-10")
    (tmp_path / "history.jsonl").write_text(text)
    code, out, _ = rekindle("relay", "replay", "history.jsonl")
    assert code == 0
    assert "10 relays, 9 cycles between them (2026-04-09 to 2026-04-10)" in out
    assert "Stuck 2 times, for 7 of 9 cycles (78%)" in out
    assert "relays 0–4 (2026-04-09): 4 cycles, waiting\n    Wait for Ann to choose a name" in out
    assert "relays 6–9 (2026-04-10): 3 cycles, stalled\n    Bind names" in out
    assert "The longest stretch cost 4 cycles: relays 0 to 4." in out


def test_a_history_that_goes_well_is_called_so(rekindle, tmp_path):
    """Two cycles on the same task are not a stall."""
    (tmp_path / "history.jsonl").write_text(jsonl(["Lex the source", *["Parse it"] * 3]))
    code, out, _ = rekindle("relay", "replay", "history.jsonl")
    assert code == 0
    assert "✓ not stuck: never 3 cycles in a row without progress" in out


@pytest.mark.parametrize("text", ["", jsonl(["Lex"]), jsonl(["TBD", "TBD", "TBD"])])
def test_relays_that_cannot_be_compared_are_reported(rekindle, tmp_path, text):
    """Without two consecutive relays with a directive, the history does not count as going well."""
    (tmp_path / "history.jsonl").write_text(text)
    code, out, _ = rekindle("relay", "replay", "history.jsonl")
    assert code == 0
    assert "Nothing to compare" in out
    assert "✓ not stuck" not in out


def test_a_file_of_a_git_repository_is_followed_through_its_commits(rekindle, repository):
    """Only the commits that changed it count; names are taken literally."""
    *pairs, stretch = lines(rekindle("relay", "replay", "repo:notes/[r] élan.md", "--json"))
    assert len(pairs) == len(STEPS) - 1
    assert (stretch["stretch"], stretch["about"]) == ([0, 4], "Wait for Ann to choose a name")
    below = rekindle("relay", "replay", "repo/notes:[r] élan.md", "--json")
    assert lines(below) == [*pairs, stretch]


def test_side_branches_removals_and_bare_repositories(rekindle, repository, tmp_path):
    """A merge is one step of the main line; commits without the file are left out."""
    name = "notes/[r] élan.md"
    before = len(lines(rekindle("relay", "replay", f"repo:{name}", "--json")))
    repository.git("checkout", "-q", "-b", "side")
    for number in range(3):
        repository.commit(name, relay("Write the binder", number))
    repository.git("checkout", "-q", "main")
    repository.git("merge", "-q", "--no-ff", "-m", "Merge", "side")
    repository.git("rm", "-q", f":(literal){name}")
    repository.git("commit", "-q", "-m", "Remove it")
    after = lines(rekindle("relay", "replay", f"repo:{name}", "--json"))
    assert len(after) == before + 1
    repository.git("clone", "-q", "--bare", ".", str(tmp_path / "bare"))
    assert lines(rekindle("relay", "replay", f"bare:{name}", "--json")) == after


def test_reading_a_history_runs_nothing_and_leaves_nothing(rekindle, repository):
    """Hooks, filters and monitors of a foreign repository are not run."""
    trap = repository.path / "trap"
    (repository.path / ".gitattributes").write_text("* filter=trap diff=trap\n")
    for key in ("core.fsmonitor", "filter.trap.smudge", "diff.trap.textconv", "core.pager"):
        repository.git("config", key, f"touch {trap}")
    kept = {"HEAD", "config", "index", "refs"}
    before = repository.users_own()
    trap.unlink(missing_ok=True)  # reading the status has sprung it
    assert rekindle("relay", "replay", "repo:other.txt")[0] == 0
    assert not trap.exists()
    after = repository.users_own()
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}


def test_an_unreadable_history_is_refused_with_a_hint(rekindle, repository, tmp_path):
    """Each error has the exit code of its kind, and the line number if there is one."""
    Repository(tmp_path / "empty").init()
    (tmp_path / "broken.jsonl").write_text(jsonl(["Lex"]) + "{\n")
    (tmp_path / "other.jsonl").write_text('{"text": 3}\n')
    (tmp_path / "cut.xz").write_bytes(lzma.compress(jsonl(STEPS).encode())[:-20])
    for source, code, complaint in (
        ("nowhere", 7, "neither a file nor REPO:PATH"),
        ("repo:missing.md", 7, "no commit in repo has the file 'missing.md'"),
        ("repo:notes", 7, "no commit in repo has the file 'notes'"),
        ("repo:", 7, "'' is not a valid file name"),
        ("repo:../elsewhere.md", 5, "outside repository"),
        ("empty:relay.md", 5, "there is no commit yet"),
        ("broken.jsonl", 4, "broken.jsonl:2"),
        ("other.jsonl", 4, "other.jsonl:1: is not a revision"),
        ("cut.xz", 4, "is broken"),
    ):
        found = rekindle("relay", "replay", source)
        assert found[0] == code, source
        assert complaint in found[2]
        assert "→" in found[2]


def test_without_git_only_git_histories_are_out_of_reach(
    rekindle, repository, tmp_path, monkeypatch
):
    """The error says what to install."""
    (tmp_path / "history.jsonl").write_text(jsonl(STEPS))
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    code, _, err = rekindle("relay", "replay", "repo:other.txt")
    assert (code, "git is not installed" in err) == (5, True)
    assert rekindle("relay", "replay", "history.jsonl")[0] == 0
