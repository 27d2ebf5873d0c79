"""Compare the time of a handoff with the time that the CLI itself takes to start.

The time runs from the moment in which the hook stops a session, marked by a file, to the first
request of the next session. It covers the CLI's exit, everything that we write and read, and its
start with our hooks; the summarizer's time is subtracted (the test uses no model). The same CLI,
started by hand without us or any hook, is measured in the same run, in turns, so that both see the
same host.
"""

import threading
import time

import pytest

from e2e.handing import KINDS
from loopback.log import MAIN
from loopback.script import Forever, Text
from rekindle.stores.folders.private_files import find_private_project

pytestmark = [pytest.mark.bench, pytest.mark.timeout(600)]

TIMES = 5
ROUNDS = 2
"""A result just above the bar is measured longer, and all of it counts."""
TARGET, BAR = 1.3, 2.0
"""The target was reached before handoffs took snapshots (1.14 to 1.31 on an idle machine). With a
snapshot, Claude Code takes 1.58 on an idle machine and 1.7 on a busy one: two hooks, a snapshot and
what is made durable come on top of its start, and both share two cores."""
KNOWN = pytest.mark.xfail(
    strict=False,
    reason="it starts in a fifth of a second: 24 git calls, two hooks and 42 fsyncs take longer",
)


class Stamps:
    """When each request came."""

    def __init__(self, model):
        self._append, self.log, self._at = model.log.append, model.log, {}
        model.log.append = self._stamped

    def _stamped(self, make):
        now = time.time()
        made = self._append(make)
        self._at[made.number] = now
        return made

    def openings(self, since):
        """Return the first prompts of the sessions after this many requests."""
        new = [one for one in list(self.log)[since:] if one.kind == MAIN and not one.results]
        return [self._at[one.number] for one in new]


class Brakes:
    """When a hook has stopped a session: its mark is gone a moment later."""

    def __init__(self, folder):
        self._folder, self._is_over, self.seen = folder, threading.Event(), {}
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._is_over.set()
        self._thread.join()

    def _watch(self):
        while not self._is_over.wait(0.002):
            for path in self._folder.glob("braked-*"):
                self.seen.setdefault(path.name, time.time())


@pytest.mark.parametrize("kind", ["claude", pytest.param("codex", marks=KNOWN), "gemini"])
def test_a_handoff_takes_little_more_than_the_cli_s_start(request, place, kind):
    made, model = KINDS[kind]
    cli, model = request.getfixturevalue(kind), request.getfixturevalue(model)
    found, stamps = made(cli, place, model).begin(80), Stamps(model)
    headless = {"claude": (str(cli.program), "-p", "--output-format=stream-json", "--verbose")}
    bare, handed = [], []
    for number in range(TIMES * ROUNDS):
        if number == TIMES and handed and _ratio(handed, bare) <= BAR:
            break
        model.play(Forever(Text("hello")))
        since, began = len(model.log), time.time()
        run = place.start(
            headless.get(kind) or cli.headless,
            env=cli.environment(),
            cwd=found.project,
            stdin="hello",
        )
        assert run.wait() == 0, run.err
        bare.append(stamps.openings(since)[0] - began)
        since = len(model.log)
        model.play(
            found.call(f"{number}a", 20),
            found.call(f"{number}b", 81),
            *[found.call("never", 82)] * found.REPLIES,
            Forever(Text("all done", found.filled(11))),
        )
        found.rekindle("restart", "trades")
        with Brakes(find_private_project(found.project).agent("trades").launch) as brakes:
            found.run("--once")
        if not brakes.seen:  # the mark was gone before this process got the processor
            bare.pop()
            continue
        (stopped,) = brakes.seen.values()
        made = found.rekindle.events("summary.made")
        summarized = [one["seconds"] for one in made if one["document"] == "checkpoint"][-1]
        handed.append(stamps.openings(since)[1] - stopped - summarized)
    assert len(handed) >= TIMES // 2, "the mark of a stopped session was hardly ever seen"
    ratio = _ratio(handed, bare)
    told = [" ".join(f"{one:.2f}" for one in times) for times in (bare, handed)]
    print(
        f"\n{kind}: starts in {told[0]} s, hands off in {told[1]} s: {ratio:.2f} of its start"
        f" (target {TARGET})"
    )
    assert ratio <= BAR


def _ratio(handed, bare):
    # A busy host only adds to a time.
    return min(handed) / min(bare)
