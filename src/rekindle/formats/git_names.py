"""Check the URLs of git remotes and the names of branches, without git."""

import re

_REMOTE = re.compile(
    r"""
    (?: https? | ssh | git ) :// [^\s/-] \S*     # URL
    | (?: file:// )? / [^\x00-\x1f\x7f]+         # path
    | (?: [\w.+][\w.+-]* @ )? (?: \w [\w.-]* | \[ [0-9A-Fa-f:]+ \] ) : (?! //) [^\s:] \S*  # ssh
    """,
    re.VERBOSE,
)
"""Pattern for the remotes that hosts may use."""
_BRANCH = re.compile(
    r"""
    (?! -) (?! HEAD $)
    (?! .* (?: \.\. | @\{ ) )
    (?: (?! \.) [^\x00-\x20\x7f~^:?*\[\\/]+ (?<! \.lock) (?: / (?! $) | $ ) )+ (?<! \.)
    """,
    re.VERBOSE,
)
"""Pattern for names that `git check-ref-format --branch` accepts."""


def is_remote(url: str) -> bool:
    return bool(_REMOTE.fullmatch(url))


def is_branch(name: str) -> bool:
    return bool(_BRANCH.fullmatch(name))
