"""Which of our environment variables an agent gets.

Ours may hold anything: other programs' keys, and the marks of a session that we were started from.
What a project needs beyond these stands in the manifest, under `env:`.
"""

import re
from collections.abc import Iterable, Mapping

_NAMES = frozenset(
    """
    PATH HOME USER LOGNAME SHELL LANG LANGUAGE TERM COLORTERM TZ TMPDIR EDITOR
    SSH_AUTH_SOCK DISPLAY WAYLAND_DISPLAY VIRTUAL_ENV CONDA_PREFIX JAVA_HOME GOPATH CARGO_HOME
    RUSTUP_HOME NVM_DIR NVM_BIN PYENV_ROOT HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY
    http_proxy https_proxy no_proxy all_proxy SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE
    NODE_EXTRA_CA_CERTS CI
    """.split()  # noqa: SIM905 - forty lines of one word each would say no more
)
_PREFIXES = ("LC_", "XDG_")
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASS|AUTH|CREDENTIAL|COOKIE|PROXY", re.IGNORECASE)
"""Names of what is not written down; proxies often have a password in their address."""


def allowed(
    ours: Mapping[str, str], prefixes: Iterable[str], never: Iterable[str]
) -> dict[str, str]:
    """The variables to pass on; `prefixes` and `never` are the harness's own."""
    begins = (*_PREFIXES, *prefixes)
    unwanted = frozenset(never)
    return {
        name: value
        for name, value in ours.items()
        if name not in unwanted and (name in _NAMES or name.startswith(begins))
    }


def without_secrets(found: Mapping[str, str]) -> dict[str, str]:
    """What of it may be kept in a file; an agent's socket of keys is no secret by itself."""
    return {
        name: value
        for name, value in found.items()
        if name == "SSH_AUTH_SOCK" or not _SECRET.search(name)
    }
