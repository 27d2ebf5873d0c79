"""Many tabs, slow readers, and the end of the server while pages are open."""

import json
import signal
import socket
import threading

import pytest

from rekindle.api.home import Home
from rekindle.documents import events
from rekindle.system import clock
from ui_server import PATIENCE, serve_pages

TABS = 8
"""A browser opens at most six connections to one server."""


def open_stream(server, session):
    """Open the stream of all rows without a browser."""
    client = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
    lines = ["GET /api/stream HTTP/1.1", f"Host: 127.0.0.1:{server.port}"]
    lines += [f"Authorization: Bearer {session}", "", ""]
    client.sendall("\r\n".join(lines).encode())
    return client


def ask_again(project, question):
    """Record a new reason why an agent waits."""
    now = clock.read_clock()
    entered = events.SafeModeEntered(ts=now, why="waiting", words=f"it waits: {question}")
    with Home(project).store.writer("trades") as writer:
        writer.append(entered)


def test_eight_tabs_show_every_change(ui, visit):
    """All tabs of a browser load and follow the agents, with one stream for all of them."""
    visitor = visit()
    pages = [visitor.open(ui.make_link())]
    pages[0].wait_for_selector("tr[data-key]")
    pages += [visitor.open(f"{ui.origin}/") for _ in range(TABS - 1)]
    for page in pages:
        page.wait_for_selector("tr[data-key='shop/trades']")
    ask_again(ui.project, "Which colour?")
    for page in pages:
        page.wait_for_selector("tr[data-key='shop/trades'] :text('Which colour?')")
    pages[0].close()
    ask_again(ui.project, "Which shape?")
    for page in pages[1:]:
        page.wait_for_selector("tr[data-key='shop/trades'] :text('Which shape?')")
    assert visitor.errors == []


def test_the_server_ends_while_a_page_is_open(night, visit):
    """SIGTERM ends the server although streams are open, and the page says that it is not live."""
    with serve_pages(night) as server:
        page = visit().open(server.link)
        page.wait_for_selector("#live:text('live')")
        with open_stream(server, server.open_session()) as client:
            assert b"event: rows" in read_until(client, b"event: rows")
            server.process.send_signal(signal.SIGTERM)
            # Without a limit, the server would wait for both streams forever.
            assert server.process.wait(PATIENCE) == 0
            assert client.recv(1) == b""
        page.clock.install()
        page.clock.run_for(30_000)
        page.wait_for_selector("#banner:text('No updates')")


def read_until(client, end):
    read = b""
    while end not in read:
        part = client.recv(65_536)
        assert part
        read += part
    return read
