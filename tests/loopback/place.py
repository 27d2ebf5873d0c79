"""A place with its own processes: a search through processes there sees only the test's.

It is a PID namespace inside the test's network. Programs in it can be signalled by the pids that
they know themselves, and all of them end when the place is closed.
"""

import itertools
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from loopback.namespace import Namespace

_INIT = Path(__file__).with_name("init.py")


class Started:
    """A program that was started in a place."""

    def __init__(self, place: "Place", pid: int, to: Path) -> None:
        self._place, self.pid, self._to = place, pid, to

    def wait(self, timeout: float = 120) -> int:
        """Return its exit code; a negative one is the signal that ended it."""
        return self._place.wait_for(lambda: self._place.ended.get(self.pid), timeout)

    def signal(self, number: int) -> None:
        self._place.signal(self.pid, number)

    @property
    def out(self) -> str:
        return (self._to / "stdout").read_text(errors="replace")

    @property
    def err(self) -> str:
        return (self._to / "stderr").read_text(errors="replace")


class Place:
    def __init__(self, network: Namespace, folder: Path, hostname: str = "") -> None:
        """Create the place; its programs see `hostname` as the name of their host."""
        self._folder = folder
        folder.mkdir(parents=True)
        unshare = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
        named = ([*unshare, "--uts"], [hostname]) if hostname else (unshare, [])
        self._init = subprocess.Popen(
            network.argv([*named[0], sys.executable, "-I", str(_INIT), *named[1]]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.ended: dict[int, int] = {}
        self._answers: dict[int, dict[str, Any]] = {}
        self._numbers = itertools.count(1)
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def start(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, stdin: str = ""
    ) -> Started:
        to = self._folder / str(next(self._numbers))
        to.mkdir()
        (to / "stdin").write_text(stdin)
        # Most tests write a manifest by hand: the folder is trusted unless a test says otherwise.
        whole = {"REKINDLE_TRUST": "1", **env}
        asked = {"do": "start", "argv": list(argv), "env": whole, "cwd": str(cwd)}
        return Started(self, self._ask(**asked, to=str(to))["pid"], to)

    def signal(self, pid: int, number: int) -> None:
        self._ask(do="signal", pid=pid, number=int(number))

    def processes(self) -> list[list[str]]:
        """Return the command lines of all processes in here."""
        return list(self.living().values())

    def living(self) -> dict[int, list[str]]:
        """Return the same by the pids that they have in here."""
        return {one["pid"]: one["argv"] for one in self._ask(do="list")["processes"]}

    def parents(self) -> dict[int, int]:
        """Return the parent of each of them; that of an orphan is the first process in here."""
        return {one["pid"]: one["parent"] for one in self._ask(do="list")["processes"]}

    def wait_for(self, found: Callable[[], Any], timeout: float = 120) -> Any:
        """Wait until `found` returns something, and return it."""
        deadline = time.monotonic() + timeout
        while (result := found()) is None or result is False:
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {timeout} s; alive: {self.processes()}")
            with self._changed:
                self._changed.wait(0.02)
        return result

    def kill(self) -> None:
        """Kill all processes in here at once, without time for a reaction."""
        self._init.kill()
        self.close()

    def close(self) -> None:
        assert self._init.stdin is not None
        assert self._init.stdout is not None
        self._init.stdin.close()
        self._init.wait(30)
        self._reader.join(30)
        self._init.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _ask(self, **request: Any) -> dict[str, Any]:
        number = next(self._numbers)
        assert self._init.stdin is not None
        self._init.stdin.write(json.dumps({"id": number, **request}) + "\n")
        self._init.stdin.flush()
        with self._changed:
            assert self._changed.wait_for(lambda: number in self._answers, 120), "no answer"
        answer = self._answers.pop(number)
        assert "error" not in answer, answer["error"]
        return answer

    def _read(self) -> None:
        assert self._init.stdout is not None
        for line in self._init.stdout:
            said = json.loads(line)
            with self._changed:
                if "ended" in said:
                    self.ended[said["ended"]] = said["code"]
                elif "id" in said:
                    self._answers[said["id"]] = said
                self._changed.notify_all()
