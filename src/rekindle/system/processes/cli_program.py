"""Run an agent CLI's own commands, and talk to a CLI that answers JSON lines."""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Timer
from typing import IO, Any

from rekindle.errors import AgentError
from rekindle.system.processes import program_search
from rekindle.thresholds.hook_limits import PLUGIN_COMMAND_SECONDS


class CliProgram:
    """An agent CLI whose commands change the user's own settings."""

    def __init__(self, name: str, environment: Mapping[str, str]) -> None:
        self.name = name
        self._argv = program_search.resolve_command([name])
        self._environment = {**os.environ, **environment}

    def run(self, words: Sequence[str]) -> str:
        """Run one command in an empty folder, and return its output.

        Raises:
            AgentError: The command failed, or did not end in time.
        """
        with tempfile.TemporaryDirectory() as folder:
            try:
                ended = subprocess.run(  # noqa: S603 - our own arguments, no shell
                    [*self._argv, *words],
                    cwd=folder,
                    env=self._environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    timeout=PLUGIN_COMMAND_SECONDS,
                    check=False,
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                raise self._make_error(words, str(error)) from error
        output = ended.stdout.decode("utf-8", "replace")
        if ended.returncode:
            lines = output.strip().splitlines() or [f"exit code {ended.returncode}"]
            raise self._make_error(words, lines[-1])
        return output

    def _make_error(self, words: Sequence[str], reason: str) -> AgentError:
        shown = " ".join((self.name, *words))
        return AgentError(
            f"`{shown}` failed: {reason}", hint="run it yourself to see all of its output"
        )

    @contextmanager
    def converse(self, words: Sequence[str]) -> "Iterator[JsonConversation]":
        """Start the CLI as a JSON-RPC server on its standard streams, and end it afterwards."""
        with tempfile.TemporaryDirectory() as folder:
            try:
                child = subprocess.Popen(  # noqa: S603 - our own arguments, no shell
                    [*self._argv, *words],
                    cwd=folder,
                    env=self._environment,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
            except OSError as error:
                raise self._make_error(words, str(error)) from error
            assert child.stdin is not None  # noqa: S101 - for mypy: both are pipes
            assert child.stdout is not None  # noqa: S101 - as above
            timer = _start_timer(child)
            try:
                yield JsonConversation(child.stdin, child.stdout)
            except (OSError, ValueError) as error:
                raise self._make_error(words, str(error) or "no answer") from error
            finally:
                timer.cancel()
                child.kill()
                child.communicate()


class JsonConversation:
    """Requests to a JSON-RPC server, one at a time."""

    def __init__(self, requests: IO[bytes], answers: IO[bytes]) -> None:
        self._requests, self._answers, self._last = requests, answers, 0

    def notify(self, method: str) -> None:
        self._send({"jsonrpc": "2.0", "method": method})

    def ask(self, method: str, parameters: object) -> Any:
        """Return the result of a request. Messages between request and answer are skipped.

        Raises:
            ValueError: The server refused the request, or ended.
        """
        self._last += 1
        request = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": parameters}
        self._send(request)
        for line in self._answers:
            answer = json.loads(line)
            if isinstance(answer, dict) and answer.get("id") == self._last:
                if "result" not in answer:
                    raise ValueError(f"{method}: {json.dumps(answer.get('error'))}")
                return answer["result"]
        raise ValueError(f"{method}: no answer")

    def _send(self, message: object) -> None:
        self._requests.write(json.dumps(message).encode() + b"\n")
        self._requests.flush()


def _start_timer(child: subprocess.Popen[bytes]) -> Timer:
    """End the CLI if it does not answer, so that a read ends too."""
    timer = Timer(PLUGIN_COMMAND_SECONDS, child.kill)
    timer.daemon = True
    timer.start()
    return timer
