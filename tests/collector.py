"""A collector on the loopback, which reads requests with OpenTelemetry's own definitions."""

import base64
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import prerequisites


def parse_request(body):
    """Parse a request as a collector does: ids are hexadecimal in JSON, other bytes base64."""
    try:
        from google.protobuf.json_format import ParseDict  # noqa: PLC0415 - not on every machine
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (  # noqa: PLC0415
            ExportTraceServiceRequest,
        )
    except ImportError:
        prerequisites.refuse("opentelemetry-proto is not installed: `just setup` installs it")
    document = json.loads(body)
    for resource in document["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for key in ("traceId", "spanId", "parentSpanId"):
                    if key in span:
                        span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
    return ParseDict(document, ExportTraceServiceRequest())


def list_spans(body):
    return [
        span
        for resource in parse_request(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


@contextmanager
def collecting(status=200):
    """Run a collector; `bodies` and `headers` hold what it got, and `status` what it answers."""
    got = SimpleNamespace(bodies=[], headers=[], status=status)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if got.status == 200:
                got.bodies.append(body)
                got.headers.append({**self.headers, "path": self.path})
            self.send_response(got.status)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    got.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
