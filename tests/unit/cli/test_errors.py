"""Errors of commands: readable, without secrets, whatever went wrong."""

import pytest

from fakes import fakes
from rekindle.cli import main
from rekindle.policy.redact.redaction import Redaction

TOKEN = next(fake.secret for fake in fakes(1, 100) if fake.secret.startswith("gh" + "p_"))


@pytest.fixture
def fails(tmp_path, monkeypatch, capfd):
    """Run a failing command in a project with one agent; return its exit code and its message."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REKINDLE_AGENT", raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # the place of a crash report
    monkeypatch.setattr("tempfile.tempdir", None)
    assert main.run(["init", "--yes", "--agent", "trades"]) == 0
    capfd.readouterr()

    def run(*arguments):
        code = main.run(list(arguments))
        said = capfd.readouterr()
        return code, said.out + said.err

    return run


@pytest.fixture
def breaks(monkeypatch):
    """Make the next command fail in an unforeseen way."""

    def arm(error):
        def broken(*_arguments, **_options):
            raise error

        monkeypatch.setattr(main.app, "main", broken)

    return arm


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("status", TOKEN), 7),
        (("events", "--agent", TOKEN), 7),
        (("run", TOKEN), 7),
        (("relay", "set", f"/x/{TOKEN}"), 2),
        (("resolve", TOKEN, "done"), 7),
        (("torture", "--seed", TOKEN), 2),
        (("init", "--harness", f"/x/{TOKEN}", "--agent", "other"), 2),
        ((TOKEN,), 2),
        ((f"--{TOKEN}",), 2),
    ],
)
def test_a_secret_in_the_wrong_place_is_not_repeated(fails, arguments, code):
    """A secret pasted in the place of a name is shown neither on the screen nor in a log."""
    ended, said = fails(*arguments)
    assert (ended, TOKEN in said) == (code, False), said
    assert "Error: " in said
    assert "redacted" in said


def test_a_secret_in_the_manifest_is_not_repeated(fails, tmp_path):
    """An invalid line of rekindle.yaml is named by its number, without its secret."""
    with (tmp_path / "rekindle.yaml").open("a") as file:
        file.write(f"{TOKEN}: 1\n")
    code, said = fails("status")
    assert (code, TOKEN in said) == (3, False), said


def test_messages_without_secrets_are_unchanged(fails):
    """Usage, help and hints are printed as they are."""
    _, help_ = fails("--help")
    assert fails() == (2, help_)
    assert fails("status", "--nothing")[1].splitlines() == [
        "Error: No such option '--nothing'.",
        "  → `rekindle status --help` lists the options",
    ]
    assert fails("doctor", "b")[1].splitlines() == [
        "Error: Got unexpected extra argument (b)",
        "  → usage: `rekindle doctor [OPTIONS]`; `rekindle doctor --help` explains it",
    ]


def test_a_crash_report_contains_no_secret(fails, breaks, tmp_path):
    """Neither the line on the screen nor the report file has one, causes included."""
    error = ValueError(f"cannot use {TOKEN}\udcff")
    error.__cause__ = KeyError(TOKEN)
    breaks(error)
    code, said = fails("status")
    assert (code, TOKEN in said) == (main.CRASHED, False), said
    assert "a bug in Rekindle: ValueError: cannot use [redacted:" in said
    (report,) = tmp_path.glob("rekindle-crash-*.txt")
    text = report.read_text()
    assert TOKEN not in text
    assert "KeyError: '[redacted:" in text
    assert "in broken" in text


def test_if_redaction_itself_fails_nothing_doubtful_is_printed(
    fails, breaks, monkeypatch, tmp_path
):
    """A message then has plain words only, and a report only lines of our own code."""

    def broken(*_arguments):
        raise RecursionError(TOKEN)

    monkeypatch.setattr(Redaction, "text", broken)
    code, said = fails("run", TOKEN)
    assert code == 7
    assert said == (
        "Error: no agent named … rekindle.yaml has trades\n  → add it with `rekindle init …\n"
    )
    breaks(ValueError(TOKEN))
    code, said = fails("status")
    assert (code, TOKEN in said) == (main.CRASHED, False), said
    (report,) = tmp_path.glob("rekindle-crash-*.txt")
    text = report.read_text()
    assert TOKEN not in text
    assert "in broken" in text
    assert text.endswith("ValueError")


def test_an_error_that_cannot_even_be_printed_is_reported(fails, breaks, tmp_path):
    """An error in an exception's own text does not hide the bug."""

    class SilentError(Exception):
        def __str__(self):
            raise ValueError

    breaks(SilentError())
    code, said = fails("status")
    assert code == main.CRASHED
    assert "a bug in Rekindle: SilentError" in said
    assert list(tmp_path.glob("rekindle-crash-*.txt"))


@pytest.mark.parametrize(("ends_by", "code"), [(KeyboardInterrupt, 130), (EOFError, 2)])
def test_a_question_that_is_not_answered(fails, monkeypatch, ends_by, code):
    """Ctrl-C stops `init` like every command; at the end of the input --yes is named."""

    def unanswered(*_arguments):
        raise ends_by

    monkeypatch.setattr("click.termui.visible_prompt_func", unanswered)
    ended, said = fails("init", "--agent", "second")
    assert ended == code, said
    assert ("\nStopped.\n" in said) == (code == main.INTERRUPTED)
    assert ("--yes" in said) == (code != main.INTERRUPTED)
