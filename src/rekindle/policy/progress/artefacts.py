"""Decide whether a changed file is a result of the agent's work."""

import re

_RELAY_FILE = re.compile(
    r"\.?(?:prev[_-])?consensus(?:[._-][\w.-]*)?|relay(?:-\d+-\w+)?\.md|(?:\w+-)?progress\.(?:md|txt)"
)
_LOG_FILE = re.compile(r".*\.log(?:\.\w+)*|(?:ops|resolved|trajectory)\.jsonl|nohup\.out")
_LOG_FOLDERS = {"log", "logs"}
_OF_LOGS = ("", ".txt", ".md", ".json", ".jsonl", ".out", ".csv", ".gz")
_RECORDS = {
    *("", ".csv", ".db", ".json", ".jsonl", ".lock", ".log", ".md", ".out", ".sqlite", ".sqlite3"),
    *(".toml", ".txt", ".yaml", ".yml"),
}
_JOURNALS = re.compile(
    r"(?<![a-z])(?:cache|cycles?|diary|focus|heartbeats?|history|journals?|logs?|memor(?:y|ies)"
    r"|metrics|proofs?|runs?|sessions?|stat(?:e|s|us)|telemetry|traces?)(?![a-z])"
)
_DEPENDENCIES = {"node_modules", "__pycache__", "venv"}


def may_hold_artefacts(name: str) -> bool:
    """Return whether an untracked file or folder with this name may contain results."""
    return not name.startswith(".") and name not in _DEPENDENCIES


def is_artefact(path: str) -> bool:
    """Return whether a changed file is a result. Relays, logs and Rekindle's own files are not."""
    *folders, name = path.replace("\\", "/").casefold().rstrip("/").split("/")
    if not name or not {".rekindle", ".git"}.isdisjoint([*folders, name]):
        return False
    if _RELAY_FILE.fullmatch(name) or _LOG_FILE.fullmatch(name):
        return False
    if folders[-2:] == ["memories", "archive"]:
        return False
    stem, dot, ending = name.rpartition(".")
    # A folder named "logs" may contain code, but a text file in such a folder is a log.
    return _LOG_FOLDERS.isdisjoint(folders) or (dot + ending if stem else "") not in _OF_LOGS


def is_record(path: str) -> bool:
    """Return whether a file has a type that journals, state files and logs have."""
    stem, dot, ending = path.casefold().rpartition("/")[2].rpartition(".")
    return (dot + ending if stem else "") in _RECORDS


def is_journal(path: str) -> bool:
    """Return whether a file is by its type and name a journal, a state file or a log."""
    return is_record(path) and _JOURNALS.search(path.casefold()) is not None
