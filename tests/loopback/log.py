"""The requests to the model: every one as it was received, with its parsed parts."""

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from loopback.script import Step

MAIN: Final = "main"
"""The kind of a request of the main conversation; all others are side requests."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a request to the model, independent of the API."""

    role: Literal["system", "user", "assistant"]
    """The speaker, who may differ from the author of the message that contains it."""
    form: Literal["text", "call", "result"]
    text: str
    call: str = ""
    """The id of the call, or of the call that this is the result of."""
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """One complete request: it is logged before it is answered."""

    number: int
    method: str
    path: str
    headers: Mapping[str, str]
    """The headers, with names in lower case, and without the key."""
    body: Any
    parts: tuple[Part, ...]
    kind: str
    """`MAIN`, or the kind of side request that the dialect recognised."""
    step: Step | None
    """The step that answers it; None if the request is not for a model."""
    place: int | None
    """The index of that step in its script; None if no script had one."""

    @property
    def text(self) -> str:
        """Return all text that the model was given."""
        return "\n".join(part.text for part in self.parts)

    @property
    def prompts(self) -> list[str]:
        """Return the user's text, without additions of the program."""
        return [part.text for part in self.parts if (part.role, part.form) == ("user", "text")]

    @property
    def injected(self) -> list[str]:
        """Return the system's text: its prompt, and additions of hooks and reminders."""
        return [part.text for part in self.parts if part.role == "system"]

    @property
    def results(self) -> list[Part]:
        """Return the results of tools, in order."""
        return [part for part in self.parts if part.form == "result"]


class Log:
    """Requests in the order of their arrival; any thread may wait for one."""

    def __init__(self) -> None:
        self._requests: list[Request] = []
        self._arrived = threading.Condition()

    def append(self, make: Callable[[int], Request]) -> Request:
        """Keep the result of `make` for the request's number; nothing arrives in between."""
        with self._arrived:
            request = make(len(self._requests))
            self._requests.append(request)
            self._arrived.notify_all()
        return request

    def wait_for(self, wanted: Callable[[Request], bool], timeout: float) -> Request:
        """Return the first matching request, whether it has arrived already or is still to come."""
        with self._arrived:
            if not self._arrived.wait_for(lambda: any(map(wanted, self._requests)), timeout):
                seen = ", ".join(f"{each.method} {each.path} ({each.kind})" for each in self)
                raise TimeoutError(f"no such request in {timeout} s; seen: {seen or 'none'}")
            return next(filter(wanted, self._requests))

    @property
    def main(self) -> list[Request]:
        """Return the requests of the main conversation."""
        return [request for request in self if request.kind == MAIN]

    @property
    def side(self) -> list[Request]:
        """Return all other requests."""
        return [request for request in self if request.kind != MAIN]

    def __iter__(self) -> Iterator[Request]:
        with self._arrived:
            return iter(list(self._requests))

    def __len__(self) -> int:
        return len(self._requests)
