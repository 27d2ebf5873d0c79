"""Serve the pages of `rekindle ui` on this host.

Without the `ui` extra, importing this package raises an error that explains how to install it.
"""

from importlib.util import find_spec

from rekindle.errors import RekindleError

for _module in ("starlette", "uvicorn"):
    if find_spec(_module) is None:
        raise RekindleError(
            f"the web pages need {_module}, which is not installed",
            hint="install it: `uv tool install 'rekindle-agents[ui]'` or"
            " `pip install 'rekindle-agents[ui]'`",
        )
