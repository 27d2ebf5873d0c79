"""The hosts that a sandboxed agent reaches."""

import pytest

from rekindle.documents.launches.sandbox_needs import SandboxNeeds
from rekindle.policy.sandbox.allowed_hosts import (
    adapt_environment,
    drop_host_services,
    is_on_this_host,
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


OWN_SERVICES = (
    "127.0.0.1:8080",
    "127.9.9.9:80",
    "0.0.0.0:80",
    "localhost:7233",
    "LOCALHOST.:7233",
    "a.localhost:80",
    "::1:80",
    "::ffff:127.0.0.1:80",
)


def test_a_host_s_own_services_and_those_for_its_credentials_are_dropped():
    link_local = ("169.254.169.254:80", "fe80::1:80", "100.100.100.200:80")
    others = ("api.example.com:443", "10.0.0.7:80", "localhost.example.org:443")
    assert drop_host_services((*OWN_SERVICES, *link_local, *others)) == others


def test_the_operator_can_permit_a_service_of_the_host():
    hosts = ("127.0.0.1:8080", "127.0.0.1:7233", "169.254.169.254:80")
    assert drop_host_services(hosts, permitted=hosts[::2]) == hosts[:1]


@pytest.mark.parametrize("host", [*OWN_SERVICES, "localhost"])
def test_a_service_of_the_host_is_recognized_with_and_without_a_port(host):
    assert is_on_this_host(host)


@pytest.mark.parametrize("host", ["example.org", "example.org:80", "10.0.0.7:80"])
def test_another_host_is_not_this_one(host):
    assert not is_on_this_host(host)
