"""Payloads are unreadable for the engine without a key, and come back unchanged."""

import asyncio

import msgspec
import pytest
from temporalio.api.common.v1 import Payload
from temporalio.converter import ActivitySerializationContext, WorkflowSerializationContext

from rekindle.errors import (
    CodecKeyError,
    DocumentError,
    EngineError,
    PlainTextError,
    StoreError,
)
from rekindle.fleet.engine import encryption_keys
from rekindle.fleet.engine.encryption_keys import EncryptionKey
from rekindle.fleet.engine.payload_codec import (
    ENCODING,
    EncryptingCodec,
)
from rekindle.fleet.engine.payload_converter import StructConverter
from rekindle.policy.projection.projection import Projection
from rekindle.policy.settings import runtime_settings
from rekindle.policy.settings.runtime_settings import (
    FleetSettings,
    Settings,
    TlsSettings,
)

OLD, NEW = EncryptionKey(b"o" * 32), EncryptionKey(b"n" * 32)
PLAIN = Payload(metadata={"encoding": b"json/plain"}, data=b'"a relay"')


class Standing(msgspec.Struct, frozen=True):
    name: str
    numbers: list[int] = []


def encoded(codec, *payloads):
    return asyncio.run(codec.encode(payloads))


def decoded(codec, *payloads):
    """Decode payloads as their converter sees them."""
    found = asyncio.run(codec.decode(payloads))
    for one in found:
        StructConverter().from_payload(one)
    return found


def test_what_is_encrypted_comes_back_as_it_was():
    """Nothing of it is visible meanwhile, not even its type."""
    codec = EncryptingCodec([NEW])
    sealed = encoded(codec, PLAIN, PLAIN)
    for one in sealed:
        assert one.metadata["encoding"] == ENCODING
        assert b"relay" not in one.SerializeToString()
        assert b"json" not in one.SerializeToString()
    assert sealed[0].data != sealed[1].data
    assert decoded(codec, *sealed) == [PLAIN, PLAIN]


def test_another_key_is_refused_by_name():
    """The missing key and the present ones are named by id, and none is shown."""
    with pytest.raises(CodecKeyError) as refused:
        decoded(EncryptingCodec([NEW]), *encoded(EncryptingCodec([OLD]), PLAIN))
    assert refused.value.wanted == OLD.id
    assert OLD.id in str(refused.value)
    assert NEW.id in str(refused.value)
    assert "nnnn" not in str(refused.value) + refused.value.hint


def test_keys_follow_each_other():
    """The first one encrypts, all of them decrypt."""
    both = EncryptingCodec([NEW, OLD])
    assert decoded(both, *encoded(EncryptingCodec([OLD]), PLAIN)) == [PLAIN]
    assert decoded(EncryptingCodec([NEW]), *encoded(both, PLAIN)) == [PLAIN]


def test_plain_text_is_refused_with_a_key():
    """The manifest can allow it while the fleet changes to encryption."""
    with pytest.raises(PlainTextError, match="plain text") as refused:
        decoded(EncryptingCodec([NEW]).with_context(of("trades")), PLAIN)
    assert "agents/trades" in refused.value.workflow
    assert "strict: false" in refused.value.hint
    assert decoded(EncryptingCodec([NEW], strict=False), PLAIN) == [PLAIN]


def test_without_a_key_nothing_is_encrypted_and_an_encrypted_document_names_its_key():
    assert encoded(EncryptingCodec([]), PLAIN) == [PLAIN]
    assert decoded(EncryptingCodec([]), PLAIN) == [PLAIN]
    with pytest.raises(CodecKeyError) as refused:
        decoded(EncryptingCodec([]), *encoded(EncryptingCodec([NEW]), PLAIN))
    assert refused.value.wanted == NEW.id


def of(agent, namespace="agents"):
    return WorkflowSerializationContext(namespace=namespace, workflow_id=f"agents/{agent}")


ACTIVITY = ActivitySerializationContext(
    namespace="agents",
    workflow_id="agents/trades",
    workflow_type="Agent",
    activity_type="run_cycle",
    activity_id="7",
    activity_task_queue="pool",
    is_local=False,
)


@pytest.mark.parametrize("other", [of("docs"), of("trades", "others"), None], ids=str)
def test_a_document_is_bound_to_its_agent(other):
    """A copy in another agent's history, or in another namespace, is refused."""
    sealed = encoded(EncryptingCodec([NEW]).with_context(of("trades")), PLAIN)
    codec = EncryptingCodec([NEW])
    with pytest.raises(DocumentError, match="belongs to another agent"):
        decoded(codec.with_context(other) if other else codec, *sealed)


