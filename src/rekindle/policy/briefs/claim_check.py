"""Check claimed changes against git and the last test run."""

import re
from collections.abc import Sequence

import msgspec

from rekindle.documents.transcripts.turns import (
    Turn,
)
from rekindle.policy.briefs.runner_commands import is_test_run
from rekindle.policy.settings.runtime_settings import CLAIM_NAMED
from rekindle.policy.text.likeness import find_significant_words

UNVERIFIED_MARK = "(unverified)"
_SHELL_TOOL = re.compile(r"bash|shell|exec|command|terminal|run|process", re.IGNORECASE)
"""Pattern for tools that run a command. Other tools may only read or search for one."""
_ABOUT_TESTS = re.compile(r"(?<![a-z])(?:tests?|suite|CI)(?![a-z])|测试", re.IGNORECASE)
_PASS = re.compile(
    r"(?<![a-z])(?:pass(?:es|ed|ing)?|green|succeed(?:s|ed)?)(?![a-z])|通过", re.IGNORECASE
)
_FAIL = re.compile(
    r"(?<![a-z])(?:fail(?:s|ed|ing|ures?)?|red|broken|break(?:s)?)(?![a-z])|失败", re.IGNORECASE
)
_RESULT = re.compile(f"{_PASS.pattern}|{_FAIL.pattern}", re.IGNORECASE)
_FAILED = re.compile(
    r"(?<![\w.])[1-9]\d* (?:failed|failures?|errors?)(?![a-z])|^FAIL(?:ED)?\b", re.MULTILINE
)
_FILE = re.compile(r"`([^`\s]{1,200})`|(?<![\w/.-])((?:[\w.-]+/)*[\w-]+(?:\.[A-Za-z0-9]{1,6})+)\b")
_PATHLIKE = re.compile(r"[\w.-]+/|[A-Za-z_-]\w*\.(?=\w*[A-Za-z])\w{1,6}$")


class GitWork(msgspec.Struct, frozen=True):
    """The changes that git recorded on one day."""

    changed: tuple[str, ...] = ()
    """Changed files, whether committed or not."""
    commits: tuple[str, ...] = ()
    """Subject lines of the commits."""


def is_claim_supported(claim: str, turns: Sequence[Turn], work: GitWork) -> bool:
    """Return whether git or the last test run supports a claimed change."""
    files = _find_files(claim)
    is_changed = bool(files) and all(
        any(_is_same_file(named, changed) for changed in work.changed) for named in files
    )
    if _ABOUT_TESTS.search(claim) and _RESULT.search(claim):
        # If a claim about tests also names a changed file, it may be about that file alone, unless
        # it says that the tests pass.
        return _tests_agree(claim, turns) or (is_changed and not _PASS.search(claim))
    if is_changed:
        return True
    words = find_significant_words(claim.casefold())
    return any(
        _covers_subject(words, find_significant_words(subject.casefold()))
        for subject in work.commits
    )


def _covers_subject(words: frozenset[str], subject: frozenset[str]) -> bool:
    return len(subject) > 1 and len(subject & words) / len(subject) >= CLAIM_NAMED


def _tests_agree(claim: str, turns: Sequence[Turn]) -> bool:
    runs = [
        call
        for turn in turns
        for call in turn.calls
        if _SHELL_TOOL.search(call.tool) and is_test_run(call.about)
    ]
    last = runs[-1] if runs else None
    if last is None:
        return False
    passed = last.result == "ok" and not _FAILED.search(last.shown)
    says_fail = _FAIL.search(claim) and not _PASS.search(claim)
    return passed is not bool(says_fail) if last.result in {"ok", "failed"} else False


def _find_files(claim: str) -> list[str]:
    names = (match[1] or match[2] for match in _FILE.finditer(claim))
    return [name for name in names if _PATHLIKE.search(name)]


def _is_same_file(named: str, changed: str) -> bool:
    bare = named.removeprefix("./").rstrip("/")
    return changed == bare or changed.endswith(f"/{bare}") or changed.startswith(f"{bare}/")
