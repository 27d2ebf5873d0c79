"""Settings and values that programs give to a fleet, without an engine."""

import pytest

from rekindle.api.fleet import Fleet, open_fleet
from rekindle.api.operator import Operator
from rekindle.errors import EngineError, ManifestError, StoreError, UsageError
from rekindle.fleet.commands.fleet_control import FleetControl
from rekindle.policy.settings.runtime_settings import FleetSettings, TlsSettings

ADDRESS = "127.0.0.1:1"


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"teem": "blue"}, "teem"),
        ({"team": 5}, "team"),
        ({"team": 'a"b'}, "team"),
        ({"codec": {"kees": []}}, "kees"),
        ({"codec": 5}, "codec"),
        ({"codec": {"keys": "X"}}, "codec.keys"),
        ({"heartbeat_timeout": "soon"}, "heartbeat_timeout"),
        ({"heartbeat_timeout": -3}, "heartbeat_timeout"),
        ({"heartbeat_timeout": float("nan")}, "heartbeat_timeout"),
        ({"heartbeat_timeout": "1s"}, "heartbeat_timeout"),
        ({"tls": object()}, "object"),
    ],
)
def test_a_setting_that_is_not_valid_is_named(settings, word):
    with pytest.raises(ManifestError, match=word) as refused:
        open_fleet(ADDRESS, Operator(), settings)
    assert refused.value.hint
    assert "quotes" not in refused.value.hint
    assert "config explain" not in refused.value.hint


def test_the_hint_of_a_failed_connection_names_arguments():
    with pytest.raises(EngineError, match="could not be reached") as refused:
        open_fleet(ADDRESS, Operator(), {})
    assert "set `tls=`" in refused.value.hint


def test_a_missing_certificate_is_named(tmp_path):
    missing = str(tmp_path / "ca.pem")
    with pytest.raises(StoreError, match=r"ca\.pem") as refused:
        open_fleet(ADDRESS, Operator(), {"tls": TlsSettings(ca=missing)})
    assert "name a file" in refused.value.hint


@pytest.fixture
def fleet(monkeypatch):
    """A fleet that fails as soon as it asks its engine."""
    monkeypatch.setattr("rekindle.api.fleet.refuse_any_agent", lambda _: None)
    return Fleet(FleetControl(None, FleetSettings(), by="", origin=""), None)


@pytest.mark.parametrize(
    "call",
    [
        lambda fleet: fleet.usage(by="colour"),
        lambda fleet: fleet.define_all(5),
        lambda fleet: fleet.define_all(None),
        lambda fleet: fleet.run([5]),
        lambda fleet: fleet.run(None),
        lambda fleet: fleet.stop([None]),
        lambda fleet: fleet.answer("scout", None),
    ],
)
def test_a_value_of_another_type_is_refused(fleet, call):
    with pytest.raises(UsageError) as refused:
        call(fleet)
    assert refused.value.hint
