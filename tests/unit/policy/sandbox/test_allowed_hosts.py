"""The hosts that a sandboxed agent reaches."""

import pytest

from rekindle.documents.launches.sandbox_needs import SandboxNeeds
from rekindle.policy.sandbox.allowed_hosts import (
    adapt_environment,
    drop_link_local,
    list_hosts,
    render_permission,
)

NEEDS = SandboxNeeds(hosts=("api.example.com",), host_variables=("BASE_URL",))
OWN = ("api.example.com:443", "api.example.com:80")


@pytest.mark.parametrize(
    ("environment", "added", "more"),
    [
        ({}, (), ()),
        ({"BASE_URL": "http://127.0.0.1:8080/v1"}, (), ("127.0.0.1:8080",)),
        ({"BASE_URL": "https://Models.example.org"}, (), ("models.example.org:443",)),
        ({"BASE_URL": "http://[broken"}, (), ()),
        ({"BASE_URL": "none"}, (), ()),
        ({}, ("Packages.example.org",), ("packages.example.org:443", "packages.example.org:80")),
        ({}, ("db.local:5432", "api.example.com"), ("db.local:5432",)),
    ],
)
def test_an_agent_reaches_its_model_and_what_the_manifest_adds(environment, added, more):
    assert list_hosts(NEEDS, environment, added) == (*OWN, *more)


def test_a_program_without_needs_reaches_nothing():
    assert list_hosts(SandboxNeeds(), {"BASE_URL": "http://x"}, ()) == ()


def test_programs_are_told_of_the_proxy_and_no_way_past_it():
    made = adapt_environment({"NO_PROXY": "*", "all_proxy": "x", "HTTPS_PROXY": "y", "A": "b"})
    address = "http://127.0.0.1:3128"
    names = ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy")
    assert made == {"A": "b"} | dict.fromkeys(names, address)


@pytest.mark.parametrize(
    ("host", "line"),
    [
        ("packages.example.org:443", "sandbox: {network: [packages.example.org]}"),
        ("packages.example.org:80", "sandbox: {network: [packages.example.org]}"),
        ("db.local:5432", "sandbox: {network: ['db.local:5432']}"),
    ],
)
def test_the_line_that_allows_a_host(host, line):
    assert render_permission(host) == line


def test_link_local_addresses_are_dropped():
    hosts = (
        "169.254.169.254:80",
        "127.0.0.1:8080",
        "fe80::1:80",
        "100.100.100.200:80",
        "api.example.com:443",
    )
    assert drop_link_local(hosts) == ("127.0.0.1:8080", "api.example.com:443")
