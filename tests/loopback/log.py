"""What the model was asked: every request as it was received, and what is read from it."""

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from loopback.script import Step

MAIN: Final = "main"
"""The kind of a request of the main conversation; all others are side requests."""


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of what a request gives to the model, in the words of no API."""

    role: Literal["system", "user", "assistant"]
    """The speaker, who may differ from the author of the message that contains it."""
    form: Literal["text", "call", "result"]
    text: str
    call: str = ""
    """Which call this is, or is the result of."""
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """One request, complete when it arrives: it is logged before it is answered."""

    number: int
    method: str
    path: str
    headers: Mapping[str, str]
    """With names in lower case, and without the key."""
    body: Any
    parts: tuple[Part, ...]
    kind: str
    """`MAIN`, or which side request the dialect took it for."""
    step: Step | None
    """What answers it; None where the request is not for a model."""
    place: int | None
    """The index of that step in its script; None if no script had one."""

    @property
    def text(self) -> str:
        """All text that the model was given."""
        return "\n".join(part.text for part in self.parts)

    @property
    def prompts(self) -> list[str]:
        """What the user said, without what the program added on its own."""
        return [part.text for part in self.parts if (part.role, part.form) == ("user", "text")]

    @property
    def injected(self) -> list[str]:
        """The system's words: its prompt, and what hooks and reminders added."""
        return [part.text for part in self.parts if part.role == "system"]

    @property
    def results(self) -> list[Part]:
        """What the tools gave back, in order."""
        return [part for part in self.parts if part.form == "result"]


class Log:
    """Requests in the order of their arrival; any thread may wait for one."""

    def __init__(self) -> None:
        self._requests: list[Request] = []
        self._arrived = threading.Condition()

    def append(self, make: Callable[[int], Request]) -> Request:
        """Keep what `make` returns for the request's number; nothing arrives in between."""
        with self._arrived:
            request = make(len(self._requests))
            self._requests.append(request)
            self._arrived.notify_all()
        return request

    def wait_for(self, wanted: Callable[[Request], bool], timeout: float) -> Request:
        """The first request that is wanted, whether it has arrived already or is to come."""
        with self._arrived:
            if not self._arrived.wait_for(lambda: any(map(wanted, self._requests)), timeout):
                seen = ", ".join(f"{each.method} {each.path} ({each.kind})" for each in self)
                raise TimeoutError(f"no such request in {timeout} s; seen: {seen or 'none'}")
            return next(filter(wanted, self._requests))

    @property
    def main(self) -> list[Request]:
        """The requests of the main conversation."""
        return [request for request in self if request.kind == MAIN]

    @property
    def side(self) -> list[Request]:
        """All others."""
        return [request for request in self if request.kind != MAIN]

    def __iter__(self) -> Iterator[Request]:
        with self._arrived:
            return iter(list(self._requests))

    def __len__(self) -> int:
        return len(self._requests)
