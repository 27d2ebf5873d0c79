"""Every threshold is declared once, and no module keeps a number of its own."""

import ast
import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import get_args

import pytest

from rekindle import thresholds
from rekindle.policy import settings
from rekindle.thresholds import FIXED, Threshold, Unit, declare

SOURCE = Path(thresholds.__file__).parents[1]

ALLOWED = {
    "*:*SCHEMA": "version of a format on disk or of printed JSON",
    "*:*_MODE": "permission bits of a file",
    "*:_DAY*": "conversion of units",
    "policy/settings.py:SECONDS_AN_HOUR": "conversion of units",
    "policy/budget.py:_MILLION": "conversion of units",
    "policy/loops.py:_TICK": "the smallest difference of two times",
    "hook.py:*": "the hook imports nothing of ours, because every tool call waits for it",
    "demo/*:*": "the script of a demonstration",
    "testing/*:*": "inputs of tests",
    "flows/torture_folder.py:*": "the load of `rekindle torture`",
    "policy/redact/*:*": "shapes of secrets, fitted together with the patterns beside them",
    "__main__.py:UNSUPPORTED": "exit code",
    "cli/main.py:*": "exit codes",
    "cli/brief.py:_FOR_ALL": "permission bits of a file",
    "cli/torture.py:_LARGEST_SEED": "range of a random generator",
    "documents/event_output.py:_*_DIGITS": "format of printed JSON",
    "documents/hookline.py:_WORDS": "format of an inbox line",
    "documents/hooksettings.py:_LONG_NUMBER": "digits that Python converts to a number",
    "fleet/codec.py:_NONCE_BYTES": "AES-GCM",
    "fleet/keys.py:BYTES": "AES-256",
    "flows/read_transcript.py:_BUFFER_BYTES": "buffer",
    "flows/read_transcript.py:_MARK_BYTES": "format of a place in a transcript",
    "harnesses/*_exit.py:*": "HTTP and exit status codes",
    "harnesses/verdicts.py:_BROKEN": "HTTP status code",
    "harnesses/codex.py:ENDING_SECONDS": "timeout that Codex itself sets",
    "harnesses/foreign.py:_MOST": "largest integer of JavaScript",
    "policy/attribution.py:_TELLING": "word count of a language rule",
    "policy/brief.py:_UNIT_WORDS": "word count of a language rule",
    "policy/day.py:_SHORT": "end of a halving that would not stop",
    "policy/evidence.py:_BY_ID": "rank above every likeness",
    "policy/loop.py:*_RUNG": "numbers of the steps of a ladder",
    "policy/provenance.py:_SHORT_PIECE": "word count of a language rule",
    "policy/redebate.py:_FEWEST": "word count of a language rule",
    "policy/sessions.py:NOT_YET": "position after every event",
    "policy/backoff.py:_MOST_DOUBLINGS": "keeps a power within a float",
    "stores/files/inbox.py:_VERSION": "version of a format on disk",
    "stores/files/log.py:_BLOCK": "buffer",
    "stores/files/seal.py:_*": "format on disk",
    "stores/files/supervision.py:_SLOT_BYTES": "format on disk",
    "stores/files/transcripts.py:_*": "zlib's window and buffers",
    "system/tmux.py:_SOCKET_BYTES": "limit of the kernel",
    "stores/private.py:_HASH_LENGTH": "format of a folder's name",
    "system/disk.py:_*": "arguments of Linux's statx",
    "system/hook_program.py:_HASH_LENGTH": "format of a file's name",
    "system/linux.py:_*": "arguments of prctl and fields of /proc",
    "system/orphans.py:_FACTS_OF_BIRTH": "format of a process's mark",
    "system/processes.py:_PIPE_BYTES": "largest pipe of Linux",
    "system/programs.py:_SHEBANG_BYTES": "longest first line that Linux reads",
    "system/terminal.py:_PIECE_BYTES": "buffer",
    "system/terminal.py:_SIZE_BYTES": "size of struct winsize",
}
"""Numbers outside `rekindle.thresholds` as `file:name`, each with its reason."""


