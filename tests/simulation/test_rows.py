"""Every screen shows the same state and reason, for every state that the simulation reaches."""

import msgspec
import pytest
from host import YEAR, Host
from oracle import NAME
from scenarios import drawn

import rekindle
from rekindle import config
from rekindle.cli.output import echo
from rekindle.cli.reports import status_command
from rekindle.cli.reports.status_details import FileRowReader
from rekindle.documents import events
from rekindle.documents.screens import morning_page
from rekindle.documents.screens.metrics_text import ProjectMetrics, render_metrics
from rekindle.flows.operator.read_metrics import MetricsReader
from rekindle.flows.supervision.supervisor import Supervisor
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.exits import explain_reasons, stop_reasons
from rekindle.policy.operator import notification_kinds
from rekindle.policy.operator.build_row import (
    RowInputs,
    build_row,
)
from rekindle.policy.projection.fold import fold_events
from rekindle.system import clock
from rekindle.terminal_screen.fleet_columns import make_state
from rekindle.thresholds.web_limits import UI_REASON_CHARACTERS
from rekindle.web.web_row import encode_row
from rekindle.wiring import brief_setup
from rekindle.wiring.open_store import open_store
from rekindle.wiring.row_setup import make_row_reader

SEEDS = range(10)
YEARS_EACH = 0.05


class Watched(Host):
    """A host whose agent's states are kept, one of each kind, and every notification."""

    def __init__(self, scenario, seed):
        self.states, self.notices = {}, []
        super().__init__(scenario, seed)

    def world(self):
        def notify(what, words):
            self.notices.append((what, words, self.known(), self.clock()))
            self.oracle.notified(what, words)

        return msgspec.structs.replace(super().world(), notify=notify)

    def known(self):
        return self.store.read(NAME).projection

    def heard(self, event):
        super().heard(event)
        known, now = self.known(), self.clock()
        for is_supervised in (True, False):
            row = build_row(known, RowInputs(now=now, is_supervised=is_supervised))
            run, tried = known.run, [*known.attempts.values()][-1:]
            kind = (
                row.state,
                row.outcome,
                run.safe.why if run.is_safe else "",
                run.ended.why if run.is_over else "",
                tried[0].exit if tried else None,
                is_supervised,
            )
            self.states.setdefault(kind, (known, now))


@pytest.fixture(scope="module")
def hosts():
    lived = []
    for seed in SEEDS:
        host = Watched(drawn(seed), seed)
        host.live(YEARS_EACH * YEAR)
        lived.append(host)
    return lived


def _expect_cost(spend):
    """Return the cost on the morning page, written here again: `~$1.25, ~1,300 tokens in …`."""
    signs = {"estimated": "~", "reported": ""}
    usd, tokens = spend.usd, spend.tokens
    parts = []
    if usd.value is not None:
        parts.append(f"{signs[usd.source]}${usd.value:.2f}")
    if tokens.value:
        parts.append(f"{signs[tokens.source]}{tokens.value:,} tokens")
    return f"{', '.join(parts)} in this run" if parts else ""


class Screens:
    """A project with one agent whose files are read as the simulation, or a test, left them."""

    def __init__(self, folder, monkeypatch):
        (folder / "rekindle.yaml").write_text(
            f"version: 1\nagents:\n  {NAME}:\n    harness: claude-code\n"
            "runtime: {brief: {zone: Asia/Tokyo}}\n"
        )
        self.project = config.load_project(folder)
        self.store = open_store(self.project)
        self.store.create(NAME)
        self.patch = monkeypatch

    def have(self, known, now, *, is_supervised):
        view = msgspec.structs.replace(self.store.read(NAME), projection=known, committed=known)
        self.patch.setattr(clock, "read_clock", lambda: now)
        self.patch.setattr(self.store, "read", lambda _agent: view)
        self.patch.setattr(self.store, "is_supervised", lambda _agent: is_supervised)

    def compare(self, capsys):
        """Return the state that every screen shows, with the same reason on each."""
        (shown,) = FileRowReader(self.project, self.store).read([NAME])
        row, found = shown.row, shown.as_json()
        assert (found["state"], found["reason"]) == (row.state, row.reason)
        for line in status_command.render_agent(shown, clock.read_clock()):
            echo(*line)
        reason = f": {row.reason}" if row.reason else ""
        out = capsys.readouterr().out
        assert f"  state:  {row.label}{reason}\n" in out
        assert not row.command or f"→ {row.next_step}\n" in out
        page = brief_setup.make_morning_builder(self.project, self.store).page("p", [NAME])
        (entry,) = page.entries
        assert (entry.state, entry.label or entry.state, entry.why) == (
            row.state,
            row.label,
            row.reason,
        )
        assert entry.cost == _expect_cost(row.spend)
        why = f" ({row.reason})" if row.reason else ""
        assert f"{NAME}: {row.label}{why}\n" in morning_page.render(page)
        assert self.read_api() == row
        self.compare_page_of_browser(row)
        self.compare_metrics(row)
        assert make_state(row.state, is_dark=True).plain.split(" ", 1)[1] == row.state
        return row.state

    def read_api(self):
        home = rekindle.connect(self.project.path)
        home._opened.__dict__["store"] = self.store
        return home.agent(NAME).row()

    def compare_page_of_browser(self, row):
        shown = msgspec.json.decode(encode_row("p", row, self.store.redaction))
        assert (shown["state"], shown.get("label", row.state)) == (row.state, row.label)
        assert shown.get("why", "") == to_one_line(row.reason, UI_REASON_CHARACTERS)

    def compare_metrics(self, row):
        reader = make_row_reader(self.project, self.store)
        rows = MetricsReader("p", self.store, reader, [NAME]).read().rows
        lines = render_metrics([ProjectMetrics("p", rows)]).splitlines()
        states = [line for line in lines if line.startswith("rekindle_agent_state{")]
        [current] = [line for line in states if line.endswith(" 1")]
        assert f'state="{row.state}"' in current


