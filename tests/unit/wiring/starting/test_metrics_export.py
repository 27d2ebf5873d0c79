"""The daemon exports the metrics of the projects whose operator asked for it."""

import threading
import urllib.error
import urllib.request

import pytest

from collector import collecting
from fleet.engine import free_port
from rekindle import config
from rekindle.errors import ManifestError, UsageError
from rekindle.wiring.access import trust_checks
from rekindle.wiring.starting import metrics_export
from rekindle.wiring.starting.metrics_export import export_metrics


@pytest.fixture
def make_project(tmp_path):
    def make(name, metrics):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        (folder / "rekindle.yaml").write_text(
            "version: 1\nagents: {trades: {harness: codex}}\n"
            f"runtime: {{metrics: {{{metrics}}}}}\n"
        )
        return folder

    return make


@pytest.fixture
def make_accepted(make_project):
    def make(name, metrics):
        folder = make_project(name, metrics)
        trust_checks.accept_folder(folder)
        trust_checks.accept_settings(config.load_project(folder), "trades")
        return folder

    return make


def read_page(address, path="/metrics"):
    with urllib.request.urlopen(f"http://{address}{path}", timeout=30) as page:
        return page.read().decode()


def test_projects_with_the_same_address_share_it(make_accepted):
    address = f"127.0.0.1:{free_port()}"
    folders = [make_accepted(name, f"prometheus: '{address}'") for name in ("shop", "bank")]
    folders.append(make_accepted("quiet", ""))
    export_metrics(lambda: folders)
    text = read_page(address)
    assert 'rekindle_project_up{project="shop"} 1\n' in text
    assert 'rekindle_project_up{project="bank"} 1\n' in text
    assert "quiet" not in text
    with pytest.raises(urllib.error.HTTPError, match="404"):
        read_page(address, "/")


def test_an_address_that_an_agent_changed_is_not_used(make_accepted, make_project):
    address = f"127.0.0.1:{free_port()}"
    folder = make_accepted("shop", f"prometheus: '{address}'")
    export_metrics(lambda: [folder])
    assert "shop" in read_page(address)
    other = f"127.0.0.1:{free_port()}"
    make_project("shop", f"prometheus: '{other}'")
    export_metrics(lambda: [folder])
    with pytest.raises(urllib.error.URLError):
        read_page(other)
    assert read_page(address) == ""


def test_an_address_in_use_is_refused(make_accepted):
    folder = make_accepted("shop", f"prometheus: ':{free_port()}'")
    export_metrics(lambda: [folder])
    with pytest.raises(UsageError, match="cannot be served") as refused:
        export_metrics(lambda: [folder])
    assert "runtime: metrics:" in refused.value.hint


def test_an_address_that_is_not_one_is_refused(make_project):
    with pytest.raises(ManifestError, match="not an address"):
        config.load_project(make_project("shop", "prometheus: '9464'"))


def test_a_collector_gets_the_metrics(make_accepted, monkeypatch):
    """A collector that refuses a request gets the next one."""
    sent = threading.Event()

    def wait(_seconds):
        if got.bodies:
            sent.set()
            threading.Event().wait()
        got.status = 200

    monkeypatch.setattr(metrics_export.time, "sleep", wait)
    with collecting(503) as got:
        folder = make_accepted("shop", f"otlp: '{got.url}'")
        export_metrics(lambda: [folder])
        assert sent.wait(120)
    assert got.headers[0]["path"] == "/v1/metrics"
    assert b"rekindle_agent_info" in got.bodies[0]