def is_number(node: ast.expr) -> bool:
    """A literal number, or one that is computed from literals only; a time span too."""
    if isinstance(node, ast.Constant):
        return type(node.value) in {int, float}
    if isinstance(node, ast.BinOp):
        return is_number(node.left) and is_number(node.right)
    if isinstance(node, ast.UnaryOp):
        return is_number(node.operand)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        return node.func.id in {"timedelta", "Duration"} and all(map(is_number, given))
    return False


def find_numbers(source: str) -> Iterator[str]:
    """Return the names of a module's numeric constants."""
    for node in ast.parse(source).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        value = getattr(node, "value", None)
        if isinstance(value, ast.expr) and is_number(value):
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def find_undeclared(numbers: list[str]) -> list[str]:
    """Return the numeric constants that are neither declared nor allowed."""
    return [one for one in numbers if not any(fnmatch(one, pattern) for pattern in ALLOWED)]


def find_faults(declared: Mapping[str, Threshold]) -> list[str]:
    """Return the thresholds without a number, a unit or a sentence that says what it means."""
    faults = []
    for key, (default, unit, meaning) in declared.items():
        numbers = default if isinstance(default, tuple) else (default,)
        if (
            not all(type(number) in {int, float} for number in numbers)
            or unit not in get_args(Unit)
            or not meaning[:1].isupper()
            or not meaning.endswith(".")
            or "." not in key
        ):
            faults.append(key)
    return faults


@pytest.fixture(scope="module")
def numbers() -> list[str]:
    return [
        f"{file.relative_to(SOURCE).as_posix()}:{name}"
        for file in sorted(SOURCE.rglob("*.py"))
        for name in find_numbers(file.read_text("utf-8"))
    ]


def test_no_module_keeps_a_threshold_of_its_own(numbers):
    """A number belongs into `rekindle.thresholds`, or on the list above with its reason."""
    assert find_undeclared(numbers) == []


@pytest.mark.parametrize(
    "line", ["LIMIT = 3", "_WAIT: Final = 2 * 60.0", "_WAIT = timedelta(days=1)", "X: int = -1"]
)
def test_a_new_number_in_a_module_is_found(line):
    """Whatever its form, the check above names it."""
    [name] = find_numbers(line)
    for file in ("flows/new.py", "thresholds/new.py"):
        assert find_undeclared([f"{file}:{name}"]) == [f"{file}:{name}"]


def test_every_reason_is_still_needed(numbers):
    """An entry whose number is gone would hide the next one."""
    unused = {one for one in ALLOWED if not any(fnmatch(number, one) for number in numbers)}
    assert unused == set()


def test_every_threshold_has_a_number_a_unit_and_a_meaning():
    """The reference page and `config explain` have nothing else to show."""
    assert find_faults(FIXED) == []


@pytest.mark.parametrize(
    "incomplete",
    [
        (None, "seconds", "Time until it stops."),
        (3, "", "Time until it stops."),
        (3, "moments", "Time until it stops."),
        (3, "seconds", ""),
        (3, "seconds", "Time"),
    ],
)
def test_an_incomplete_threshold_is_found(incomplete):
    """Without one of the three it fails the check above."""
    assert find_faults({"run.new": incomplete}) == ["run.new"]


def test_a_threshold_cannot_be_declared_without_unit_and_meaning():
    """Python refuses it at import, mypy before."""
    with pytest.raises(TypeError, match="meaning"):
        declare(3, "run.new", "seconds")  # type: ignore[call-arg]
    assert "run.new" not in FIXED


def test_every_subject_is_listed_and_no_key_or_name_is_used_twice():
    """`config explain` lists what `policy.settings` imports: each constant, and each only once."""
    names, keys = [], []
    for module in pkgutil.iter_modules(thresholds.__path__):
        whole = importlib.import_module(f"{thresholds.__name__}.{module.name}")
        for node in ast.parse((SOURCE / f"thresholds/{module.name}.py").read_text("utf-8")).body:
            if isinstance(node, ast.Assign):
                assert isinstance(node.value, ast.Call)
                names.append(ast.unparse(node.targets[0]))
                keys.append(ast.literal_eval(node.value.args[1]))
                assert getattr(settings, names[-1]) is getattr(whole, names[-1])
                assert FIXED[keys[-1]][0] is getattr(whole, names[-1])
    assert len(names) == len(set(names))
    assert sorted(keys) == sorted(FIXED)
