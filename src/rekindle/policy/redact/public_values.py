"""Recognize values that look like secrets but are public: ids, hashes, packages and versions.

Agent CLIs write ids of their vendor's API to their transcripts, and lock files consist of versions
and hashes.
"""

import re

_ID = re.compile(
    r"(?:[A-Za-z_\-]{0,40}[=:])?(?:"
    r"(?:fc|rs|msg|resp|ws|ctc|mcp|mcpl|mcpr|ci|ig|lsh|cmp|cua|tsc|conv|item)_[0-9a-f]{40,64}"
    r"|call_[A-Za-z0-9]{22,32}|(?:srv|mcp)?(?:toolu|tooluse)_[A-Za-z0-9]{22,32}"
    r"|(?:req|msg|container|file|batch|msgbatch|session)_01[A-Za-z0-9]{20,26})[:.]?"
)
_DIGEST = re.compile(
    r"(?:[A-Za-z_\-]{0,40}[=:])?(?:sha1-[A-Za-z0-9+/]{27}=|sha256-[A-Za-z0-9+/]{43}=|sha384-[A-Za-z0-9+/]{64}"
    r"|sha512-[A-Za-z0-9+/]{86}==|h1:[A-Za-z0-9+/]{43}=)"
)
_PACKAGE_FILE = re.compile(
    r"[A-Za-z][A-Za-z0-9_.]{0,80}-v?\d+(?:\.\d+)+[\w.+\-]{0,120}"
    r"\.(?:whl|gz|tgz|zip|gem|crate|egg|conda|bz2|xz|deb|rpm|jar|nupkg)"
)
_ONE_VERSION = (
    r"(?:[\^~=]|[<>!=~]=|[<>]|~>)?v?\d+(?:\.(?:\d+|[xX*]))*"
    r"(?:-?(?:alpha|beta|rc|dev|pre|preview|next|canary|snapshot|final|post|nightly|stable|patch|a|b)"
    r"[.\-]?[\d.]*|-(?:0\.)?\d{14}-[0-9a-f]{12}|-\d[\d.]*)?(?:\+[a-z0-9.]{1,40})?"
)
_VERSION = re.compile(
    rf"[(\[]?(?:npm:|workspace:|catalog:|patch:)?{_ONE_VERSION}"
    rf"(?:(?:\|{{1,2}}|,){_ONE_VERSION})*(?:/go\.mod)?[)\]]?[,;]?",
    re.IGNORECASE,
)
_LONGEST_VERSION = 120


def is_version(value: str) -> bool:
    """Return whether a value is a version or a range of versions, as in a lock file."""
    return len(value) <= _LONGEST_VERSION and "." in value and _VERSION.fullmatch(value) is not None


def is_package_file(value: str) -> bool:
    """Return whether a value is the file name of a package, with its version."""
    return len(value) <= 2 * _LONGEST_VERSION and _PACKAGE_FILE.fullmatch(value) is not None


def is_public_run(run: str) -> bool:
    """Return whether a run of characters is an id of a vendor's API, or the hash of a package."""
    return _ID.fullmatch(run) is not None or _DIGEST.fullmatch(run) is not None
