"""The metrics, the alert rules and the dashboard are accepted by the programs that read them."""

import json
import re
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

import prerequisites
from documented import blocks, is_shown, steps
from loopback import install
from promtool import check_rules, promtool
from rekindle.cli.main import run
from rekindle.documents import events
from rekindle.documents.screens.agent_row import (
    STATES,
    AgentRow,
    Figure,
    SpendFigures,
    WindowFigures,
)
from rekindle.documents.screens.metric_names import METRICS, PROJECT_UP
from rekindle.documents.screens.metrics_text import AgentCounts, ProjectMetrics, render_metrics
from rekindle.policy.operator.count_events import NOTHING_COUNTED, count_events

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/guides/metrics.md").read_text()
ALERTS = ROOT / "docs/grafana/alerts.yml"
RULES = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
DASHBOARD = json.loads((ROOT / "docs/grafana/dashboard.json").read_text())
PANELS = {target["expr"]: panel for panel in DASHBOARD["panels"] for target in panel["targets"]}
EXPRESSIONS = [*(rule["expr"] for rule in RULES), *PANELS]
LABELS = {metric.name: {"project", "agent", *metric.labels} for metric in METRICS}
LABELS[PROJECT_UP.name] = {"project"}
NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)
SERIES = re.compile(r"(rekindle_\w+)(?:\{([^}]*)\})?")


def make_full_text():
    """Return the text with every metric, every state and names that need escaping."""
    rows = [
        AgentRow(
            agent=f"a{place}",
            harness='odd "harness"\\',
            at=1,
            state=state,
            window=WindowFigures(percent=Figure(33.3, "reported")),
            spend=SpendFigures(
                usd=Figure(1.0, "reported"), tokens=Figure(1, "reported"), usd_cap=3, tokens_cap=9
            ),
            last_active=NOW,
            waits_until=NOW,
        )
        for place, state in enumerate(STATES)
    ]
    history = [
        events.LaunchEnded(
            ts=NOW, launch="l", cycle=1, session="s", exit="crash", run_tokens=3, run_usd=1e-7
        ),
        events.CycleEnded(ts=NOW, cycle=1),
        events.HandoffTriggered(ts=NOW, launch="l", cycle=1, session="s", by="person"),
    ]
    counts = count_events(NOTHING_COUNTED, history)
    return render_metrics(
        [
            ProjectMetrics("shop", rows, {row.agent: counts for row in rows}),
            ProjectMetrics("line\nbreak", rows[:1], {"a0": AgentCounts()}),
        ]
    )


def find_wrong_series(expression):
    """Return the names and labels that no metric of ours has."""
    wrong = []
    for name, selected in SERIES.findall(expression):
        labels = set(re.findall(r"(\w+)\s*[=!]~?", selected))
        wrong += [name] if name not in LABELS else sorted(labels - LABELS[name])
    return wrong


def test_promtool_accepts_every_metric():
    text = make_full_text()
    assert set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)) == set(LABELS)
    assert promtool("check", "metrics", text=text) == (0, "")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("_total", ""), (r"\"harness\"", '"harness"'), (r"line\nbreak", "line\nbreak")],
)
def test_promtool_notices_a_wrong_text(right, wrong):
    text = make_full_text()
    assert right in text
    assert promtool("check", "metrics", text=text.replace(right, wrong))[0] != 0


def test_promtool_accepts_the_rules_and_every_expression(tmp_path):
    assert len(PANELS) == sum(len(panel["targets"]) for panel in DASHBOARD["panels"])
    for code, said in (
        promtool("check", "rules", str(ALERTS)),
        check_rules(tmp_path, EXPRESSIONS),
    ):
        assert code == 0, said


def test_promtool_notices_a_broken_expression(tmp_path):
    assert check_rules(tmp_path, [EXPRESSIONS[0].replace("}", "")])[0] != 0


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_series_in_an_expression_is_one_of_ours(expression):
    assert SERIES.search(expression)
    assert find_wrong_series(expression) == []


def test_a_wrong_name_or_label_is_noticed():
    expression = 'rekindle_agents_state{} + rekindle_agent_state{sate="done",agent=~"a"}'
    assert find_wrong_series(expression) == ["rekindle_agents_state", "sate"]


def test_states_and_exits_in_expressions_are_known_words():
    text = "\n".join(EXPRESSIONS)
    assert set(re.findall(r'state="([^"]+)"', text)) == set(STATES)
    exits = {word for found in re.findall(r'exit=~"([^"]+)"', text) for word in found.split("|")}
    assert exits == set(NOTHING_COUNTED.launches)


