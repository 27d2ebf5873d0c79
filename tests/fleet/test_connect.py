"""Connections to the real engine: those that succeed, and the errors of the others."""

import asyncio
import socket

import pytest

from fleet import gateway
from fleet.engine import free_port
from fleet.gateway import Authority
from rekindle.errors import EngineError, StoreError
from rekindle.fleet.engine.connect import (
    connect,
    connect_when_up,
)
from rekindle.policy.settings.runtime_settings import (
    FleetSettings,
    TlsSettings,
)

HUFFMAN = {
    "0": "00000",
    "a": "00011",
    "c": "00100",
    "e": "00101",
    "o": "00111",
    "s": "01000",
    "t": "01001",
    "r": "101100",
    " ": "010100",
    "B": "1011101",
}
"""The encoding of these letters in HTTP/2 (RFC 7541, appendix B)."""


def reached(fleet, folder, environ=None):
    return asyncio.run(connect(fleet, folder, environ or {}))


def refused(fleet, folder, environ=None):
    with pytest.raises(EngineError) as error:
        reached(fleet, folder, environ)
    assert error.value.hint
    return error.value


def written(text):
    """Return a header's value as on the wire, without the byte that it shares with its end."""
    bits = "".join(HUFFMAN[letter] for letter in text)
    whole = len(bits) // 8
    return int(bits[: whole * 8], 2).to_bytes(whole)


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path, "authority")


def through_tls(engine, folder, authority, tls):
    """Connect through TLS that requires a certificate."""

    async def run():
        async with gateway.before(engine.port, gateway.demanding(authority)) as (address, _):
            return await connect(FleetSettings(address=address, tls=tls), folder, {})

    return asyncio.run(run())


def test_the_engine_is_reached(engine, tmp_path):
    """This holds for every existing namespace."""
    for namespace in ("default", "other"):
        client = reached(FleetSettings(address=engine.address, namespace=namespace), tmp_path)
        assert client.namespace == namespace
        assert client.identity.startswith("rekindle ")


def test_a_missing_namespace_is_named(engine, tmp_path):
    """It is reported at once, not with the first agent."""
    error = refused(FleetSettings(address=engine.address, namespace="nowhere"), tmp_path)
    assert error.cause == "namespace"
    assert "'nowhere'" in str(error)
    assert "--namespace nowhere" in error.hint


def test_a_missing_engine_is_named(tmp_path):
    """The hint names the command that starts one."""
    address = f"127.0.0.1:{free_port()}"
    error = refused(FleetSettings(address=address), tmp_path)
    assert error.cause == "unreachable"
    assert address in str(error)
    assert "rekindle fleet dev" in error.hint


def test_a_host_waits_for_an_engine_that_is_not_up_yet(own_engine, tmp_path, monkeypatch):
    """It says so once."""
    monkeypatch.setattr("rekindle.fleet.engine.connect.CONNECT_AGAIN_SECONDS", 0.05)
    own_engine.kill()
    words = []

    def say(word):
        words.append(word)
        own_engine.start()

    fleet = FleetSettings(address=own_engine.address)
    client = asyncio.run(connect_when_up(fleet, tmp_path, {}, say))
    assert client.namespace == "default"
    (word,) = words
    assert word.startswith(f"waiting: the engine at {own_engine.address} could not be reached")
    assert f"`rekindle fleet dev --port {own_engine.port}`" in word


def test_a_host_does_not_wait_for_a_permanent_error(engine, tmp_path):
    """An example is a missing namespace."""
    fleet = FleetSettings(address=engine.address, namespace="nowhere")
    with pytest.raises(EngineError) as error:
        asyncio.run(connect_when_up(fleet, tmp_path, {}, pytest.fail))
    assert error.value.cause == "namespace"


def test_a_host_without_an_address_is_named(tmp_path):
    """A name without an address is named in the error."""
    error = refused(FleetSettings(address="engine.invalid:7233", tls=True), tmp_path)
    assert error.cause == "unreachable"
    assert "engine.invalid:7233" in str(error)


def test_an_engine_that_never_answers_is_given_up(tmp_path, monkeypatch):
    """An open connection alone is not an answer."""
    monkeypatch.setattr("rekindle.fleet.engine.connect.CONNECT_SECONDS", 0.2)

    with socket.create_server(("127.0.0.1", 0)) as silent:
        error = refused(FleetSettings(address=f"127.0.0.1:{silent.getsockname()[1]}"), tmp_path)
    assert error.cause == "unreachable"
    assert "no answer within 0.2 s" in str(error)


