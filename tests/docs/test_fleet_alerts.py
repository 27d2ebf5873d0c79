"""Each fault of a fleet raises its own alert and no other, and the dashboard shows real series.

The series were recorded from three real hosts by `just record-alerts`.
"""

import json
import re
from pathlib import Path

import pytest
import yaml

from promtool import check_rules, promtool, try_rules
from rekindle.documents.screens.metric_names import (
    ENGINE_CLIENT_METRICS,
    HOST_METRICS,
    HOSTED_AGENT_METRICS,
)

ROOT = Path(__file__).parents[2]
RULE_FILE = ROOT / "deploy/prometheus/rules.yaml"
RULES = yaml.safe_load(RULE_FILE.read_text())["groups"][0]["rules"]
DASHBOARD = json.loads((ROOT / "deploy/grafana/dashboard.json").read_text())
PANELS = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
EXPRESSIONS = [*(rule["expr"] for rule in RULES), *PANELS]
GUIDE = (ROOT / "docs/guides/monitor-a-fleet.md").read_text()
RECORDED = ROOT / "tests/fleet/faults"
SERIES = re.compile(r"\b((?:rekindle|temporal)_\w+|up)\b(?:\{([^}]*)\})?")
OWN = {"host", "pool", "instance", "job"}
SDK = {"namespace", "operation", "status_code", "task_queue", "workflow_type", "failure_reason"}
LABELS = (
    {"up": {"instance", "job"}}
    | {metric.name: {*OWN, *metric.labels} for metric in HOST_METRICS}
    | {metric.name: {*OWN, "project", "agent", *metric.labels} for metric in HOSTED_AGENT_METRICS}
    | {name: {*OWN, *SDK, "le"} for name in ENGINE_CLIENT_METRICS}
)
FAULTS = {
    "calm": None,
    "kill": "RekindleHostDown",
    "freeze": "RekindleHostDown",
    "cut": "RekindleHostCutOff",
    "engine": "RekindleEngineDown",
    "push": "RekindlePushFailing",
    "safe": "RekindleAgentsInSafeMode",
}
QUEUED = 'rekindle_fleet_agents{host="x",pool="p",state="queued"}'
FAILED = 'temporal_workflow_task_execution_failed{host="x",workflow_type="Agent"}'
OTHERS = {
    "RekindleAgentsQueued": {QUEUED: "2+0x80"},
    "RekindleDecisionsFailing": {FAILED: "0+0x20 1+1x60"},
}
"""Series that fire the alerts that no fault raises, with a value every 15 seconds."""


def render_values(numbers):
    """Return recorded values for promtool. A series ends when a host cannot be read."""
    words = []
    for before, number in zip([None, *numbers], numbers, strict=False):
        gone = "stale" if before is not None else "_"
        words.append(gone if number is None else f"{number:.10g}")
    return " ".join(words)


def make_test(series, seconds, alerts):
    """Return a test that exactly these alerts fired, and that none fires at the end."""
    fired = 'count by (alertname) (max_over_time(ALERTS{alertstate="firing"}[1d])) > bool 0'
    expected = [{"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in alerts]
    still = {
        "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
        "eval_time": f"{seconds}s",
        "exp_samples": [],
    }
    ever = {"expr": fired, "eval_time": f"{seconds}s", "exp_samples": expected}
    inputs = [{"series": name, "values": values} for name, values in series.items()]
    return {"interval": "15s", "input_series": inputs, "promql_expr_test": [ever, still]}


def make_fault_test(fault, alerts):
    recorded = json.loads((RECORDED / f"{fault}.json").read_text())
    samples = {len(numbers) for numbers in recorded.values()}
    assert len(samples) == 1
    series = {name: render_values(numbers) for name, numbers in recorded.items()}
    return make_test(series, (samples.pop() - 1) * 15, alerts)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_raises_its_alert_and_no_other(tmp_path, fault):
    alerts = [FAULTS[fault]] if FAULTS[fault] else []
    assert try_rules(tmp_path, RULE_FILE, [make_fault_test(fault, alerts)]) == ""


def test_a_missing_or_wrong_alert_is_noticed(tmp_path):
    for fault, alerts in (("kill", []), ("calm", ["RekindleHostDown"]), ("cut", ["RekindleX"])):
        assert "FAILED" in try_rules(tmp_path, RULE_FILE, [make_fault_test(fault, alerts)])


@pytest.mark.parametrize("alert", OTHERS)
def test_an_alert_without_a_fault_fires_on_its_series(tmp_path, alert):
    made = make_test(OTHERS[alert], 1200, [alert])
    made["promql_expr_test"].pop()
    assert try_rules(tmp_path, RULE_FILE, [made]) == ""


def test_every_rule_has_a_case_and_tells_what_to_do():
    alerts = {rule["alert"] for rule in RULES}
    assert alerts == {alert for alert in FAULTS.values() if alert} | set(OTHERS)
    assert all(rule["annotations"]["description"] for rule in RULES)


def test_promtool_accepts_the_rules_and_every_expression(tmp_path):
    for code, said in (
        promtool("check", "rules", str(RULE_FILE)),
        check_rules(tmp_path, EXPRESSIONS),
    ):
        assert code == 0, said


def find_wrong_series(expression):
    wrong = []
    for name, selected in SERIES.findall(expression):
        labels = set(re.findall(r"(\w+)\s*[=!]~?", selected))
        wrong += [name] if name not in LABELS else sorted(labels - LABELS[name])
    return wrong


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_series_is_one_that_hosts_export(expression):
    assert SERIES.search(expression)
    assert find_wrong_series(expression) == []


def test_a_wrong_name_or_label_is_noticed():
    assert find_wrong_series('rekindle_slots + rekindle_host_slots{hots="x"}') == [
        "rekindle_slots",
        "hots",
    ]


def test_every_name_of_the_engines_client_is_used():
    text = "\n".join(EXPRESSIONS)
    assert [name for name in ENGINE_CLIENT_METRICS if name not in text] == []


def test_the_guide_lists_every_metric_with_its_labels_and_every_alert():
    rows = dict(re.findall(r"^\| `(rekindle_\w+)` \| (.+?) \|", GUIDE, re.MULTILINE))
    assert list(rows) == [metric.name for metric in HOST_METRICS]
    for metric in HOST_METRICS:
        assert set(re.findall(r"^`(\w+)`", rows[metric.name])) == set(metric.labels)
    alerts = re.findall(r"^\| `(Rekindle\w+)` \|", GUIDE, re.MULTILINE)
    assert alerts == [rule["alert"] for rule in RULES]
