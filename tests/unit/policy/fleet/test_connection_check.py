"""The rules of `fleet:`: no plain text beyond this host, no secret in a manifest."""

import pytest

from rekindle.documents import manifest
from rekindle.errors import ManifestError
from rekindle.formats.validation import Duration
from rekindle.policy.fleet import connection_check
from rekindle.policy.settings import (
    explain_settings,
    runtime_settings,
)
from rekindle.policy.settings.runtime_settings import (
    CodecSettings,
    FleetSettings,
    TlsSettings,
)

NO_VARIABLE = "c2stbGl2ZS1zZWNyZXQtMTIzNDU2Nzg5MGFiY2RlZg"


def fleet(section: str) -> FleetSettings | None:
    _, marked = manifest.read_manifest(f"version: 1\n{section}\n")
    found = runtime_settings.resolve_settings(marked).fleet
    if found is not None:
        connection_check.require_valid_fleet(found, marked)
    return found


def refused(section: str) -> ManifestError:
    with pytest.raises(ManifestError) as error:
        fleet(section)
    return error.value


@pytest.mark.parametrize("section", ["", "fleet:", "fleet: {}", "fleet: {address: }"])
def test_without_a_word_there_is_no_fleet(section):
    """Files on this host keep the agents then."""
    assert fleet(section) is None


def test_omitted_keys_have_defaults():
    """One key makes a fleet."""
    found = fleet("fleet: {pool: large}")
    assert found == FleetSettings(
        address="127.0.0.1:7233",
        namespace="default",
        pool="large",
        heartbeat_timeout=Duration(75),
    )


def test_every_key_is_accepted():
    """The example is that of the guide."""
    found = fleet(
        "fleet:\n"
        "  address: engine.example:443\n"
        "  namespace: agents.a1b2c\n"
        "  heartbeat_timeout: 2m\n"
        "  tls: {ca: ca.pem, cert: client.pem, key: client.key, server_name: engine}\n"
        "  api_key: $ENGINE_KEY\n"
        "  codec: {keys: [$NEW, $OLD]}\n"
    )
    assert found == FleetSettings(
        address="engine.example:443",
        namespace="agents.a1b2c",
        heartbeat_timeout=Duration(120),
        tls=TlsSettings("ca.pem", "client.pem", "client.key", "engine"),
        api_key="$ENGINE_KEY",
        codec=CodecSettings(keys=["$NEW", "$OLD"]),
    )


@pytest.mark.parametrize(
    ("section", "line", "like"),
    [
        ("fleet:\n  adress: a:1", 3, "did you mean `address`?"),
        ("fleet:\n  pool: a\n  tls:\n    cret: a.pem", 5, "did you mean `cert`?"),
        ("fleet:\n  codec:\n    key: [$A]", 4, "did you mean `keys`?"),
    ],
)
def test_an_unknown_key_is_named_with_its_line(section, line, like):
    """This holds below `tls`, which may also be a switch."""
    error = refused(section)
    assert (error.line, error.hint) == (line, like)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("address: engine", "is not a valid engine address"),
        ("address: https://engine:443", "is not a valid engine address"),
        ("address: engine:0", "is not a valid engine address"),
        ("address: engine:65536", "is not a valid engine address"),
        ("address: 'engine:443 '", "is not a valid engine address"),
        ("namespace: ''", "namespace"),
        ("pool: Large Hosts", "is not a valid pool name"),
        ("heartbeat_timeout: 1s", "is not valid"),
        ("heartbeat_timeout: none", "is not valid"),
        ("heartbeat_timeout: soon", "expected a duration"),
        ("tls: {cert: a.pem}", "must be set together"),
        ("tls: {key: a.key}", "must be set together"),
        ("tls: [a]", "tls"),
        ("codec: {keys: [$A], key_files: [b]}", "are both set"),
    ],
)
def test_an_impossible_value_is_refused(said, words):
    """The error has its line and a hint."""
    error = refused(f"fleet:\n  {said}")
    assert words in str(error)
    assert error.line == 3
    assert error.hint


@pytest.mark.parametrize(
    "said",
    [
        f"api_key: {NO_VARIABLE}",
        f"api_key: $A{{{NO_VARIABLE}}}",
        f"api_key: $A {NO_VARIABLE}",
        f"codec: {{keys: [$A, {NO_VARIABLE}]}}",
    ],
)
def test_a_secret_in_the_manifest_is_refused_and_not_repeated(said):
    """Only the name of a variable is accepted."""
    error = refused(f"fleet:\n  {said}")
    assert "is not the name of a variable" in str(error)
    assert error.line == 3
    assert NO_VARIABLE not in str(error) + error.hint


@pytest.mark.parametrize(
    "address", ["localhost:1", "127.0.0.1:7233", "127.9.9.9:7233", "'[::1]:7233'"]
)
def test_on_this_host_plain_text_is_fine(address):
    """Nothing leaves it."""
    assert fleet(f"fleet: {{address: {address}}}").tls is None


@pytest.mark.parametrize(
    "address", ["engine:7233", "10.0.0.1:7233", "127.0.0.1.example:1", "127.example:1", "0.0.0.0:1"]
)
def test_plain_text_over_a_network_must_be_explicit(address):
    """Otherwise documents could be read on the way."""
    error = refused(f"fleet: {{address: '{address}'}}")
    assert "in plain text" in str(error)
    assert fleet(f"fleet: {{address: '{address}', tls: true}}").tls is True
    assert fleet(f"fleet: {{address: '{address}', tls: false}}").tls is False
    assert fleet(f"fleet: {{address: '{address}', tls: {{ca: a.pem}}}}").tls == TlsSettings(
        ca="a.pem"
    )


def test_what_works_and_is_not_safe_is_said():
    """No key for the documents; plain text on the way, with the engine's key."""
    assert (
        connection_check.find_fleet_warnings(FleetSettings(codec=CodecSettings(keys=["$A"]))) == []
    )
    assert (
        connection_check.find_fleet_warnings(
            FleetSettings(codec=CodecSettings(key_files=["a"]), tls=False)
        )
        == []
    )
    [unencrypted] = connection_check.find_fleet_warnings(FleetSettings())
    assert "rekindle fleet key" in unencrypted.fix
    plain = FleetSettings(
        address="engine:7233", tls=False, api_key="$K", codec=CodecSettings(keys=["$A"])
    )
    [open_to_all] = connection_check.find_fleet_warnings(plain)
    assert "in plain text, with the engine's key" in open_to_all.what


@pytest.mark.parametrize(
    ("key", "value", "origin"),
    [
        ("fleet.address", "127.0.0.1:7233", "default"),
        ("fleet.pool", "large", "rekindle.yaml:3"),
        ("fleet.tls", True, "rekindle.yaml:4"),
        ("fleet.codec.keys", ["$A"], "rekindle.yaml:5"),
    ],
)
def test_each_is_explained(key, value, origin):
    """It shows the value and its origin."""
    text = "version: 1\nfleet:\n  pool: large\n  tls: true\n  codec: {keys: [$A]}\n"
    [found] = explain_settings.explain_setting(key, *manifest.read_manifest(text))
    assert (found.value, found.origin) == (value, origin)


@pytest.mark.parametrize("key", ["pool", "team"])
def test_a_pool_and_a_team_have_simple_names(key):
    assert f"is not a valid {key} name" in str(refused(f"fleet: {{{key}: 'Big One'}}"))


def test_a_fleet_needs_no_team():
    found = fleet("fleet: {team: ''}")
    assert found is not None
    assert found.team == ""
