"""Parts in front of a remote engine: TLS with client certificates, and a closed gateway."""

import asyncio
import contextlib
import datetime as dt
import ipaddress
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

NAME = "engine.example"


class Authority:
    """A certificate authority with its files in a folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = self._signed(name, self._key.public_key(), ca=True)
        self.ca = self._kept(f"{name}.pem", _pem(self._certificate))

    def issue(self, name: str) -> tuple[Path, Path]:
        """Issue a certificate and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        certificate = self._signed(name, key.public_key(), ca=False)
        stem = f"{self._name}-{name}"
        return self._kept(f"{stem}.pem", _pem(certificate)), self._kept(f"{stem}.key", private)

    def _signed(self, name: str, key: ec.EllipticCurvePublicKey, *, ca: bool) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        names = [x509.DNSName(name), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        return (
            x509.CertificateBuilder()
            .subject_name(_called(name))
            .issuer_name(_called(self._name))
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(hours=1))
            .not_valid_after(now + dt.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName(names[:1] if ca else names), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    def _kept(self, name: str, data: bytes) -> Path:
        path = self._folder / name
        path.write_bytes(data)
        return path


def demanding(authority: Authority) -> ssl.SSLContext:
    """Return TLS settings of an engine that requires a certificate of `authority`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue(NAME))
    context.load_verify_locations(authority.ca)
    context.verify_mode = ssl.CERT_REQUIRED
    context.set_alpn_protocols(["h2"])
    return context


@contextlib.asynccontextmanager
async def before(port: int, tls: ssl.SSLContext | None) -> AsyncIterator[tuple[str, bytearray]]:
    """Forward everything to `port`; return the address, and the bytes of the clients so far."""
    heard = bytearray()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        beyond, onward = await asyncio.open_connection("127.0.0.1", port)
        try:
            await asyncio.gather(_pass(reader, onward, heard), _pass(beyond, writer, bytearray()))
        finally:
            await _closed(onward)

    async with _served(serve, tls) as address:
        yield address, heard


@contextlib.asynccontextmanager
async def shut(status: int) -> AsyncIterator[str]:
    """Refuse every request with an HTTP status, as a gateway does."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(len(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
        writer.write(b"\0\0\0\4\0\0\0\0\0")  # our settings: none
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readexactly(9)
                await reader.readexactly(int.from_bytes(head[:3]))
                if head[3] == 1:  # HEADERS: answered with `:status`, the eighth of the known names
                    words = b"\x08\x03" + str(status).encode()
                    writer.write(len(words).to_bytes(3) + b"\1\5" + head[5:9] + words)

    async with _served(serve, None) as address:
        yield address


@contextlib.asynccontextmanager
async def _served(serve, tls: ssl.SSLContext | None) -> AsyncIterator[str]:
    tasks: set[asyncio.Task[None]] = set()
    writers: list[asyncio.StreamWriter] = []

    async def kept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        finally:
            await _closed(writer)

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        tasks.add(asyncio.ensure_future(kept(reader, writer)))

    server = await asyncio.start_server(accepted, "127.0.0.1", 0, ssl=tls)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in writers:  # a task that was cancelled before its first step closed nothing
            writer.close()


async def _pass(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, heard: bytearray
) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65_536):
            heard += data
            writer.write(data)
            await writer.drain()
    writer.close()


async def _closed(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def _called(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
