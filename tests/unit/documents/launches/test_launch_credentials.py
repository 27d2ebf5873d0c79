"""The output of a credential helper."""

import json
from datetime import UTC, datetime

import pytest

from rekindle.documents.launches.launch_credentials import (
    LaunchCredentials,
    ModelKey,
    parse_credentials,
)
from rekindle.errors import CredentialsError

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
SECRET = "sk-secret-1234"  # noqa: S105 - not a key
KEY = {"header": "x-api-key", "value": SECRET}


def parse(**parts: object) -> LaunchCredentials:
    return parse_credentials(json.dumps(parts).encode(), "helper", NOW)


def test_all_parts_of_the_output():
    parsed = parse(
        env={"REGION": "eu"},
        keys={"api.example.com": KEY, "127.0.0.1:8443": KEY},
        expires="2026-01-31T14:00:00+01:00",
    )
    assert parsed.env == {"REGION": "eu"}
    assert parsed.keys["127.0.0.1:8443"] == ModelKey("x-api-key", SECRET)
    assert parsed.expires == datetime(2026, 1, 31, 13, tzinfo=UTC)


def test_all_parts_are_optional():
    assert parse() == LaunchCredentials()


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (b"", "something else than the expected JSON"),
        (b"sk-secret-1234\n", "something else than the expected JSON"),
        (b"\xff\xfe", "something else than the expected JSON"),
        (b'{"keys": {"api.example.com": "sk-secret-1234"}}', "something else than the expected"),
        (b'{"key": "sk-secret-1234"}', "something else than the expected JSON"),
        (b'{"env": {"A=B": "sk-secret-1234"}}', "a variable that cannot be set"),
        (b'{"env": {"REKINDLE_LAUNCH": "sk-secret-1234"}}', "a variable that cannot be set"),
        (b'{"env": {"A": "sk-secret-1234\\u0000"}}', "a variable that cannot be set"),
        (b'{"expires": "2026-01-31T12:00:00"}', "`expires` without a time zone"),
        (b'{"expires": "2026-01-31T12:00:00Z"}', "have already expired"),
        (b'{"expires": "9999-12-31T23:59:59-12:00"}', "the years 1 to 9999"),
    ],
)
def test_an_unusable_output_is_refused_without_quoting_it(output, reason):
    with pytest.raises(CredentialsError) as refused:
        parse_credentials(output, "helper", NOW)
    assert reason in str(refused.value)
    assert refused.value.hint
    assert SECRET not in str(refused.value) + refused.value.hint + repr(refused.value.__context__)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "https://api.example.com",
        "a.example/v1",
        "API.example.com",
        "a b",
        "a:0",
        "a:99999",
    ],
)
def test_a_key_for_something_else_than_a_host_is_refused(host):
    with pytest.raises(CredentialsError, match="something else than a host"):
        parse(keys={host: KEY})


@pytest.mark.parametrize("header", ["", "x key", "x-key:", "Host", "content-length", "x\r\ny"])
def test_a_header_that_cannot_be_sent_is_refused(header):
    with pytest.raises(CredentialsError, match="printed a header for"):
        parse(keys={"api.example.com": {"header": header, "value": SECRET}})


@pytest.mark.parametrize("value", ["", " x", "a\r\nx-other: 1", "a\n", "ü", "a\0"])
def test_a_value_that_cannot_be_sent_is_refused(value):
    with pytest.raises(CredentialsError, match="printed a value for"):
        parse(keys={"api.example.com": {"header": "x-api-key", "value": value}})


def test_credentials_do_not_show_their_values():
    parsed = parse(env={"TOKEN": SECRET}, keys={"api.example.com": KEY})
    assert SECRET not in repr(parsed) + repr(parsed.keys)
