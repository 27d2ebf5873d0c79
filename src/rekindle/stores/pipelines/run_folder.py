"""The folder of a pipeline run, outside the workspace, where no agent can write.

    pipelines/NAME/last              number of the last run
    pipelines/NAME/N/definition.json the steps, as they were when the run started
    pipelines/NAME/N/ops.jsonl       the log: one event per line, appended by the coordinator
    pipelines/NAME/N/lock            held by the coordinator
    pipelines/NAME/N/commands/       the operator's commands that are not in the log yet
    pipelines/NAME/N/workers.json    the agents that work on the run
    pipelines/NAME/N/items/          the items of each matrix step
    pipelines/NAME/N/settings.json   the settings that the operator accepted for its workers
    pipelines/NAME/N/notice          why the run is waiting for the operator
    pipelines/NAME/N/prompts/        the prompt of each worker
    pipelines/NAME/N/output.log      output of the coordinator's process

The steps' outputs are in another folder, which workers may read.
"""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

import msgspec

from rekindle.documents import events
from rekindle.documents.events.event import UnknownEvent
from rekindle.documents.pipelines.pipeline_events import (
    AnyPipelineEvent,
    PipelineEnded,
    PipelineResumed,
    PipelineStarted,
    PipelineStopped,
    parse_pipeline_event,
)
from rekindle.errors import DocumentError, StoreError
from rekindle.policy.pipelines.pipeline_state import PipelineState, fold
from rekindle.policy.pipelines.run_definition import RunDefinition, WorkerRecord
from rekindle.policy.settings.runtime_settings import EDIT_LOCK_SECONDS
from rekindle.stores.folders.private_files import PrivateProject
from rekindle.system.files import durable_files, file_locks, file_status
from rekindle.system.remove_folder import remove_folder

_Decoded = TypeVar("_Decoded")
_HALF_MADE = ".new-"
OperatorEvent = PipelineStopped | PipelineResumed


class RunFolder(msgspec.Struct, frozen=True):
    path: Path
    outputs: Path
    """Folder with the steps' outputs and changes."""

    @property
    def pipeline(self) -> str:
        return self.path.parent.name

    @property
    def run(self) -> int:
        return int(self.path.name)

    @property
    def prompts(self) -> Path:
        return self.path / "prompts"

    @property
    def output_log(self) -> Path:
        """File for the output of the coordinator's process."""
        return self.path / "output.log"

    @property
    def log(self) -> Path:
        return self.path / "ops.jsonl"

    @property
    def settings(self) -> Path:
        """The settings that the operator accepted for the run's workers."""
        return self.path / "settings.json"

    @property
    def _lock(self) -> Path:
        return self.path / "lock"

    @property
    def _commands(self) -> Path:
        return self.path / "commands"

    @property
    def _workers(self) -> Path:
        return self.path / "workers.json"

    def read_definition(self) -> RunDefinition:
        """Return the run's definition.

        Raises:
            DocumentError: The file is damaged or missing.
        """
        return _decode(self.path / "definition.json", RunDefinition)

    def read_events(self) -> list[AnyPipelineEvent | UnknownEvent]:
        """Return all of the run's events."""
        return [*map(parse_pipeline_event, self.read_lines())]

    def read_lines(self) -> list[bytes]:
        """Return the lines of the log, without lines that a power loss cut off."""
        lines = (durable_files.read_bytes(self.log) or b"").split(b"\n")[:-1]
        return [
            line
            for line in lines
            if line.strip() and not line.endswith(durable_files.TORN_MARK.rstrip(b"\n"))
        ]

    def read_state(self) -> PipelineState:
        """Return the run's state, including commands that are not in its log yet."""
        # Read commands first, because the coordinator moves them to the log.
        commands = self.read_commands()
        return fold([*self.read_events(), *commands])

    def is_open(self) -> bool:
        """Return whether the run has not ended, or the operator has resumed it."""
        if self.read_commands():
            return self.read_state().ended is None
        last = self.read_lines()[-1:]
        # Most runs are over, and then their last event is enough.
        is_over = bool(last) and isinstance(parse_pipeline_event(last[0]), PipelineEnded)
        return not is_over and self.read_state().ended is None

    def append(self, event: AnyPipelineEvent) -> None:
        """Append an event durably. Only the holder of the lock may call this."""
        durable_files.append_durably(self.log, events.render(event) + b"\n")

    def hold(self) -> AbstractContextManager[file_locks.FileLock | None]:
        """Hold the run's lock, or yield None if another coordinator holds it."""
        return file_locks.hold_lock(self._lock, 0.0)

    def is_coordinated(self) -> bool:
        """Return whether a coordinator is running."""
        return durable_files.path_exists(self._lock) and file_locks.is_locked(self._lock)

    def submit(self, event: OperatorEvent) -> None:
        """Record an operator command for the coordinator to append to the log."""
        durable_files.make_folder(self._commands)
        name = f"{event.ts.timestamp():.6f}-{secrets.token_hex(4)}.json"
        durable_files.replace_file(self._commands / name, events.render(event))

    def take_commands(self) -> Iterator[OperatorEvent]:
        """Yield each operator command, and remove its file after the caller has used it.

        If the coordinator is killed partway, the log has the command twice, but it counts once.
        """
        for path in self._list_commands():
            event = parse_pipeline_event(durable_files.read_bytes(path) or b"")
            if isinstance(event, PipelineStopped | PipelineResumed):
                yield event
            durable_files.remove_file(path)

    def read_commands(self) -> list[AnyPipelineEvent | UnknownEvent]:
        """Return the operator's commands that are not in the log yet."""
        data = map(durable_files.read_bytes, self._list_commands())
        return [parse_pipeline_event(line) for line in data if line is not None]

    def _list_commands(self) -> list[Path]:
        if not self._commands.is_dir():
            return []
        names = durable_files.list_entries(self._commands)
        return sorted(self._commands / name for name in names if name.endswith(".json"))

    def read_workers(self) -> dict[str, WorkerRecord]:
        """Return the run's agents by name."""
        if not durable_files.path_exists(self._workers):
            return {}
        return _decode(self._workers, dict[str, WorkerRecord])

    def stamp_workers(self) -> object:
        """Return a value that changes with the list of agents."""
        return file_status.make_file_stamp(self._workers)

    def write_workers(self, workers: Mapping[str, WorkerRecord]) -> None:
        """Replace the list of agents. Only the holder of the lock may call this."""
        durable_files.replace_file(self._workers, msgspec.json.encode(workers))

    def write_notice(self, words: str) -> None:
        """Record why the run is waiting; empty if it is not waiting."""
        if words != self.read_notice():
            durable_files.replace_file(self.path / "notice", words.encode("utf-8", "replace"))

    def read_notice(self) -> str:
        """Return why the run is waiting for the operator, or ""."""
        return (durable_files.read_bytes(self.path / "notice") or b"").decode("utf-8", "replace")

    def write_items(self, step: str, data: bytes) -> None:
        """Store the items of a matrix step. Later changes to the list have no effect."""
        durable_files.make_folder(self.path / "items")
        durable_files.replace_file(self.path / "items" / f"{step}.json", data)

    def read_items(self, step: str) -> bytes:
        return durable_files.read_bytes(self.path / "items" / f"{step}.json") or b""

    def find_output(self, step: str, name: str, file: str, key: str | None) -> Path:
        """Return the path at which a step's output is stored.

        `file` is the output's path in the step's folder, and `key` is the worker of a matrix step.
        """
        suffix = Path(file).suffix
        if key is None:
            return self.outputs / step / f"{name}{suffix}"
        return self.outputs / step / name / f"{key}{suffix}"

    def remove(self) -> None:
        """Remove the run and its outputs. Its commits stay in the repository."""
        if self.outputs.is_dir():
            remove_folder(self.outputs)
        remove_folder(self.path)


