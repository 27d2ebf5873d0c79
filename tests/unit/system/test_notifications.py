"""News reaches a person through a real server on loopback, without secrets, and in bounded time."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rekindle.errors import NotifyError, NotifyVariableError
from rekindle.policy.redact.redaction import Redaction
from rekindle.system import notifications
from rekindle.system.notifications import Notifier

WORD = "hunter2-Xq81kLm"


@pytest.fixture
def server(monkeypatch):
    """Keeps what it is sent; /fail refuses, /hang answers when the test is over."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(notifications, "NOTIFY_SECONDS", 60.0)  # however busy the machine is
    over = threading.Event()

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self):
            told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.server.told.append(told)
            if "hang" in self.path:
                over.wait(60)
            self.send_response(500 if "fail" in self.path else 200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        server.told = []
        server.at = f"json://me:{WORD}@127.0.0.1:{server.server_port}"
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield server
        over.set()
        server.shutdown()
        serving.join()


def test_what_is_told_arrives_as_it_is(server):
    """Title and text, lines and letters of all kinds; markup stays what it is."""
    failures = Notifier([server.at]).send(
        "trades: needs you", "5 crashes\n<b>ä</b> \ud800 漢", "failure"
    )
    assert failures == []
    (told,) = server.told
    assert (told["title"], told["type"]) == ("trades: needs you", "failure")
    assert told["message"] == "5 crashes\n<b>ä</b> ? 漢"


def test_secrets_are_not_told(server):
    """Secrets in an agent's words are redacted, except those that the project allows."""
    key = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"
    assert Notifier([server.at]).send(f"key {key}", f"token={key}") == []
    assert key not in json.dumps(server.told)
    assert "[redacted:" in server.told[0]["title"]
    assert "[redacted:" in server.told[0]["message"]
    assert Notifier([server.at], Redaction((key,))).send("allowed", f"key {key}") == []
    assert key in server.told[1]["message"]


def test_variables_are_resolved_by_the_host_that_sends(server):
    """An unset variable is named, and does not keep the others from being notified."""
    addresses = [f"json://me:$WORD@{server.at.partition('@')[2]}", "$ALERTS", "$GONE"]
    found = Notifier(addresses, environ={"WORD": WORD, "ALERTS": server.at})
    assert found.send("a", "b") == ["address 3 of `notify:` was not notified: $GONE is not set"]
    assert len(server.told) == 2
    with pytest.raises(NotifyVariableError, match=r"\$GONE") as refused:
        found.check()
    assert refused.value.variable == "GONE"
    Notifier(addresses[:2], environ={"WORD": WORD, "ALERTS": server.at}).check()
    assert len(server.told) == 2


def test_each_failure_is_told_by_its_place_and_no_secret_with_it(server):
    """One refuses, one has no listener, one is not an address."""
    urls = [
        f"{server.at}/fail/{WORD}",
        server.at,
        f"json://me:{WORD}@127.0.0.1:1/{WORD}",
        f"nonsense://{WORD}",
        WORD,
    ]
    failures = Notifier(urls).send("a", "b")
    assert failures == [
        "address 1 of `notify:` (json) was not notified: failed",
        "address 3 of `notify:` (json) was not notified: failed",
        "address 4 of `notify:` (nonsense) was not notified: unknown",
        "address 5 of `notify:` was not notified: unknown",
    ]
    assert len(server.told) == 2


def test_a_server_that_does_not_answer_does_not_block(server, monkeypatch):
    """The timeout is for all together; those notified by then were notified."""
    monkeypatch.setattr(notifications, "NOTIFY_SECONDS", 8.0)
    failures = Notifier([f"{server.at}/hang?rto=3600", server.at]).send("a", "b")
    assert failures == ["address 1 of `notify:` (json) was not notified: it timed out"]
    assert len(server.told) == 2


def test_sending_never_raises(server, monkeypatch):
    """This holds if no process can be started, or the extra is not installed."""
    assert Notifier([]).send("a", "b") == []
    with monkeypatch.context() as patched:
        patched.setattr(sys, "executable", "/nowhere/python")
        failures = Notifier([server.at]).send("a", "b")
        assert failures == ["no notification was sent: FileNotFoundError"]
    monkeypatch.setitem(sys.modules, "apprise", None)
    assert Notifier([server.at]).send("a", "b") == [
        (
            "no notification was sent, because apprise is not installed"
            " (pip install 'rekindle-agents[notify]')"
        )
    ]


def test_a_check_says_what_is_missing_and_sends_nothing(server, monkeypatch):
    """Good addresses pass; one that apprise cannot use is named by its place, not by itself."""
    Notifier([]).check()
    Notifier([server.at, f"{server.at}/fail"]).check()
    for wrong in (f"nonsense://{WORD}", f"slack://{WORD}", WORD, ""):
        with pytest.raises(NotifyError, match="address 2 of `notify:`") as caught:
            Notifier([server.at, wrong]).check()
        assert WORD not in str(caught.value) + caught.value.hint
        assert notifications.INSTALL_HINT in caught.value.hint
    assert server.told == []
    monkeypatch.setitem(sys.modules, "apprise", None)
    with pytest.raises(NotifyError, match="apprise") as caught:
        Notifier([server.at]).check()
    assert caught.value.hint == "pip install 'rekindle-agents[notify]'"
