"""An HTTP server on the loopback, which the doubles of chat services share."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class DoubleServer:
    """Answers each request with what `exchange` returns: a status and JSON, or None if it streams.

    With a `port`, the server is at the same address as an earlier one.
    """

    def __init__(self, port=0):
        double = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                answer = double.exchange(self, body)
                if answer is not None:
                    self.reply(*answer)

            do_GET = do_POST = do_PUT = handle_any  # noqa: N815 - names of the base class

            def reply(self, status, document):
                data = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def start_stream(self):
                self.close_connection = True
                self.send_response(200)
                self.send_header("content-type", "application/x-ndjson; charset=utf-8")
                self.send_header("connection", "close")
                self.end_headers()

            def write_line(self, document):
                self.wfile.write(json.dumps(document).encode() + b"\n")
                self.wfile.flush()

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                """Ignore a client that was killed during a call."""

        self._server = Server(("127.0.0.1", port), Handler)
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()
