"""The cost of `rekindle ui`: beside a bare server, and with many agents beside few."""

import contextlib
import http.client
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from many_rows import PROGRAM, show_version
from rekindle import config
from rekindle.documents import events
from rekindle.system import clock
from rekindle.system.files import user_folder
from rekindle.wiring.open_store import open_store
from sampling import WHOLE
from ui_server import PATIENCE, read_until, serve_pages

pytestmark = pytest.mark.bench

MANY, FEW = 10_000, 200
FIRST_BYTE_BAR = 3.0
"""How many times as long as a bare server the first byte may take. The target is 2."""
TABLE_BAR = 4.0
"""How many times as long as a small table a large one may take. The target is 3."""
IDLE_BAR = 0.03
"""Share of a core that the server may use while a page is open and nothing happens. Target: 0.01"""
IDLE_RATIO_BAR = 8.0
"""How many times as much as without a page the server may then use. The target is 2.

Without a page, it uses only 0.002 of a core, so two checks of 100 agents in 10 seconds are 3 to 6
times as much.
"""
STREAMS, MEGABYTES = 50, 150
REQUESTS = 100
BARE = """
import sys, uvicorn

SHORT, LONG = (b"x" * int(size) for size in sys.argv[1:])

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        return
    body = LONG if scope["path"] == "/long" else SHORT
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})

config = uvicorn.Config(app, port=0, http="h11", loop="asyncio", log_config=None, access_log=False)
server = uvicorn.Server(config)
startup = server.startup

async def tell(sockets=None):
    await startup(sockets)
    print(server.servers[0].sockets[0].getsockname()[1], flush=True)

server.startup = tell
server.run()
"""


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Return a server that shows many agents."""
    with serve_pages(tmp_path_factory.mktemp("many"), str(MANY), program=PROGRAM) as server:
        yield server


@contextlib.contextmanager
def serve_bare(*sizes):
    """Run a server that answers every request with the same bytes, and return its port."""
    argv = [sys.executable, "-c", BARE, *map(str, sizes)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield int(process.stdout.readline())
        finally:
            process.terminate()


def time_first_byte(port, path, headers):
    """Return the seconds until the first byte of an answer arrives."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    with contextlib.closing(connection):
        connection.connect()
        began = time.perf_counter()
        connection.request("GET", path, headers=headers)
        assert connection.getresponse().read(1)
        return time.perf_counter() - began


def test_the_first_byte_comes_soon(many):
    """The page and the rows of many agents begin about as soon as an answer of a bare server."""
    session = many.open_session()
    with many.open_stream(session) as client:
        size = len(read_until(client, b"%05d" % (MANY - 1)))
    own = {"Authorization": f"Bearer {session}"}
    page = len(many.request("/", headers={}).body)
    with serve_bare(page, size) as port:
        for path, other in {"/": "/", "/api/stream": "/long"}.items():
            times = [
                (time_first_byte(many.port, path, own), time_first_byte(port, other, {}))
                for _ in range(REQUESTS)
            ]
            ours, bare = (statistics.median(side) for side in zip(*times, strict=True))
            print(
                f"\n{path}: first byte after {ours * 1000:.2f} ms, bare {bare * 1000:.2f} ms,"
                f" ratio {ours / bare:.2f} (target 2)"
            )
            assert ours < FIRST_BYTE_BAR * bare


def test_a_large_table_is_as_quick_as_a_small_one(many, tmp_path, visit):
    """The page draws only the rows in view, so loading and updating take about the same time."""
    with serve_pages(tmp_path, str(FEW), program=PROGRAM) as few:
        figures = [measure_table(visit(), server) for server in (few, many)]
    for what, small, large in zip(("load", "update"), *figures, strict=True):
        print(
            f"\n{what}: {small * 1000:.0f} ms with {FEW} rows, {large * 1000:.0f} ms with"
            f" {MANY}, ratio {large / small:.2f} (target 3)"
        )
        assert large < TABLE_BAR * small


def measure_table(visitor, server):
    """Return the best times to load the table, and to show changes of 100 rows."""
    page = visitor.open(server.make_link())
    page.wait_for_selector("tr[data-key]")
    session = visitor.context.new_cdp_session(page)
    session.send("Performance.enable")
    loads, updates = [], []
    for version in range(1, 3):
        began = time.perf_counter()
        page.goto(f"{server.origin}/")
        page.wait_for_selector(f"tr:has-text('version {version - 1}:')")
        loads.append(time.perf_counter() - began)
        before = read_busy(session)
        show_version(server.project, version)
        page.wait_for_selector(f"tr:has-text('version {version}:')")
        updates.append(read_busy(session) - before)
    return min(loads), min(updates)


def read_busy(session):
    """Return the seconds that the page's main thread has worked."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(one["value"] for one in metrics if one["name"] == "TaskDuration")


def test_fifty_pages_need_little_memory(many):
    session = many.open_session()
    with contextlib.ExitStack() as stack:
        streams = [stack.enter_context(many.open_stream(session)) for _ in range(STREAMS)]
        for stream in streams:
            read_until(stream, b"%05d" % (MANY - 1))
        show_version(many.project, 100)
        for stream in streams:
            read_until(stream, b"version 100:")
        status = Path(f"/proc/{many.process.pid}/status").read_text()
    peak = int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024
    print(f"\n{STREAMS} streams of {MANY} rows: peak {peak:.0f} MB")
    assert peak < MEGABYTES


def test_an_open_page_costs_little_while_nothing_happens(in_memory):
    """With a hundred idle agents, the server uses next to nothing."""
    shutil.rmtree(user_folder.make_user_folder() / "projects", ignore_errors=True)
    names = [f"agent-{number:03}" for number in range(100)]
    entries = "".join(f"  {name}: {{harness: claude-code}}\n" for name in names)
    (in_memory / "rekindle.yaml").write_text(f"version: 1\nagents:\n{entries}")
    store, now = open_store(config.load_project(in_memory)), clock.read_clock()
    for name in names:
        with store.writer(name) as writer:
            writer.append(*(events.Heartbeat(ts=now, session="s", call=str(n)) for n in range(20)))
    with serve_pages(in_memory) as server:
        session = server.open_session()
        alone = measure_idle(server, 20 if WHOLE else 5)
        with server.open_stream(session) as stream:
            read_until(stream, b'"complete":true')
            time.sleep(20 if WHOLE else 8)  # until the interval between checks has grown
            opened = measure_idle(server, 20 if WHOLE else 10)  # two checks
    print(
        f"\nidle: {alone:.2%} of a core alone, {opened:.2%} with a page,"
        f" ratio {opened / alone:.1f} (target 2)"
    )
    assert opened < IDLE_BAR
    assert opened < IDLE_RATIO_BAR * alone


def measure_idle(server, seconds):
    """Return the share of a core that the server uses."""
    path = Path(f"/proc/{server.process.pid}/task")

    def read_seconds():
        files = [one / "schedstat" for one in path.iterdir()]
        return sum(int(file.read_text().split()[0]) for file in files) / 1e9

    before, began = read_seconds(), time.monotonic()
    time.sleep(seconds)  # measured time, not a wait
    return (read_seconds() - before) / (time.monotonic() - began)
