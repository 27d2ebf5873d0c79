"""How CLIs reach their models through the gateway."""

import pytest

from rekindle.documents.launches.launch_credentials import LaunchCredentials, ModelKey
from rekindle.documents.launches.sandbox_needs import GatewayNeeds, SandboxNeeds
from rekindle.errors import CredentialsError
from rekindle.policy.sandbox.gateway_access import PLACEHOLDER, add_port, make_access

NEEDS = SandboxNeeds(
    gateway=GatewayNeeds(
        url="https://api.example.com/v1",
        url_variable="BASE_URL",
        key_variables=("API_KEY",),
        arguments=("--url={url}",),
    )
)
KEY = ModelKey("x-api-key", "sk-real")


def access(environment, *hosts):
    credentials = LaunchCredentials(keys=dict.fromkeys(hosts, KEY))
    return make_access("helper", "cli", NEEDS, environment, credentials)


def test_the_cli_gets_the_gateway_and_a_placeholder():
    made = access({"API_KEY": "sk-own"}, "api.example.com")
    url = "http://127.0.0.1:3128/api.example.com/v1"
    assert made.environment == {
        "API_KEY": PLACEHOLDER,
        "BASE_URL": url,
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }
    assert made.arguments == (f"--url={url}",)
    assert made.keyed == ("api.example.com:443", "api.example.com:80")
    assert "sk-real" not in repr(made)


def test_only_the_gateway_reaches_a_host_with_a_key():
    made = access({}, "api.example.com:443", "m.example:8443")
    assert made.keyed == ("api.example.com:443", "api.example.com:80", "m.example:8443")


@pytest.mark.parametrize(
    ("url", "host", "path"),
    [
        ("https://Models.example.org/llm/", "models.example.org", "models.example.org/llm"),
        ("https://models.example.org:443", "models.example.org", "models.example.org"),
        ("https://models.example.org", "models.example.org:443", "models.example.org:443"),
        ("https://127.0.0.1:8443/v1", "127.0.0.1:8443", "127.0.0.1:8443/v1"),
    ],
)
def test_the_variable_of_the_cli_names_another_model(url, host, path):
    made = access({"BASE_URL": url}, host)
    assert made.environment["BASE_URL"] == f"http://127.0.0.1:3128/{path}"


@pytest.mark.parametrize(
    ("environment", "host"),
    [
        ({}, "api.example.org"),
        ({}, "api.example.com:8443"),
        ({"BASE_URL": "http://api.example.com"}, "api.example.com"),
        ({"BASE_URL": "https://user@api.example.com"}, "api.example.com"),
        ({"BASE_URL": "api.example.com"}, "api.example.com"),
        ({"BASE_URL": "https://[broken"}, "api.example.com"),
        ({"BASE_URL": "https://api.example.com:x"}, "api.example.com"),
        ({"BASE_URL": "https://api.example.com/?key=x"}, "api.example.com"),
    ],
)
def test_a_key_for_another_host_is_refused(environment, host):
    with pytest.raises(CredentialsError, match="printed no key for") as refused:
        access(environment, host)
    assert "BASE_URL" in refused.value.hint


def test_a_cli_that_cannot_use_a_gateway_is_refused():
    credentials = LaunchCredentials(keys={"api.example.com": KEY})
    with pytest.raises(CredentialsError, match="cli cannot use a gateway"):
        make_access("helper", "cli", SandboxNeeds(), {}, credentials)


def test_the_port_of_a_host():
    assert add_port("api.example.com") == "api.example.com:443"
    assert add_port("127.0.0.1:8443") == "127.0.0.1:8443"