@pytest.fixture
def screens(tmp_path, monkeypatch):
    return Screens(tmp_path, monkeypatch)


def test_every_screen_shows_the_same_state_and_reason(hosts, screens, capsys):
    """Through what `status` and `brief` really call; in the zone of the morning page."""
    states = {kind: found for host in hosts for kind, found in host.states.items()}
    known, now = hosts[0].known(), hosts[0].clock()
    done = events.RunEnded(ts=now, seq=known.seq + 1, why="done")
    states["done", "done", "", "done", "clean", False] = fold_events(known, [done]), now
    reached = set()
    for kind, (known, now) in states.items():
        screens.have(known, now, is_supervised=kind[-1])
        assert screens.compare(capsys) == kind[0]
        reached.add(kind[0])
    print(f"\n{len(states)} kinds of states: {sorted(reached)}")
    assert {"running", "waiting", "needs you", "stopped", "done"} <= reached
    assert len(states) >= 60


@pytest.mark.parametrize("damage", ["unreadable", "rewritten", "owner"])
def test_a_broken_agent_is_broken_on_every_screen(screens, capsys, damage):
    folder = screens.store.folder(NAME)
    if damage == "owner":
        folder.owner.write_text("{")
    elif damage == "rewritten":
        folder.log.write_bytes(folder.log.read_bytes().replace(b"agent.created", b"agent.Created"))
    else:
        folder.log.unlink()
        folder.log.mkdir()
    assert screens.compare(capsys) == "broken"


def test_notifications_name_the_state_that_status_shows(hosts):
    """The notification of an end names the state that every screen shows from then on."""
    compared = set()
    for host in hosts:
        for what, words, known, now in host.notices:
            title, _ = notification_kinds.describe_notification(what)
            if what in notification_kinds.SEVERITIES:
                continue  # news of a launch that runs on, not a state
            assert what in stop_reasons.STOP_REASONS
            if what == "limit" and not known.run.is_over:
                # It is notified before it is recorded: a killed supervisor must not leave it out.
                assert (title, words.split(": ")[-1]) == (
                    "waiting",
                    explain_reasons.explain_reason("limit"),
                )
            else:
                row = build_row(known, RowInputs(now=now))
                shown = f"{row.reason}\n→ {row.next_step}" if row.others else row.reason
                assert (title, words) == (row.label, shown), what
            compared.add(what)
    print(f"\nnotified of: {sorted(compared)}")
    assert len(compared) >= 9


def test_the_notification_of_a_rewritten_log_is_what_every_screen_shows(screens, capsys):
    """Sent by a supervisor that finds the log changed while it runs."""
    log, sent = screens.store.folder(NAME).log, []
    log.write_bytes(log.read_bytes().replace(b"agent.created", b"agent.Created"))
    host = Host(drawn(0), 0)
    world = msgspec.structs.replace(
        host.world(),
        store=screens.store,
        tell=lambda _report: None,
        notify=lambda what, words: sent.append(
            (*notification_kinds.describe_notification(what), words)
        ),
        interrupted=lambda: True,
        by_hand=lambda: False,
    )
    with screens.store.supervising(NAME):
        result = Supervisor(host.agent(), world)._step_or_wait_for_disk()
    assert result.why == "stopped"
    (shown,) = FileRowReader(screens.project, screens.store).read([NAME])
    row = shown.row
    assert sent == [(row.label, "failure", f"{row.reason}\n→ {row.next_step}")]
    assert screens.compare(capsys) == "broken"
