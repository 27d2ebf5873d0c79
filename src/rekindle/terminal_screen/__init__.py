"""Show the agents of a project in the terminal, for `rekindle top`.

Without the `top` extra, importing this package raises an error that explains how to install it.
"""

from importlib.util import find_spec

from rekindle.errors import RekindleError

if find_spec("textual") is None:
    raise RekindleError(
        "`rekindle top` needs textual, which is not installed",
        hint="install it: `uv tool install 'rekindle-agents[top]'` or"
        " `pip install 'rekindle-agents[top]'`. `rekindle status --watch` works without it",
    )
