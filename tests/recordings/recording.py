"""One launch of a real agent CLI, kept: what it said, how it ended, what its hooks were told."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self

from loopback import install
from rekindle.documents.launch import Ended, Exit, Finished, Opened, Refused, Seen
from rekindle.harnesses import claude_code

VERSION: Final = json.loads((install.PINNED / "package.json").read_text())["dependencies"]
KEPT: Final = Path(__file__).parent / "claude-code" / VERSION["@anthropic-ai/claude-code"]
"""Those of the version that is pinned: with another one, `just record` comes first."""

_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_TIME: Final = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z")
_HERE: Final = Path(__file__).parents[2]
_CHARACTERS: Final = 200
_ELEMENTS: Final = 3
_CONVERSATION: Final = frozenset({"user", "assistant", "system"})
_MEASURED: Final = frozenset({"duration_ms", "duration_api_ms", "ttft_ms", "ttft_stream_ms"})


@dataclass(frozen=True)
class Recording:
    """Its lines are objects, or text where they were torn."""

    session: str
    resumes: bool
    code: int
    stderr: str
    stream: list[Any]
    hooks: list[tuple[str, Any]]
    """In the order in which they were called: the word that we gave them, and the payload."""
    transcript: list[Any]

    @cached_property
    def seen(self) -> list[Seen]:
        return [seen for line in self.stream for seen in claude_code.read_stream(_bytes(line))]

    def last(self, kind: type[Any]) -> Any:
        return next((seen for seen in reversed(self.seen) if isinstance(seen, kind)), None)

    @property
    def kinds(self) -> list[str]:
        return [type(seen).__name__ for seen in self.seen]

    @property
    def exit(self) -> Exit:
        opened = self.last(Opened)
        ended = Ended(
            code=self.code,
            session=self.session,
            resumes=self.resumes,
            opened=opened.session if opened else "",
            finished=self.last(Finished),
            refused=self.last(Refused),
            errors=self.stderr,
        )
        return claude_code.classify(ended)

    @property
    def tail(self) -> bytes:
        """The transcript as it stood on disk, as far as it matters."""
        return b"".join(_bytes(line) + b"\n" for line in self.transcript)

    def save(self, path: Path) -> None:
        run = {"code": self.code, "stderr": self.stderr}
        rows: list[dict[str, Any]] = [{"session": self.session, "resumes": self.resumes, **run}]
        rows += [{"stream": line} for line in self.stream]
        rows += [{"hook": event, "payload": payload} for event, payload in self.hooks]
        rows += [{"transcript": line} for line in self.transcript]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))

    @classmethod
    def load(cls, case: str) -> Self:
        run, *rows = [json.loads(row) for row in (KEPT / f"{case}.jsonl").read_text().splitlines()]
        return cls(
            **run,
            stream=[row["stream"] for row in rows if "stream" in row],
            hooks=[(row["hook"], row["payload"]) for row in rows if "hook" in row],
            transcript=[row["transcript"] for row in rows if "transcript" in row],
        )

    def without_traces(self, root: Path) -> Self:
        """Without this machine's paths, without what differs each time, and made short."""
        clean = _cleaner(root)
        return type(self)(
            session=clean(self.session),
            resumes=self.resumes,
            code=self.code,
            stderr=clean(self.stderr),
            stream=clean(self.stream, whole=True),
            hooks=[(event, clean(payload)) for event, payload in self.hooks],
            transcript=clean(list(map(_bare, self.transcript)), whole=True),
        )


def lines(text: str) -> Iterator[Any]:
    """The lines of a file as JSON, or as they are where they are none."""
    for line in text.splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            yield line


def _bare(record: Any) -> Any:
    """Of what is no part of the conversation only its type: the rest is the vendor's own text."""
    if isinstance(record, dict) and record.get("type") not in _CONVERSATION:
        return {"type": record.get("type")}
    return record


def _bytes(line: Any) -> bytes:
    return (line if isinstance(line, str) else json.dumps(line)).encode()


def _cleaner(root: Path) -> Callable[..., Any]:
    ids: dict[str, str] = {}

    def numbered(found: re.Match[str]) -> str:
        upper = found[0].isupper()
        name = ids.setdefault(found[0].lower(), f"{len(ids) + 1:08x}-0000-4000-8000-000000000000")
        return name.upper() if upper else name

    places = {str(root): "/sandbox", re.sub(r"\W|_", "-", str(root)): "-sandbox"}
    places |= {str(_HERE): "/rekindle", sys.base_prefix: "/usr"}

    def text(value: str) -> str:
        for place, name in places.items():
            value = value.replace(place, name)
        value = _TIME.sub("2026-01-01T00:00:00.000Z", _UUID.sub(numbered, value))
        value = re.sub(r"cc-socks/\d+", "cc-socks/1", value)
        value = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:80", value)
        return value if len(value) <= _CHARACTERS else value[:_CHARACTERS] + "…"

    def clean(value: Any, *, whole: bool = False) -> Any:
        match value:
            case str():
                return text(value)
            case dict():
                return {
                    text(key): 0 if key in _MEASURED else clean(each) for key, each in value.items()
                }
            case list():
                return [clean(each) for each in (value if whole else value[:_ELEMENTS])]
            case _:
                return value

    return clean


def traces(text: str) -> list[str]:
    """Paths of a machine that were left in; a recording with any is not to be kept."""
    return re.findall(r"(?<!/sandbox)/(?:tmp|root|opt|work|mnt|home/\w+)/[^\"]+", text)