def test_the_right_certificate_is_let_in(engine, tmp_path, authority):
    """The address or the name in the engine's certificate is accepted."""
    cert, key = authority.issue("us")
    files = {"ca": authority.ca.name, "cert": cert.name, "key": key.name}
    for name in ("", gateway.NAME):
        client = through_tls(engine, tmp_path, authority, TlsSettings(**files, server_name=name))
        assert client.namespace == "default"


def test_a_client_without_a_certificate_is_refused(engine, tmp_path, authority):
    """The engine refuses us."""
    with pytest.raises(EngineError) as error:
        through_tls(engine, tmp_path, authority, TlsSettings(ca=authority.ca.name))
    assert error.value.cause == "tls"
    assert "`cert` and `key`" in error.value.hint


def test_a_certificate_of_another_authority_is_refused(engine, tmp_path, authority):
    """The engine refuses a client certificate of an unknown authority."""
    cert, key = Authority(tmp_path, "stranger").issue("us")
    with pytest.raises(EngineError) as error:
        through_tls(
            engine,
            tmp_path,
            authority,
            TlsSettings(ca=authority.ca.name, cert=cert.name, key=key.name),
        )
    assert error.value.cause == "tls"


@pytest.mark.parametrize("tls", [True, TlsSettings(ca="stranger.pem")])
def test_an_engine_of_another_authority_is_refused(engine, tmp_path, authority, tls):
    """We refuse an engine of an unknown authority, and send it no document."""
    Authority(tmp_path, "stranger")
    with pytest.raises(EngineError, match="UnknownIssuer") as error:
        through_tls(engine, tmp_path, authority, tls)
    assert error.value.cause == "tls"


def test_an_engine_by_another_name_is_refused(engine, tmp_path, authority):
    """Its certificate has the right authority and another name."""
    tls = TlsSettings(ca=authority.ca.name, server_name="elsewhere.example")
    with pytest.raises(EngineError, match="NotValidForName") as error:
        through_tls(engine, tmp_path, authority, tls)
    assert error.value.cause == "tls"


def test_tls_with_an_engine_that_has_none_is_refused(engine, tmp_path):
    """The error mentions TLS."""
    assert refused(FleetSettings(address=engine.address, tls=True), tmp_path).cause == "tls"


def test_plain_text_to_an_engine_that_wants_tls_is_refused(engine, tmp_path, authority):
    """The error mentions TLS."""
    with pytest.raises(EngineError) as error:
        through_tls(engine, tmp_path, authority, None)
    assert error.value.cause == "unreachable"
    assert "`fleet: tls:`" in error.value.hint


def test_a_missing_file_is_named(engine, tmp_path):
    """It is reported before any connection."""
    with pytest.raises(StoreError, match=r"gone\.pem"):
        reached(FleetSettings(address=engine.address, tls=TlsSettings(ca="gone.pem")), tmp_path)


def test_the_engines_key_is_sent_with_every_call(engine, tmp_path):
    """It is a bearer token; on this host it is sent without TLS too."""

    async def heard(**said):
        async with gateway.before(engine.port, None) as (address, heard):
            await connect(FleetSettings(address=address, **said), tmp_path, {"KEY": "secretoast0"})
            return bytes(heard)

    sent = written("Bearer secretoast0")
    assert sent in asyncio.run(heard(api_key="$KEY"))
    assert sent not in asyncio.run(heard())


def test_a_key_that_is_not_set_is_named(engine, tmp_path):
    """The error has the name of its variable."""
    error = refused(FleetSettings(address=engine.address, api_key="$KEY"), tmp_path, {"KEY": " "})
    assert error.cause == "credentials"
    assert "$KEY" in str(error)


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("said", ["", "$KEY"])
def test_a_key_that_is_refused_is_not_shown(tmp_path, status, said):
    """The error has its variable; without a key it says that one is required."""

    async def run():
        async with gateway.shut(status) as address:
            await connect(
                FleetSettings(address=address, api_key=said), tmp_path, {"KEY": "secretoast0"}
            )

    with pytest.raises(EngineError) as error:
        asyncio.run(run())
    assert error.value.cause == "credentials"
    assert (said or "without a key") in str(error.value)
    assert "secretoast0" not in str(error.value) + error.value.hint
