"""The names of the metrics follow Prometheus's conventions."""

import re
from collections import Counter

import pytest

from rekindle.documents.screens import metric_names
from rekindle.documents.screens.metric_names import HOST_METRICS, METRICS, Metric

ALL = (*METRICS, *HOST_METRICS)


@pytest.mark.parametrize("metric", ALL, ids=lambda metric: metric.name)
def test_a_name_says_its_type_and_every_metric_is_explained(metric):
    assert re.fullmatch(r"rekindle(_[a-z]+)+", metric.name)
    assert metric.name.endswith("_total") == (metric.kind == "counter")
    assert metric.meaning.endswith(".")
    assert "\n" not in metric.meaning


def test_the_list_has_every_metric_once():
    declared = [value for value in vars(metric_names).values() if isinstance(value, Metric)]
    assert Counter(ALL) == Counter(declared)


def test_no_label_holds_an_id_or_text():
    labels = {label for metric in ALL for label in metric.labels}
    assert labels == {"harness", "state", "of", "stale", "verdict", "exit", "by", "cause"}
