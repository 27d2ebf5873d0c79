"""Send notifications with apprise, an optional dependency.

Apprise runs in a separate process: a thread cannot be killed if a server does not answer, and a
supervisor must not have threads when it starts an agent. Addresses contain secrets, so they are
passed through a pipe, and messages refer to an address only by its position and kind.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

from rekindle.errors import NotifyError, NotifyVariableError
from rekindle.policy.exits.stop_reasons import Severity
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.settings import notify_addresses
from rekindle.policy.settings.runtime_settings import NOTIFY_SECONDS
from rekindle.thresholds.supervision import NOTIFY_KILLED_SECONDS

INSTALL_HINT = "pip install 'rekindle-agents[notify]'"
_ANSWER = re.compile(rb"^(\d+) (\w+)$", re.MULTILINE)
_SCHEME = re.compile(r"([a-z][a-z0-9]{1,15})://")


class Notifier:
    """Sends notifications to the addresses in `notify:`, which use apprise's format."""

    def __init__(
        self,
        urls: Sequence[str],
        redaction: Redaction | None = None,
        environ: Mapping[str, str] = os.environ,
        refuse: Callable[[str], str] = lambda _: "",
    ) -> None:
        """Create a notifier. Variables in addresses are read from `environ` each time.

        `refuse` returns why an address must not be used, or "".
        """
        self._urls = tuple(urls)
        self._redaction = redaction or Redaction()
        self._environ, self._refuse = environ, refuse

    def check(self) -> None:
        """Raise NotifyError if sending would fail, without sending anything."""
        if not self._urls:
            return
        if find_spec("apprise") is None:
            raise NotifyError("`notify:` needs the package apprise", hint=INSTALL_HINT)
        resolved = [notify_addresses.resolve_address(url, self._environ) for url in self._urls]
        for number, answer in self._ask_process({"urls": resolved}).items():
            if answer == "unknown":
                raise NotifyError(
                    f"apprise cannot use {self._name_address(number)}",
                    hint=f"correct it (`apprise --details` lists all kinds), or {INSTALL_HINT} "
                    "--upgrade",
                )

    def send(self, title: str, body: str, severity: Severity = "warning") -> list[str]:
        """Notify all addresses and return any failures as text.

        This never raises or blocks for long.
        """
        if not self._urls:
            return []
        try:
            if find_spec("apprise") is None:
                return [
                    f"no notification was sent, because apprise is not installed ({INSTALL_HINT})"
                ]
            resolved, unusable = self._resolve_addresses()
            message = {"title": self._clean_text(title), "body": self._clean_text(body)}
            answers = self._ask_process({"urls": resolved, "severity": severity, **message})
        except Exception as error:  # noqa: BLE001 - a notification must not stop the run
            return [f"no notification was sent: {type(error).__name__}"]
        answers |= unusable
        return [
            f"{self._name_address(number)} was not notified: {answers.get(number, 'it timed out')}"
            for number in range(len(self._urls))
            if answers.get(number) != "sent"
        ]

    def _resolve_addresses(self) -> tuple[list[str], dict[int, str]]:
        """Return the addresses, and why some of them cannot be used."""
        resolved, unusable = [""] * len(self._urls), {}
        for number, url in enumerate(self._urls):
            try:
                if reason := self._refuse(url):
                    unusable[number] = reason
                else:
                    resolved[number] = notify_addresses.resolve_address(url, self._environ)
            except NotifyVariableError as error:
                unusable[number] = f"${error.variable} is not set"
        return resolved, unusable

    def _clean_text(self, text: str) -> str:
        """Redact the text, and replace characters that cannot be encoded."""
        return self._redaction.text(text).encode("utf-8", "replace").decode()

    def _name_address(self, number: int) -> str:
        """Return only an address's position and kind, because the rest may be secret."""
        kind = _SCHEME.match(self._urls[number])
        return f"address {number + 1} of `notify:`" + (f" ({kind[1]})" if kind else "")

    def _ask_process(self, message: object) -> dict[int, str]:
        """Return the answer for each address that was handled before the timeout."""
        # Use a file for the answers: a child of the process could keep a pipe open.
        with tempfile.TemporaryFile() as answers:
            process = subprocess.Popen(  # noqa: S603 - fixed arguments
                [sys.executable, "-P", "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=answers,
                stderr=subprocess.DEVNULL,  # apprise may print addresses to stderr
                start_new_session=True,
            )
            try:
                process.communicate(json.dumps(message).encode(), NOTIFY_SECONDS)
            except subprocess.TimeoutExpired:
                # The process has not been reaped, so its pid cannot have been reused.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(NOTIFY_KILLED_SECONDS)
            answers.seek(0)
            return {int(number): word.decode() for number, word in _ANSWER.findall(answers.read())}


def main() -> None:
    """Read a message in the separate process and send it."""
    import apprise  # noqa: PLC0415 - an extra, and slow to load

    message = json.load(sys.stdin)
    targets: list[tuple[int, apprise.Apprise]] = []
    for number, url in enumerate(message["urls"]):
        target = apprise.Apprise()
        if target.add(url):
            targets.append((number, target))
        else:
            _print_answer(number, "unknown")
    if "body" not in message:
        return

    def notify_target(number: int, target: apprise.Apprise) -> None:
        try:
            # Send plain text, so that services do not interpret markup in an agent's text.
            is_sent = target.notify(
                title=message["title"],
                body=message["body"],
                body_format=apprise.NotifyFormat.TEXT,
                notify_type=getattr(apprise.NotifyType, message["severity"].upper()),
            )
            _print_answer(number, "sent" if is_sent else "failed")
        except Exception as error:  # noqa: BLE001 - a failing address must not affect the others
            _print_answer(number, type(error).__name__)

    with ThreadPoolExecutor(max(1, len(targets))) as threads:
        list(threads.map(lambda each: notify_target(*each), targets))


def _print_answer(number: int, word: str) -> None:
    os.write(1, f"{number} {word}\n".encode())


if __name__ == "__main__":
    main()