def list_runs(private: PrivateProject, pipeline: str | None = None) -> list[RunFolder]:
    """Return the runs of one or all pipelines, oldest first."""
    above = private.pipelines
    if not above.is_dir():
        return []
    names = sorted(durable_files.list_entries(above)) if pipeline is None else [pipeline]
    return [
        find_run(private, name, number)
        for name in names
        if (above / name).is_dir()
        for number in sorted(
            map(int, filter(str.isdigit, durable_files.list_entries(above / name)))
        )
    ]


def find_run(private: PrivateProject, pipeline: str, number: int) -> RunFolder:
    """Return the folder of a run, which may not exist."""
    place = (pipeline, str(number))
    return RunFolder(private.pipelines.joinpath(*place), private.outputs.joinpath(*place))


def create_run(
    private: PrivateProject, definition: RunDefinition, started: PipelineStarted, last: int = 0
) -> RunFolder:
    """Create the folder of the next run atomically, with its first event.

    `last` is the highest run number that the project has used elsewhere for this pipeline.
    """
    private.make()
    above = private.pipelines / definition.pipeline
    durable_files.make_folder(private.pipelines)
    durable_files.make_folder(above)
    with file_locks.hold_lock(above / "lock", EDIT_LOCK_SECONDS) as lock:
        if lock is None:
            raise StoreError(str(above), "another process is starting a run")
        number = max(_find_last_number(above), last) + 1
        # Write this first, so that no number is reused, even after its folder was removed.
        durable_files.replace_file(above / "last", str(number).encode())
        folder = find_run(private, definition.pipeline, number)
        for path in (*reversed(folder.outputs.parents), folder.outputs):
            if not path.exists():
                durable_files.make_folder(path)
        attempt = above / f"{_HALF_MADE}{secrets.token_hex(4)}"
        durable_files.make_folder(attempt)
        change = msgspec.structs.replace
        durable_files.replace_file(
            attempt / "definition.json", msgspec.json.encode(change(definition, run=number))
        )
        durable_files.append_durably(
            attempt / "ops.jsonl", events.render(change(started, run=number)) + b"\n"
        )
        for name in ("commands", "prompts"):
            durable_files.make_folder(attempt / name)
        durable_files.rename_durably(attempt, folder.path)
    return folder


def _find_last_number(above: Path) -> int:
    recorded = durable_files.read_bytes(above / "last") or b""
    numbers = [int(recorded)] if recorded.isdigit() else []
    numbers += [int(name) for name in durable_files.list_entries(above) if name.isdigit()]
    return max(numbers, default=0)


def _decode(path: Path, kind: type[_Decoded]) -> _Decoded:
    try:
        return msgspec.json.decode(durable_files.read_bytes(path) or b"", type=kind)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise DocumentError(path.name, f"cannot be read ({error})") from error