ALARMS = {
    "RekindleAgentNeedsYou": ("agent_state", 'agent="a",state="needs you"', "1x240"),
    "RekindleAgentBroken": ("agent_state", 'agent="a",state="broken"', "1x240"),
    "RekindleProjectUnreadable": ("project_up", "", "0x240"),
    "RekindleBudgetNearlySpent": ("budget_used_ratio", 'agent="a",of="usd"', "0.91x240"),
    "RekindleAgentSilent": ("last_active_timestamp_seconds", 'agent="a"', "0x240"),
    "RekindleAgentCrashesAgain": ("launches_total", 'agent="a",exit="crash"', "0x200 1 2 3x40"),
}
"""A series that fires each alert, with one value per minute."""
CALM = {
    "agent_state": "0x240",
    "project_up": "1x240",
    "budget_used_ratio": "0.89x240",
    "last_active_timestamp_seconds": "0+60x240",
    "launches_total": "0x200 1 2 2x40",
}


@pytest.mark.parametrize("is_calm", [False, True], ids=["fires", "calm"])
@pytest.mark.parametrize("alert", ALARMS)
def test_each_alert_fires_only_when_it_should(tmp_path, alert, is_calm):
    name, labels, values = ALARMS[alert]
    series = f'rekindle_{name}{{project="shop",{labels}}}'
    inputs = {series: CALM[name] if is_calm else values}
    if alert == "RekindleAgentSilent":
        inputs['rekindle_agent_state{project="shop",agent="a",state="running"}'] = "1x240"
    test = {
        "interval": "1m",
        "input_series": [
            {"series": series, "values": " ".join(map(_expand, numbers.split()))}
            for series, numbers in inputs.items()
        ],
        "promql_expr_test": [
            {
                "expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)',
                "eval_time": "220m",
                "exp_samples": [{"labels": "{}", "value": 0 if is_calm else 1}],
            }
        ],
    }
    path = tmp_path / "test.yml"
    path.write_text(yaml.safe_dump({"rule_files": [str(ALERTS)], "tests": [test]}))
    code, said = promtool("test", "rules", str(path))
    assert code == 0, said


def _expand(value):
    """Return a value as promtool repeats it: it writes a constant series as `1+0x5`."""
    number, times, count = value.partition("x")
    return f"{number}+0x{count}" if times and "+" not in number else value


def test_every_rule_has_a_case():
    assert [rule["alert"] for rule in RULES] == list(ALARMS)


@dataclass(frozen=True, slots=True)
class Types(install.Package):
    @property
    def pinned(self):
        return Path(__file__).parent / "grafana"


def check_types(folder, dashboard):
    """Compile the dashboard as a value of Grafana's types; return what the compiler printed."""
    try:
        compiler = install.program(Types("grafana", "typescript/bin/tsc"))
    except install.UnavailableError as error:
        prerequisites.refuse(str(error))
    (folder / "node_modules").symlink_to(compiler.parents[2])
    types = (Path(__file__).parent / "grafana/dashboard_types.ts").read_text()
    (folder / "checked.ts").write_text(f"{types}{json.dumps(dashboard)};\n")
    options = ["--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext"]
    argv = ["node", str(compiler), *options, "checked.ts"]
    done = subprocess.run(
        argv, cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("file", ["docs/grafana/dashboard.json", "deploy/grafana/dashboard.json"])
def test_a_dashboard_has_grafanas_types(tmp_path, file):
    assert check_types(tmp_path, json.loads((ROOT / file).read_text())) == ""


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('"colorMode": "value"', '"colorMode": "valeu"'),
        ('"lineWidth": 2', '"lineWdth": 2'),
        ('"refresh": "1m"', '"refres": "1m"'),
        ('"type": "stat"', '"type": "stats"'),
    ],
)
def test_a_wrong_field_is_noticed(tmp_path, right, wrong):
    text = json.dumps(DASHBOARD)
    assert right in text
    assert "error TS" in check_types(tmp_path, json.loads(text.replace(right, wrong)))


def test_the_guide_lists_every_metric_and_its_labels():
    rows = re.findall(r"^\| `(rekindle_\w+)` \| (.+?) \|", GUIDE, re.MULTILINE)
    assert [name for name, _ in rows] == [metric.name for metric in METRICS]
    for metric, (_, labels) in zip(METRICS, rows, strict=True):
        assert set(re.findall(r"^`(\w+)`", labels)) == set(metric.labels)


def test_the_guides_command_prints_what_it_shows(tmp_path, monkeypatch, capfd):
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "rekindle.yaml").write_text("version: 1\nagents: {trades: {harness: claude-code}}\n")
    monkeypatch.chdir(folder)
    shown = [step for kind, _, body in blocks(GUIDE) if kind == "console" for step in steps(body)]
    assert [command for command, _ in shown] == ["rekindle metrics"]
    assert run(["metrics"]) == 0
    assert is_shown(shown[0][1], capfd.readouterr().out.splitlines())
