"""Refuse a schedule that cannot run, and report the line and what to write instead."""

from collections.abc import Callable
from datetime import tzinfo

from rekindle.documents.manifest import Manifest
from rekindle.documents.manifest_schedules import Schedule
from rekindle.errors import ManifestError
from rekindle.formats.yaml_lines import KeyPath, MarkedData
from rekindle.policy.schedules.schedule_rules import ScheduleError, make_rules


def list_schedules(manifest: Manifest) -> list[tuple[KeyPath, Schedule | str]]:
    """Return every `every:` in a manifest, with its path."""
    schedules: list[tuple[KeyPath, Schedule | str]] = [
        (("agents", name, "every"), entry.every)
        for name, entry in manifest.agents.items()
        if entry.every is not None
    ]
    schedules += [
        (("pipelines", name, "every"), pipeline.every)
        for name, pipeline in manifest.pipelines.items()
        if pipeline.every is not None
    ]
    return schedules


def require_valid_schedules(
    manifest: Manifest, marked: MarkedData, find_zone: Callable[[str], tzinfo]
) -> None:
    """Raise ManifestError, with the line number, for the first schedule that cannot run.

    Raises:
        ManifestError: The schedule has a mistake.
    """
    for path, every in list_schedules(manifest):
        try:
            make_rules(str(path[1]), every, find_zone)
        except ScheduleError as error:
            place = (*path, error.key) if error.key and isinstance(every, Schedule) else path
            raise _refuse(marked, place, f"{path[1]}: {error}", error.hint) from error
        if path[0] == "pipelines" and manifest.pipelines[str(path[1])].input == "required":
            raise _refuse(
                marked,
                path,
                f"{path[1]}: a scheduled run has no input, but `input:` is required",
                "write `input: optional`, or remove `every:`",
            )


def _refuse(marked: MarkedData, path: KeyPath, message: str, hint: str) -> ManifestError:
    return ManifestError(message, file=marked.file, line=marked.line(path), hint=hint)
