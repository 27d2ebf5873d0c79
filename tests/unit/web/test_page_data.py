"""The data of the pages, read from a recorded night."""

import pytest

import recorded_night
from recorded_night import QUESTION
from rekindle.system import clock
from unit.cli.pipelines.conftest import git, make_run

__all__ = ["git", "make_run"]

TRADES = "project=shop&agent=trades"


@pytest.fixture
def project(project):
    """Replace the empty project by one with a recorded night."""
    return recorded_night.write_night(project, clock.read_clock())


def read(page, path):
    response = page.get(path)
    assert response.status_code == 200, response.text
    return response.json()


def test_an_agent_has_its_state_its_questions_and_its_documents(page):
    agent = read(page, f"/api/agent?{TRADES}")
    assert agent["row"]["state"] == "needs you"
    assert [question["text"] for question in agent["questions"]] == [QUESTION]
    assert QUESTION in agent["relay"]["text"]
    assert len(agent["relay"]["revisions"]) == 3
    assert "Store times in UTC." in agent["decisions"]
    assert [loop["id"] for loop in agent["loops"]] == ["rate-limit"]


def test_a_night_has_spans_marks_lines_and_points(page):
    night = read(page, f"/api/night?{TRADES}&hours=24")
    assert {span["lane"] for span in night["spans"]} >= {"session", "wait"}
    kinds = {mark["kind"] for mark in night["marks"]}
    assert {"crash", "handoff", "relay", "cycle", "question", "answer"} <= kinds
    assert any("crashed" in line["text"] for line in night["lines"])
    assert night["window"]
    assert night["spend"]
    assert night["handoff_percent"] == 70


def test_a_shorter_night_has_fewer_lines(page):
    whole, part = (read(page, f"/api/night?{TRADES}&hours={hours}") for hours in (24, 1))
    assert 0 < len(part["lines"]) < len(whole["lines"])


def test_two_relays_are_compared(page):
    revisions = read(page, f"/api/agent?{TRADES}")["relay"]["revisions"]
    newest, *_, oldest = [one["seq"] for one in revisions]
    diff = read(page, f"/api/diff?{TRADES}&older={oldest}&newer={newest}")["diff"]
    assert f"--- relay {oldest}" in diff
    assert "+Waiting for a person: Ten or a hundred updates an hour?" in diff


def test_words_are_found_in_the_transcripts(page):
    hits = read(page, "/api/search?project=shop&words=profile&file=api.py")["hits"]
    assert hits
    assert {hit["agent"] for hit in hits} == {"trades"}
    other = read(page, "/api/search?project=shop&words=profile&agent=docs")["hits"]
    assert other == []


def test_the_output_is_that_of_logs(page):
    lines = read(page, f"/api/output?{TRADES}")["lines"]
    assert any("crash" in line or "SIGKILL" in line for line in lines)


def test_the_morning_has_every_agent(page):
    [found] = read(page, "/api/morning")["pages"]
    entries = {entry["agent"]: entry["state"] for entry in found["page"]["entries"]}
    assert entries["trades"] == "needs you"
    assert len(entries) == 5


def test_a_project_without_pipelines_has_no_runs(page):
    assert read(page, "/api/runs") == {"runs": []}


def test_a_raised_budget_is_shown(page):
    asked = {"id": "1", "project": "shop", "agent": "trades", "action": "raise budget"}
    result = page.post("/api/act", json={**asked, "text": "25"}).json()
    assert result["code"] == 0, result
    assert result["command"] == "rekindle budget --usd 25 trades"
    assert read(page, f"/api/agent?{TRADES}")["row"]["spend"]["usd_cap"] == 25
    wrong = page.post("/api/act", json={**asked, "id": "2", "text": "--help"}).json()
    assert wrong["code"] == 2


class TestRuns:
    @pytest.fixture
    def project(self, make_run, tmp_path):
        make_run().finish()
        (make_run("ship").folder.path / "definition.json").write_text("{")
        return tmp_path

    def test_each_run_has_its_steps_or_an_error(self, page):
        runs = {run["name"]: run for run in read(page, "/api/runs")["runs"]}
        steps = runs["review 1"]["row"]["steps"]
        assert [(step["step"], step["state"]) for step in steps] == [
            ("plan", "done"),
            ("build", "done"),
        ]
        assert "definition.json" in runs["ship 1"]["error"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/agent?project=shop&agent=other", 404),
        ("/api/agent?project=other&agent=trades", 404),
        ("/api/agent", 404),
        (f"/api/night?{TRADES}", 400),
        (f"/api/night?{TRADES}&hours=x", 400),
        (f"/api/diff?{TRADES}&older=1&newer=2", 404),
        ("/api/search?project=shop", 400),
    ],
)
def test_a_wrong_question_is_explained(page, path, status):
    response = page.get(path)
    assert (response.status_code, bool(response.json()["error"])) == (status, True)
