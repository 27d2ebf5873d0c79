"""Many tabs, slow readers, and the end of the server while pages are open."""

import signal

from many_rows import PROGRAM, show_version
from rekindle.api.home import Home
from rekindle.documents import events
from rekindle.system import clock
from ui_server import PATIENCE, read_until, serve_pages

TABS = 8
"""A browser opens at most six connections to one server."""


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


def test_the_server_ends_while_a_page_is_open(night, visit, capfd):
    """SIGTERM ends the server quietly while streams are open, and the page shows that it ended."""
    with serve_pages(night) as server:
        page = visit().open(server.link)
        page.wait_for_selector("#live:text('live')")
        with server.open_stream(server.open_session()) as client:
            assert b"event: rows" in read_until(client, b"event: rows")
            server.process.send_signal(signal.SIGTERM)
            # Without a limit, the server would wait for both streams forever.
            assert server.process.wait(PATIENCE) == -signal.SIGTERM
            assert client.recv(1) == b""
        assert capfd.readouterr().err == ""
        page.evaluate("() => { const before = Date.now; Date.now = () => before() + 60_000; }")
        page.wait_for_selector("#banner:text('No updates')")


def test_a_slow_reader_does_not_delay_others(tmp_path):
    """A page that reads nothing misses changes, but the others see them."""
    with serve_pages(tmp_path, "30000", program=PROGRAM) as server:
        session = server.open_session()
        slow = [server.open_stream(session, buffer=4096) for _ in range(3)]
        with server.open_stream(session) as client:
            read_until(client, b'"agent":"agent-29999"')
            for version in range(1, 4):
                show_version(tmp_path, version)
                assert read_until(client, b"version %d:" % version)
        for stream in slow:
            read = read_until(stream, b"version 3:")
            assert b'"agent":"agent-29999"' in read
            assert b"version 2:" not in read, "the change that it did not read is skipped"
            stream.close()