@pytest.mark.parametrize("same", [of("trades"), ACTIVITY, of("trades-2026-04-09T06:00:00Z")])
def test_its_activities_and_its_schedule_s_workflows_read_it(same):
    sealed = encoded(EncryptingCodec([NEW]).with_context(of("trades")), PLAIN)
    assert decoded(EncryptingCodec([NEW]).with_context(same), *sealed) == [PLAIN]


@pytest.mark.parametrize("place", [0, 11, 12, -1])
def test_a_changed_payload_is_refused(place):
    """This holds for nonce, text and tag."""
    [sealed] = encoded(EncryptingCodec([NEW]), PLAIN)
    data = bytearray(sealed.data)
    data[place] ^= 1
    with pytest.raises(DocumentError, match="was modified"):
        decoded(EncryptingCodec([NEW]), Payload(metadata=sealed.metadata, data=bytes(data)))


@pytest.mark.parametrize("size", [0, 5, 12, 20])
def test_a_cut_payload_is_refused(size):
    """This holds even if the nonce is cut."""
    [sealed] = encoded(EncryptingCodec([NEW]), PLAIN)
    with pytest.raises(DocumentError, match="was modified"):
        decoded(EncryptingCodec([NEW]), Payload(metadata=sealed.metadata, data=sealed.data[:size]))


def test_a_payload_cannot_pass_for_another_key():
    """The key's id is authenticated too, even with the same cipher behind it."""
    [sealed] = encoded(EncryptingCodec([NEW]), PLAIN)
    sealed.metadata["rekindle-key"] = OLD.id.encode()
    confused = EncryptingCodec([NEW])
    confused._ciphers[OLD.id] = confused._ciphers[NEW.id]
    with pytest.raises(DocumentError, match="was modified"):
        decoded(confused, sealed)


def test_keys_are_read_from_variables_and_files(tmp_path):
    """They are in base64 or hex, in the order of the manifest."""
    text = encryption_keys.generate_key()
    (tmp_path / "old").write_text(b"o".hex() * 32 + "\n")
    (tmp_path / "new").write_text(text)
    by_file = encryption_keys.load_keys(
        runtime_settings.CodecSettings(key_files=["old", "new"]), tmp_path, {}
    )
    by_variable = encryption_keys.load_keys(
        runtime_settings.CodecSettings(keys=["$B", "$A"]),
        tmp_path,
        {"A": text, "B": b"o".hex() * 32},
    )
    assert by_file == by_variable
    assert by_file[0] == OLD
    assert len(by_file[1].secret) == 32
    assert encryption_keys.generate_key() != text
    assert "oooo" not in repr(by_file)


@pytest.mark.parametrize("text", ["c2hvcnQ=", "a secret that is none", "zz" * 32, "é" * 32])
def test_an_invalid_key_is_refused_and_not_shown(tmp_path, text):
    """The error names the place of the key instead."""
    with pytest.raises(EngineError, match=r"^\$A does not contain") as refused:
        encryption_keys.load_keys(
            runtime_settings.CodecSettings(keys=["$A"]), tmp_path, {"A": text}
        )
    assert refused.value.cause == "keys"
    assert text not in str(refused.value) + refused.value.hint


def test_a_missing_key_is_named(tmp_path):
    """The error has the variable, or the file."""
    with pytest.raises(EngineError, match=r"variable \$A is empty or not set"):
        encryption_keys.load_keys(runtime_settings.CodecSettings(keys=["$A"]), tmp_path, {})
    with pytest.raises(StoreError, match="gone"):
        encryption_keys.load_keys(runtime_settings.CodecSettings(key_files=["gone"]), tmp_path, {})


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (Standing("a", [1]), Standing),
        (Standing("a"), Standing | None),
        (None, Standing | None),
        ([Standing("a"), Standing("b")], list[Standing]),
        ({"x": Standing("a")}, dict[str, Standing]),
        (Settings(fleet=FleetSettings(tls=TlsSettings("ca.pem"))), Settings),
        ([Settings()], list[Settings]),
        (Projection(agent="trades"), Projection),
        ({"x": 1}, dict[str, int]),
        (b"bytes", bytes),
        ("text", str),
    ],
)
def test_values_come_back_as_what_they_were(value, hint):
    """Structs come back by their type, everything else as the engine's library has it."""
    converter = StructConverter()
    assert converter.from_payload(converter.to_payload(value), hint) == value


def test_a_struct_is_json_in_the_engine():
    """So its UI can show it if nothing is encrypted."""
    payload = StructConverter().to_payload(Standing("a", [1]))
    assert payload.metadata["encoding"] == b"json/plain"
    assert payload.data == b'{"name":"a","numbers":[1]}'
    assert StructConverter().from_payload(payload) == {"name": "a", "numbers": [1]}
