"""Prometheus reads the metrics of all projects from the server of the pages."""

from rekindle.web.project_metrics import WebMetrics
from rekindle.web.project_rows import WebProjects


def test_a_scrape_with_the_token_gets_the_states(page, links):
    page.headers["Authorization"] = f"Bearer {links.read_metrics_token()}"
    answer = page.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    line = 'rekindle_agent_state{project="shop",agent="trades",state="stopped"} 1'
    assert line in answer.text.splitlines()


def test_the_token_permits_nothing_else(page, links):
    page.headers["Authorization"] = f"Bearer {links.read_metrics_token()}"
    assert page.get("/api/server").status_code == 401
    assert page.post("/api/act", json={}).status_code == 401


def test_a_scrape_without_a_token_is_refused(page):
    for header in ("", "Bearer ", "Bearer x", "Basic x"):
        page.headers["Authorization"] = header
        assert page.get("/metrics").status_code == 401
    assert page.get("/metrics", headers={"Host": "evil.test"}).status_code == 421


def test_the_token_outlives_the_server(links):
    token = links.read_metrics_token()
    with links.hold():
        links.make_link()
    assert links.read_metrics_token() == token


def test_an_unreadable_project_is_down(project):
    metrics = WebMetrics(WebProjects(project))
    assert 'rekindle_project_up{project="shop"} 1' in metrics.render()
    (project / "rekindle.yaml").write_text("version: 1\nagents: [")
    assert 'rekindle_project_up{project="shop"} 0' in metrics.render()
