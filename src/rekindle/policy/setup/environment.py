"""Select the environment variables that an agent gets.

Rekindle's own environment may include keys for other programs, and variables from the session that
started it. If a project needs other variables, it lists them in the manifest under `env:`.
"""

import re
from collections.abc import Collection, Iterable, Mapping

_NAMES = frozenset(
    """
    PATH HOME USER LOGNAME SHELL LANG LANGUAGE TERM COLORTERM TZ TMPDIR EDITOR
    SSH_AUTH_SOCK DISPLAY WAYLAND_DISPLAY VIRTUAL_ENV CONDA_PREFIX JAVA_HOME GOPATH CARGO_HOME
    RUSTUP_HOME NVM_DIR NVM_BIN PYENV_ROOT HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY
    http_proxy https_proxy no_proxy all_proxy SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE
    NODE_EXTRA_CA_CERTS CI
    """.split()  # noqa: SIM905 - a list would take forty lines
)
_PREFIXES = ("LC_", "XDG_")
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASS|AUTH|CREDENTIAL|COOKIE|PROXY", re.IGNORECASE)
"""Variables that are never written to a file. Proxy addresses often contain a password."""
_CREDENTIAL = re.compile(
    r"(^|_)(API_?KEY|(ACCESS|SECRET)_KEY|KEY|TOKEN|SECRET|PASS(WORD|WD|PHRASE)?|PAT|PGPASS\w*"
    r"|AUTH|CREDENTIALS?|COOKIE|DSN)($|_)",
    re.IGNORECASE,
)
_OWN_PREFIX = "REKINDLE_"
_GIT_LOGINS = frozenset(
    ("SSH_AUTH_SOCK", "SSH_ASKPASS", "GIT_ASKPASS", "GIT_SSH", "GIT_SSH_COMMAND")
)
_GIT_LOGIN_PREFIXES = ("GIT_CONFIG", "GIT_CREDENTIAL")
"""Names and prefixes of variables from which git or ssh gets credentials or settings."""
_URL_PASSWORD = re.compile(r"://[^\s/@:]*:[^\s/@]+@")
_REFERENCE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_OF_THE_SHELL = frozenset(
    ("PWD", "OLDPWD", "SHLVL", "_", "HOSTNAME", "PS1", "MAIL", "LS_COLORS", "LINES", "COLUMNS")
)


def select_variables(
    ours: Mapping[str, str], prefixes: Iterable[str], never: Iterable[str]
) -> dict[str, str]:
    """Return the variables to pass to an agent. The harness defines `prefixes` and `never`."""
    begins = (*_PREFIXES, *prefixes)
    unwanted = frozenset(never)
    return {
        name: value
        for name, value in ours.items()
        if name not in unwanted and (name in _NAMES or name.startswith(begins))
    }


def find_reference(value: str) -> str:
    """Return the operator's variable that a value in `env:` names, or "" if it is a plain text.

    Only a value that is `$NAME` names a variable. `$HOME/folder` is a plain text.
    """
    match = _REFERENCE.fullmatch(value)
    return match[1] if match else ""


def drop_secret_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Return only the variables that may be written to a file, including SSH_AUTH_SOCK."""
    return {
        name: value
        for name, value in variables.items()
        if name == "SSH_AUTH_SOCK" or not _SECRET.search(name)
    }


def drop_login_variables(variables: Mapping[str, str], switches: Collection[str]) -> dict[str, str]:
    """Return the variables without those that a CLI may prefer to the login of an account.

    These are `switches` and all that are named like a credential, because each version of a CLI
    reads other ones. The keys of MCP servers and SSH_AUTH_SOCK stay.
    """
    return {
        name: value
        for name, value in variables.items()
        if name == "SSH_AUTH_SOCK"
        or name.startswith("MCP_")
        or (name not in switches and not _CREDENTIAL.search(name))
    }


def is_credential(name: str, value: str = "") -> bool:
    """Return whether a variable is named like a credential, or is a URL with a password.

    Credentials for git count too.
    """
    is_named = bool(_CREDENTIAL.search(name)) or _is_for_git(name)
    return is_named or bool(_URL_PASSWORD.search(value))


def is_for_host(name: str) -> bool:
    """Return whether only a fleet host's worker needs a variable: its keys, and git's logins."""
    return name.startswith(_OWN_PREFIX) or _is_for_git(name)


def drop_git_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables without those from which git gets its credentials."""
    return {name: value for name, value in variables.items() if not _is_for_git(name)}


def _is_for_git(name: str) -> bool:
    return name in _GIT_LOGINS or name.startswith(_GIT_LOGIN_PREFIXES)


def list_withheld(ours: Mapping[str, str], passed: Collection[str]) -> dict[str, str]:
    """Return the variables withheld from an agent, except the shell's and Rekindle's own."""
    own = (_OWN_PREFIX, *_PREFIXES)
    expected = _NAMES | _OF_THE_SHELL
    return {
        name: value
        for name, value in ours.items()
        if name not in passed and name not in expected and not name.startswith(own)
    }


def select_missed(withheld: Mapping[str, str], mentioned: Collection[str]) -> list[str]:
    """Return the withheld variables that an agent may need. Names from the project come first."""
    return sorted(
        (
            name
            for name, value in withheld.items()
            if name in mentioned or _CREDENTIAL.search(name) or _URL_PASSWORD.search(value)
        ),
        key=lambda name: (name not in mentioned, name),
    )
