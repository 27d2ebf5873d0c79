"""A double of an ntfy server on the loopback, with the phone that reads it.

    with Ntfy(tokens={"tk_a": {"news": "rw"}}, everyone={"replies": "w"}) as double:
        double.press("news", "Deny")     # the phone runs the button's action: a real HTTP request
        double.messages["news"]          # what was published, as JSON

It keeps these properties of the service: publishing by body and headers, or as JSON to the root;
reading as JSON lines with `poll` and `since`, an `open` event first, then keepalives; at most three
actions; 403 without access; `failures` lists status codes for the next messages.
"""

import json
import queue
import secrets
import time
import urllib.request
from urllib.parse import parse_qs, urlsplit

from phone.double_server import DoubleServer

FORBIDDEN = 403, {"code": 40301, "http": 403, "error": "forbidden"}
_HEADERS = ("title", "priority", "tags", "click", "delay", "markdown")


class Ntfy(DoubleServer):
    def __init__(self, tokens, everyone=None, *, keepalive=45.0):
        self.tokens, self.everyone, self.keepalive = tokens, everyone or {}, keepalive
        self.messages, self.failures, self._readers = {}, [], {}
        super().__init__()

    def exchange(self, http, body):
        parts = urlsplit(http.path)
        topic, _, form = parts.path.strip("/").partition("/")
        if http.command == "GET":
            given = {name: values[-1] for name, values in parse_qs(parts.query).items()}
            return self._read(http, topic, form, given)
        if topic:
            named = {name: http.headers.get(name) for name in _HEADERS}
            given = {**named, "message": body.decode()}
        else:
            given = json.loads(body)
            topic = given.pop("topic")
        return self._publish(http, topic, given)

    def _find_access(self, http, topic):
        token = (http.headers.get("authorization") or "").removeprefix("Bearer ")
        return self.tokens.get(token, {}).get(topic, "") or self.everyone.get(topic, "")

    def _publish(self, http, topic, given):
        if "w" not in self._find_access(http, topic):
            return FORBIDDEN
        if self.failures:
            return self.failures.pop(0), {"code": 42901, "http": 429, "error": "limit reached"}
        if len(given.get("actions") or []) > 3:
            return 400, {"code": 40018, "http": 400, "error": "too many actions"}
        event = self._make_event(topic, "message", **{k: v for k, v in given.items() if v})
        self.messages.setdefault(topic, []).append(event)
        for reader in self._readers.get(topic, []):
            reader.put(event)
        return 200, event

    def _read(self, http, topic, form, given):
        if "r" not in self._find_access(http, topic) or form != "json":
            return FORBIDDEN
        heard = queue.Queue()
        self._readers.setdefault(topic, []).append(heard)
        old = _select_since(list(self.messages.get(topic, [])), given.get("since", "none"))
        http.start_stream()
        try:
            if "poll" not in given:
                http.write_line(self._make_event(topic, "open"))
            for event in old:
                http.write_line(event)
            while "poll" not in given:
                try:
                    http.write_line(heard.get(timeout=self.keepalive))
                except queue.Empty:
                    http.write_line(self._make_event(topic, "keepalive"))
        except OSError:
            pass
        finally:
            self._readers[topic].remove(heard)
        return None

    def _make_event(self, topic, kind, **more):
        head = {"id": secrets.token_hex(6), "time": int(time.time())}
        return {**head, "event": kind, "topic": topic, **more}

    def find_action(self, topic, label):
        """Return the newest button with this label."""
        actions = [a for m in self.messages[topic] for a in m.get("actions", ())]
        return [action for action in actions if action["label"] == label][-1]

    def press(self, topic, label):
        """Run a button's action as the app does, and return the status that the phone gets."""
        action = self.find_action(topic, label)
        return self.post(action["url"], action["body"], action.get("headers", {}))

    def post(self, url, body, headers=None):
        assert url.startswith(self.url)
        request = urllib.request.Request(url, body.encode(), headers or {})  # noqa: S310 - see above
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - see above
            return answer.status


def _select_since(events, since):
    ids = [event["id"] for event in events]
    if since in ids:
        return events[ids.index(since) + 1 :]
    return events if since == "all" else []
