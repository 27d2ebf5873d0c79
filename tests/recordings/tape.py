"""One launch of a real agent CLI, kept: what it said, how it ended, what its hooks were told."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Self

from loopback.install import Package

_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_TIME: Final = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z")
_IN_NAMES: Final = re.compile(r"(?<=-)20\d\d-\d\d-\d\dT\d\d-\d\d(-\d\d(?:-\d{3}Z)?(?![0-9a-f]))?")
_DAY: Final = re.compile(r"(?<=sessions/)20\d\d/\d\d/\d\d")
_SHORT: Final = re.compile(r"(?<=T00-00-)[0-9a-f]{8}(?=\.jsonl)")
_HASH: Final = re.compile(r"\b[0-9a-f]{64}\b")
_HERE: Final = Path(__file__).parents[2]
_ELEMENTS: Final = 3
_MEASURED: Final = re.compile(
    r"duration(_api)?_ms|ttft(_stream)?_ms|(started|completed)_at(_ms)?|create_time"
    r"|time_to_first_token_ms"
)


def folder(name: str, package: Package) -> Path:
    """The recordings of the version that is pinned: with another one, `just record` comes first."""
    return Path(__file__).parent / name / package.version


@dataclass(frozen=True)
class Tape:
    """Its lines are objects, or text where they were torn."""

    characters: ClassVar[int] = 1000
    """The length above which the vendor's own text is cut; standard error may have five times that.
    """

    session: str
    resumes: bool
    code: int
    stderr: str
    stream: list[Any]
    hooks: list[tuple[str, Any]]
    """In the order of the calls: our word for each, and the payload."""
    transcript: list[Any]
    aside: list[Any] = field(default_factory=list)
    """The files of its sub-agents beside the transcript."""
    asked: bool = False
    """It was a question, and no launch of a session."""

    @property
    def tail(self) -> bytes:
        """Return the relevant end of the transcript as it was on disk."""
        return b"".join(as_bytes(line) + b"\n" for line in self.transcript)

    def save(self, path: Path) -> None:
        run = {"code": self.code, "stderr": self.stderr}
        rows: list[dict[str, Any]] = [{"session": self.session, "resumes": self.resumes, **run}]
        rows[0] |= {"asked": True} if self.asked else {}
        rows += [{"stream": line} for line in self.stream]
        rows += [{"hook": event, "payload": payload} for event, payload in self.hooks]
        rows += [{"transcript": line} for line in self.transcript]
        rows += [{"aside": line} for line in self.aside]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))

    @classmethod
    def read(cls, path: Path) -> Self:
        run, *rows = [json.loads(row) for row in path.read_text().splitlines()]
        return cls(
            **run,
            stream=[row["stream"] for row in rows if "stream" in row],
            hooks=[(row["hook"], row["payload"]) for row in rows if "hook" in row],
            transcript=[row["transcript"] for row in rows if "transcript" in row],
            aside=[row["aside"] for row in rows if "aside" in row],
        )

    def without_traces(self, root: Path, programs: Path | None = None) -> Self:
        """Without this machine's paths, without what differs each time, and made short."""
        ids: dict[str, str] = {}
        clean = _cleaner(root, programs, self.characters, ids)
        return type(self)(
            session=clean(self.session),
            resumes=self.resumes,
            code=self.code,
            stderr=_cleaner(root, programs, 5 * self.characters, ids)(self.stderr),
            stream=clean(self.stream, whole=True),
            hooks=[(event, clean(payload)) for event, payload in self.hooks],
            transcript=clean(list(map(self.bare, self.transcript)), whole=True),
            aside=clean(list(map(self.bare, self.aside)), whole=True),
            asked=self.asked,
        )

    @staticmethod
    def bare(record: Any) -> Any:
        """A line of the transcript without what is the vendor's own text."""
        return record


def lines(text: str) -> Iterator[Any]:
    """The lines of a file as JSON, or as they are where they are none."""
    for line in text.splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            yield line


def as_bytes(line: Any) -> bytes:
    return (line if isinstance(line, str) else json.dumps(line)).encode()


def _cleaner(
    root: Path, programs: Path | None, characters: int, ids: dict[str, str]
) -> Callable[..., Any]:
    def numbered(found: re.Match[str]) -> str:
        upper = found[0].isupper()
        name = ids.setdefault(found[0].lower(), f"{len(ids) + 1:08x}-0000-4000-8000-000000000000")
        return name.upper() if upper else name

    def shortened(found: re.Match[str]) -> str:
        return next((ids[each][:8] for each in ids if each.startswith(found[0])), found[0])

    places = {str(root): "/sandbox", re.sub(r"\W|_", "-", str(root)): "-sandbox"}
    places |= {str(programs): "/programs"} if programs else {}
    places |= {str(_HERE): "/rekindle", sys.base_prefix: "/usr"}

    def text(value: str) -> str:
        for place, name in places.items():
            value = value.replace(place, name)
        value = _TIME.sub("2026-01-01T00:00:00.000Z", _UUID.sub(numbered, value))
        value = _DAY.sub("2026/01/01", value)
        value = _IN_NAMES.sub(lambda at: "2026-01-01T00-00" + ("-00" if at[1] else ""), value)
        value = _HASH.sub("0" * 64, _SHORT.sub(shortened, value))
        value = re.sub(r"cc-socks/\d+", "cc-socks/1", value)
        # Codex names a sub-agent by its task, below a root that is not a real folder.
        value = re.sub(r"/root(?=/look\b|(?![\w/.-]))", "/main", value)
        value = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:80", value)
        return value if len(value) <= characters else value[:characters] + "…"

    def clean(value: Any, *, whole: bool = False) -> Any:
        match value:
            case str():
                return text(value)
            case dict():
                return {
                    text(key): 0 if _MEASURED.fullmatch(key) else clean(each)
                    for key, each in value.items()
                }
            case list():
                return [clean(each) for each in (value if whole else value[:_ELEMENTS])]
            case _:
                return value

    return clean


def traces(text: str) -> list[str]:
    """Paths of a machine that were left in; a recording with any is not to be kept."""
    ours = re.compile(r"/sandbox[^\s\"]*")
    return re.findall(r"/(?:tmp|root|opt|work|mnt|home/\w+)/[^\"]+", ours.sub("", text))
