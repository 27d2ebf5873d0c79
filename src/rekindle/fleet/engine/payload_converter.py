"""Convert Rekindle's structs to JSON for the engine. The SDK's converters handle other values."""

from collections.abc import Sequence
from typing import Any, get_args

import msgspec
from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    AdvancedJSONEncoder,
    CompositePayloadConverter,
    DataConverter,
    DefaultFailureConverterWithEncodedAttributes,
    DefaultPayloadConverter,
    EncodingPayloadConverter,
    JSONPlainPayloadConverter,
)

from rekindle.fleet.engine.encryption_keys import EncryptionKey
from rekindle.fleet.engine.payload_codec import REFUSED_ENCODING, EncryptingCodec, require_accepted
from rekindle.formats import validation


class _Encoder(AdvancedJSONEncoder):
    def default(self, o: Any) -> Any:
        if isinstance(o, msgspec.Struct):
            return msgspec.to_builtins(o, enc_hook=validation.encode_custom)
        return super().default(o)


class _StructConverter(JSONPlainPayloadConverter):
    """Encodes structs with msgspec, including those inside lists and dicts."""

    def __init__(self) -> None:
        super().__init__(encoder=_Encoder)

    def to_payload(self, value: Any) -> Payload | None:
        if not isinstance(value, msgspec.Struct):
            return super().to_payload(value)
        return Payload(
            metadata={"encoding": self.encoding.encode()}, data=validation.encode_json(value)
        )

    def from_payload(self, payload: Payload, type_hint: type | None = None) -> Any:
        if type_hint is None or not _names_a_struct(type_hint):
            return super().from_payload(payload, type_hint)
        return validation.decode_json(payload.data, type_hint)


class _RefusingConverter(EncodingPayloadConverter):
    """Raises the error for a payload that the codec refused."""

    @property
    def encoding(self) -> str:
        return REFUSED_ENCODING.decode()

    def to_payload(self, value: Any) -> Payload | None:  # noqa: ARG002 - never used to encode
        return None

    def from_payload(self, payload: Payload, type_hint: type | None = None) -> Any:  # noqa: ARG002 - it always raises
        require_accepted(payload)


class StructConverter(CompositePayloadConverter):
    def __init__(self) -> None:
        usual = DefaultPayloadConverter.default_encoding_payload_converters
        ours = _StructConverter()
        converters = (
            ours if converter.encoding == ours.encoding else converter for converter in usual
        )
        super().__init__(_RefusingConverter(), *converters)


def make_data_converter(keys: Sequence[EncryptionKey], *, strict: bool = True) -> DataConverter:
    """Return a converter that encrypts all documents and errors if there are keys.

    With `strict`, the converter also refuses plain text from the engine.
    """
    if not keys:
        return DataConverter(
            payload_converter_class=StructConverter, payload_codec=EncryptingCodec(())
        )
    return DataConverter(
        payload_converter_class=StructConverter,
        payload_codec=EncryptingCodec(keys, strict=strict),
        failure_converter_class=DefaultFailureConverterWithEncodedAttributes,
    )


def _names_a_struct(hint: Any) -> bool:
    """Return whether a type hint such as `X | None` or `dict[str, X]` contains a struct."""
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return True
    return any(_names_a_struct(part) for part in get_args(hint))
