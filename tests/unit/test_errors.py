"""The errors: the drawn tree is the real one, and each says what to do next."""

import errno
import inspect
import re

import pytest

from rekindle import errors
from rekindle.errors import (
    RekindleError,
    StoreError,
    UnsafePathError,
    translate_os_errors,
)

pytestmark = pytest.mark.pure

CLASSES = [
    thing
    for _, thing in inspect.getmembers(errors, inspect.isclass)
    if issubclass(thing, RekindleError)
]

SAMPLES = [
    errors.RekindleError("a", hint="b"),
    errors.AnswerError("a-1", "is not one of the choices", ("b",)),
    errors.DefinitionError("a", "task", "is empty", hint="b"),
    errors.UsageError("a", hint="b"),
    errors.ManifestError("a", line=3, hint="b"),
    errors.ContractError("a", hint="b"),
    errors.ManifestMissingError("/a"),
    errors.NotifyError("a", hint="b"),
    errors.NotifyVariableError("A"),
    errors.UnacceptedError("agent trades", "b", "c"),
    errors.UnenforceableError("Codex", "Bash(rm *)", hint="name whole tools"),
    errors.DocumentError("relay", "a", hint="b"),
    errors.ForgedCommandError("desired.set"),
    errors.LogMissingError("/p/.rekindle/agents/a", "there is a snapshot of it"),
    errors.NewerSchemaError("relay", 2, 1),
    errors.TamperedLogError("trades", "appended"),
    errors.StoreError("/a", "b", errno=5, hint="b"),
    errors.AuditError("slow", "a", hint="b"),
    errors.OversizedError("/a", 5),
    errors.StopUnrecordedError("trades", "the disk is full", was_running=True, kept=True),
    errors.UnsafePathError("/a", "b", hint="b"),
    errors.UntrustedError("/a"),
    errors.WorkspaceError("slow", "a", hint="b"),
    errors.OwnershipError("a", hint="b"),
    errors.BusyError("trades", 1.5),
    errors.ConfinedError("trades", "/a"),
    errors.FolderLostError("trades", "/a", "its log is gone"),
    errors.FencedError("trades", 1, 2),
    errors.ForeignOwnerError("trades", "there"),
    errors.OnFleetError("trades", "default"),
    errors.StalePushError("trades", 1, "9f86d0"),
    errors.SupervisedError("trades"),
    errors.NotFoundError("a", hint="b"),
    errors.NotOnFleetError("trades"),
    errors.UnknownAgentError("trades", ["books"]),
    errors.UnknownPipelineError("ship", ["review"]),
    errors.ClosedQuestionError("a-1", "b"),
    errors.UnknownQuestionError("a-1"),
    errors.CheckFailedError("a", hint="b"),
    errors.MergeConflictError("rekindle/a/work", "main", ("x.py",), hint="b"),
    errors.AgentError("a", hint="b"),
    errors.PluginError("a", "b"),
    errors.ProgramMissingError("a", "b", hint="b"),
    errors.SandboxError("a", hint="b"),
    errors.CredentialsError("a", "b"),
    errors.StoppedError(),
    errors.WaitTimeoutError("a", "running"),
    errors.SummaryError("a", hint="b"),
    errors.OverBudgetError(2, 1),
    errors.UnfinishedError("a", hint="b", outcome="stalled", exit_code=21),
    errors.CalledByAgentError("rekindle stop", "a"),
    errors.PhoneError("telegram", "HTTP 502"),
    errors.CollectorError("127.0.0.1:4318", "a"),
    errors.EngineError("tls", "a", hint="b"),
    errors.CodecKeyError("0a1b2c3d", ["4e5f6071"]),
    errors.PlainTextError("agents/trades"),
]


def drawn() -> list[tuple[str, str, int]]:
    """(class, parent, exit code) of every line of the tree in the docstring."""
    found: list[tuple[str, str, int]] = []
    above: list[tuple[int, str]] = []
    for depth, name, code in re.findall(
        r"^    ([│├└─ ]*)(\w+) +(\d+)$", errors.__doc__, re.MULTILINE
    ):
        while above and above[-1][0] >= len(depth):
            above.pop()
        found.append((name, above[-1][1] if above else "Exception", int(code)))
        above.append((len(depth), name))
    return found


