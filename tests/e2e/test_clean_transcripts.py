"""The transcripts of the real CLIs contain nothing that looks like a secret to redaction.

The scripted model gives its answers random ids and encrypted thoughts, as a vendor's does, and the
agent reads lock files. CI records a short session of each CLI. `just torture` records long ones.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from loopback.anthropic import Anthropic
from loopback.gemini import Gemini
from loopback.lifelike import Lifelike
from loopback.model import Model
from loopback.namespace import Namespace
from loopback.openai import OpenAI
from loopback.script import Text, ToolCall
from rekindle.policy.redact.find_secrets import find_secrets
from sampling import WHOLE
from torture.clis import KINDS

pytestmark = [pytest.mark.torture, pytest.mark.timeout(3600 if WHOLE else 300)]

ROOT: Final = Path(__file__).parents[2]
LOCK_FILES: Final = [*ROOT.glob("requirements/*.txt"), *ROOT.glob("tests/*/*/package-lock.json")]
SESSIONS: Final = 8 if WHOLE else 1
CALLS: Final = 250 if WHOLE else 12
LINES: Final = 10
"""Lines that the agent reads in each call."""


class Recorded(NamedTuple):
    """The fixtures of a CLI, its arguments, and a part of each random value in its transcript."""

    sandbox: str
    model: str
    mark: str
    arguments: tuple[str, ...] = ()


CLIS: Final = {
    "claude-code": Recorded("claude", "model", '"signature":"', ("--allowedTools=Bash",)),
    "codex": Recorded("codex", "openai_model", '"encrypted_content":"gAAAAA'),
    "gemini": Recorded("gemini", "gemini_model", '"id":"run_shell_command'),
}


@pytest.fixture
def model(network: Namespace) -> Iterator[Model]:
    with Model(Lifelike(Anthropic(), 7), network.listener) as served:
        yield served


@pytest.fixture
def openai_model(network: Namespace) -> Iterator[Model]:
    with Model(Lifelike(OpenAI(), 7), network.listener) as served:
        yield served


@pytest.fixture
def gemini_model(network: Namespace) -> Iterator[Model]:
    with Model(Lifelike(Gemini(), 7), network.listener) as served:
        yield served


def read_lock_files(name: str, project: Path, session: int) -> Iterator[ToolCall]:
    """Yield calls that read the project's lock files, a few lines at a time."""
    paths = sorted(project.iterdir())
    for number in range(session * CALLS, (session + 1) * CALLS):
        path = paths[number % len(paths)]
        first = number // len(paths) * LINES % len(path.read_text().splitlines()) + 1
        yield KINDS[name].shell(f"sed -n '{first},{first + LINES - 1}p' {path.name}")


@pytest.mark.parametrize("name", CLIS)
def test_nothing_in_a_transcript_is_redacted(name: str, request: Any) -> None:
    """Neither the stream nor the transcript of a session contains a finding."""
    recorded = CLIS[name]
    cli = request.getfixturevalue(recorded.sandbox)
    model = request.getfixturevalue(recorded.model)
    for number, path in enumerate(LOCK_FILES):
        shutil.copy(path, cli.project / f"{number}-{path.name}")
    lines = 0
    for session in range(SESSIONS):
        model.play(*read_lock_files(name, cli.project, session), Text("all read"))
        run = cli.run("Read the lock files.", *recorded.arguments, timeout=900)
        assert run.returncode == 0, run.stderr
        transcript = cli.transcript(run.session).read_text()
        assert transcript.count(recorded.mark) >= CALLS
        text = f"{transcript}\n{run.stdout}"
        assert show_findings(text) == []
        lines += text.count("\n")
    print(f"{name}: {lines:,} lines")


def test_nothing_in_a_lock_file_is_redacted() -> None:
    assert len(LOCK_FILES) >= 5
    assert show_findings("\n".join(path.read_text() for path in LOCK_FILES)) == []


def show_findings(text: str) -> list[str]:
    """Return what would be redacted, with the text in front of it."""
    return [text[max(0, one.start - 60) : one.end] for one in find_secrets(text)]
