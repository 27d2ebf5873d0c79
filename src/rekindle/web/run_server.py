"""Run the web server on 127.0.0.1 until a signal ends it."""

import logging
import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn

from rekindle.web.page_links import PageLinks, make_busy_error
from rekindle.web.project_rows import WebProjects
from rekindle.web.web_app import make_app

_ADDRESS = "127.0.0.1"


class PageServer(uvicorn.Server):
    """A server that ends without tracebacks while pages are open."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # The streams of open pages never end, so uvicorn cancels them, and reports each one.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        await super().shutdown(sockets)


def run_server(
    start: Path | None,
    port: int,
    *,
    read_only: bool,
    proxy: str | None,
    tell: Callable[[str], None],
) -> None:
    """Serve the pages. `tell` is called with the link as soon as the server accepts connections."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((_ADDRESS, port))
        except OSError as error:
            raise make_busy_error(port) from error
        listening.listen()
        port = listening.getsockname()[1]
        links = PageLinks(port)
        origins = [f"http://{name}:{port}" for name in (_ADDRESS, "localhost")]
        origins += [f"https://{proxy}"] if proxy else []
        app = make_app(WebProjects(start), links, origins, read_only=read_only)
        settings = uvicorn.Config(
            app,
            http="h11",
            ws="none",
            loop="asyncio",
            lifespan="on",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            # An open page keeps its stream open forever.
            timeout_graceful_shutdown=1,
        )
        with links.hold():
            tell(links.make_link(proxy))
            PageServer(settings).run(sockets=[listening])
