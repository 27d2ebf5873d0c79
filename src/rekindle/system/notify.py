"""Telling a person, wherever they are: through apprise, which is an extra.

It runs in a process of its own. A thread could not be ended when a server does not answer, and the
supervisor must have none when it starts an agent. The addresses hold secrets: they go there by a
pipe, never on a command line, and what is said about one is which of them it is.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

from rekindle.errors import NotifyError, NotifyVariableError
from rekindle.policy import addresses
from rekindle.policy.endings import Severity
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.settings import NOTIFY_SECONDS
from rekindle.thresholds.running import NOTIFY_KILLED_SECONDS

INSTALL = "pip install 'rekindle-agents[notify]'"
_ANSWER = re.compile(rb"^(\d+) (\w+)$", re.MULTILINE)
_SCHEME = re.compile(r"([a-z][a-z0-9]{1,15})://")


class Notifier:
    """Where news goes: the addresses under `notify:`, as apprise writes them."""

    def __init__(
        self,
        urls: Sequence[str],
        redaction: Redaction | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """Variables that the addresses name are looked up in `environ` when something is sent."""
        self._urls = tuple(urls)
        self._redaction = redaction or Redaction()
        self._environ = environ

    def check(self) -> None:
        """Raise what would keep every notification from being sent; nothing is sent."""
        if not self._urls:
            return
        if find_spec("apprise") is None:
            raise NotifyError("`notify:` needs the package apprise", hint=INSTALL)
        resolved = [addresses.resolve(url, self._environ) for url in self._urls]
        for number, answer in self._ask({"urls": resolved}).items():
            if answer == "unknown":
                raise NotifyError(
                    f"{self._name(number)} is not an address that apprise can use",
                    hint=f"correct it (`apprise --details` lists all), or {INSTALL} --upgrade",
                )

    def send(self, title: str, body: str, severity: Severity = "warning") -> list[str]:
        """Tell everybody; returns what went wrong, in words. Never raises, never takes long."""
        if not self._urls:
            return []
        try:
            if find_spec("apprise") is None:
                return [f"no notification was sent: apprise is missing ({INSTALL})"]
            resolved, missing = self._resolved()
            message = {"title": self._clean(title), "body": self._clean(body)}
            answers = self._ask({"urls": resolved, "severity": severity, **message})
        except Exception as error:  # noqa: BLE001 - news must not stop what it is about
            return [f"no notification was sent: {type(error).__name__}"]
        answers |= {number: f"${name} is not set" for number, name in missing.items()}
        return [
            f"{self._name(number)} was not told: {answers.get(number, 'it took too long')}"
            for number in range(len(self._urls))
            if answers.get(number) != "sent"
        ]

    def _resolved(self) -> tuple[list[str], dict[int, str]]:
        """Return the addresses, empty ones for those that lack a variable, and these variables."""
        found, missing = [], {}
        for number, url in enumerate(self._urls):
            try:
                found.append(addresses.resolve(url, self._environ))
            except NotifyVariableError as error:
                found.append("")
                missing[number] = error.variable
        return found, missing

    def _clean(self, text: str) -> str:
        """Without secrets, and without what no service could encode."""
        return self._redaction.text(text).encode("utf-8", "replace").decode()

    def _name(self, number: int) -> str:
        """Which address it is, by its place and its kind: all else of it may be a secret."""
        kind = _SCHEME.match(self._urls[number])
        return f"address {number + 1} of `notify:`" + (f" ({kind[1]})" if kind else "")

    def _ask(self, message: object) -> dict[int, str]:
        """What the process says about each address; nothing of those it had no time for."""
        # Its answers go to a file: a pipe could be held open by whatever it has started.
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen(  # noqa: S603 - words of our own
                [sys.executable, "-P", "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=subprocess.DEVNULL,  # where apprise would repeat an address
                start_new_session=True,
            )
            try:
                process.communicate(json.dumps(message).encode(), NOTIFY_SECONDS)
            except subprocess.TimeoutExpired:
                # Not waited for yet, so the number is surely its.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(NOTIFY_KILLED_SECONDS)
            said.seek(0)
            return {int(number): word.decode() for number, word in _ANSWER.findall(said.read())}


def main() -> None:
    """In the process of its own: read what is to be told, tell it, answer a line for each."""
    import apprise  # noqa: PLC0415 - an extra, and slow to load

    message = json.load(sys.stdin)
    known: list[tuple[int, apprise.Apprise]] = []
    for number, url in enumerate(message["urls"]):
        one = apprise.Apprise()
        if one.add(url):
            known.append((number, one))
        else:
            _answer(number, "unknown")
    if "body" not in message:
        return

    def tell(number: int, one: apprise.Apprise) -> None:
        try:
            # As text: else a service that takes markup would take an agent's words for it.
            told = one.notify(
                title=message["title"],
                body=message["body"],
                body_format=apprise.NotifyFormat.TEXT,
                notify_type=getattr(apprise.NotifyType, message["severity"].upper()),
            )
            _answer(number, "sent" if told else "failed")
        except Exception as error:  # noqa: BLE001 - one that breaks leaves the others theirs
            _answer(number, type(error).__name__)

    with ThreadPoolExecutor(max(1, len(known))) as threads:
        list(threads.map(lambda each: tell(*each), known))


def _answer(number: int, word: str) -> None:
    os.write(1, f"{number} {word}\n".encode())


if __name__ == "__main__":
    main()