def test_the_drawn_tree_is_the_real_one():
    """Every class is in it once, below its parent, with its exit code."""
    real = {(one.__name__, one.__mro__[1].__name__, one.exit_code) for one in CLASSES}
    assert set(drawn()) == real
    assert len(drawn()) == len(real)


def test_the_exports_are_complete_and_sorted():
    """All classes and the translator of OSError, in alphabetical order."""
    assert errors.__all__ == [*sorted(one.__name__ for one in CLASSES), "translate_os_errors"]


@pytest.mark.parametrize("kind", CLASSES)
def test_every_error_says_what_it_is(kind):
    """A docstring of its own, and a meaning for its exit code."""
    assert (vars(kind)["__doc__"] or "").strip()
    assert kind.meaning


def test_every_exit_code_has_one_meaning():
    """A branch has its code for itself, and none is success."""
    meanings = {}
    for kind in CLASSES:
        meanings.setdefault(kind.exit_code, set()).add(kind.meaning)
    assert sorted(meanings) == list(range(1, 18))
    assert all(len(found) == 1 for found in meanings.values())


def test_every_error_carries_a_sentence_and_a_hint():
    """One sample of each class, none forgotten."""
    assert [type(sample) for sample in SAMPLES] == sorted(
        CLASSES, key=[type(sample) for sample in SAMPLES].index
    )
    for sample in SAMPLES:
        assert str(sample)
        assert "\n" not in str(sample)
        assert sample.hint


def test_errors_carry_their_facts():
    """The facts of a message can be read without parsing it."""
    assert str(errors.ManifestError("is odd", line=3)) == "rekindle.yaml:3: is odd"
    assert str(errors.ManifestError("is odd", file="x.yaml")) == "x.yaml: is odd"
    fenced = errors.FencedError("trades", 1, 2)
    assert (fenced.agent, fenced.ours, fenced.current) == ("trades", 1, 2)
    assert errors.BusyError("trades", 1.0).waited == pytest.approx(1.0)
    assert errors.UnknownPipelineError("shp", ["docs", "ship"]).hint == "use one of: docs, ship"
    assert errors.UnknownPipelineError("shp", []).hint == "add it below `pipelines:`"
    assert "no agents yet" in str(errors.UnknownAgentError("a", []))
    assert "did you mean trades?" in errors.UnknownAgentError("trads", ["docs", "trades"]).hint


@pytest.mark.parametrize(
    ("number", "word"),
    [
        (errno.ENOSPC, "full"),
        (errno.EDQUOT, "quota"),
        (errno.EROFS, "read-only"),
        (errno.EACCES, "access"),
        (errno.EPERM, "access"),
        (errno.EMFILE, "ulimit"),
        (errno.ENFILE, "open files"),
        (errno.EIO, "disk reported"),
        (errno.EXDEV, "rekindle doctor"),
    ],
)
def test_what_the_file_system_refuses_is_a_store_error(number, word):
    """It names the path, keeps the number and the cause, and says what to do."""
    cause = OSError(number, "because")
    with pytest.raises(StoreError) as refused, translate_os_errors("/a/b"):
        raise cause
    error = refused.value
    assert type(error) is StoreError
    assert (error.path, error.reason, error.errno) == ("/a/b", "because", number)
    assert str(error) == "/a/b: because"
    assert word in error.hint
    assert error.__cause__ is cause


def test_a_symbolic_link_in_the_way_is_an_unsafe_path():
    """ELOOP is what O_NOFOLLOW answers with."""
    with pytest.raises(UnsafePathError, match="/a: because") as refused, translate_os_errors("/a"):
        raise OSError(errno.ELOOP, "because")
    assert "link" in refused.value.hint


def test_an_os_error_without_a_number_is_a_store_error_too():
    """Some libraries raise them with a sentence alone."""
    with pytest.raises(StoreError, match="/a: odd") as refused, translate_os_errors("/a"):
        raise OSError("odd")
    assert refused.value.errno is None


def test_other_errors_pass_through():
    """Only refusals of the file system are translated."""
    with pytest.raises(ValueError, match="odd"), translate_os_errors("/a"):
        raise ValueError("odd")
    with translate_os_errors("/a"):
        done = True
    assert done
