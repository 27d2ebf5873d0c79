"""Read and forge exported agents in tests."""

from io import BytesIO
from types import SimpleNamespace

from rekindle.documents import agent_export


def read_export(data: bytes) -> SimpleNamespace:
    """Return the header and the bytes of all parts."""
    export = agent_export.parse(BytesIO(data), "x")
    parts = {name: b"".join(export.read_pieces(name)) for name in export.starts}
    return SimpleNamespace(header=export.header, digest=export.digest, parts=parts)
