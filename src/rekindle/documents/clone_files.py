"""Render the git files for an agent's clone."""

import re
from collections.abc import Mapping

PROJECT_REMOTE = "project"
"""Name of the remote that points from a clone to the user's checkout."""
WORK_PREFIX = "refs/heads/rekindle/"
"""Prefix of the agents' branches in the user's repository."""
_HEADS, _SNAPSHOTS = "refs/heads/", "refs/rekindle/"
_AS_THEY_ARE = ("refs/tags/", "refs/remotes/")
_COPIED_SETTINGS = re.compile(
    r"user\.(name|email|signingkey)|remote\..+\.(url|pushurl|fetch)|lfs\.(url|storage)"
    r"|core\.(autocrlf|eol|filemode|ignorecase|symlinks|precomposeunicode)"
)


def make_work_branch(agent: str) -> str:
    """Return the name of an agent's branch."""
    return f"rekindle/{agent}/work"


def list_work_branches(refs: Mapping[str, str]) -> list[str]:
    """Return the agents' work branches among a repository's refs."""
    names = (name for name in refs if name.startswith(WORK_PREFIX) and name.endswith("/work"))
    return [name.removeprefix(_HEADS) for name in names]


def select_clone_refs(refs: Mapping[str, str], agent: str) -> dict[str, str]:
    """Return the refs for a new clone of the user's repository.

    The user's branches become remote-tracking branches. Other agents' branches are left out.
    """
    prefixes = (*_AS_THEY_ARE, f"{_SNAPSHOTS}{agent}/")
    own = f"{_HEADS}{make_work_branch(agent)}"
    selected = {
        name: commit for name, commit in refs.items() if name == own or name.startswith(prefixes)
    }
    return selected | select_project_refs(refs)


def select_project_refs(refs: Mapping[str, str]) -> dict[str, str]:
    """Return the user's branches as remote-tracking branches for a clone."""
    return {
        f"refs/remotes/{PROJECT_REMOTE}/{name.removeprefix(_HEADS)}": commit
        for name, commit in refs.items()
        if name.startswith(_HEADS) and not name.startswith(WORK_PREFIX)
    }


def select_remote_refs(refs: Mapping[str, str]) -> dict[str, str]:
    """Return a mirror's tags, and its branches as remote-tracking branches of `origin`."""
    return {
        f"refs/remotes/origin/{name.removeprefix(_HEADS)}" if name.startswith(_HEADS) else name: oid
        for name, oid in refs.items()
    }


def render_remote(url: str, branch: str) -> str:
    """Render the settings of a clone's `origin`, without other agents' branches."""
    lines = [
        '[remote "origin"]',
        f"\turl = {_quote(url)}",
        "\tfetch = +refs/heads/*:refs/remotes/origin/*",
        f"\tfetch = ^{WORK_PREFIX}*",
    ]
    if branch:
        merge = _quote(f"{_HEADS}{branch}")
        lines += [f"[branch {_quote(branch)}]", "\tremote = origin", f"\tmerge = {merge}"]
    return "".join(f"{line}\n" for line in lines)


def parse_refs(listed: str) -> dict[str, str]:
    """Parse lines with a commit and a ref into a mapping from ref to commit."""
    pairs = (line.split(" ", 1) for line in listed.splitlines())
    return {name: commit for commit, name in pairs}


def render_refs(refs: Mapping[str, str]) -> str:
    """Render refs in the `packed-refs` format."""
    return "".join(f"{commit} {name}\n" for name, commit in sorted(refs.items()))


def render_config(settings: Mapping[str, list[str]], repository: str, object_format: str) -> str:
    """Render a clone's configuration.

    `settings` come from the user's repository. Those that could start a program are not copied.
    """
    is_sha1 = object_format == "sha1"
    lines = [
        "[core]",
        f"\trepositoryformatversion = {0 if is_sha1 else 1}",
        "\tbare = false",
        "\tlogallrefupdates = true",
    ]
    lines += [] if is_sha1 else ["[extensions]", f"\tobjectformat = {object_format}"]
    own = f"remote.{PROJECT_REMOTE}"
    copied = {
        key: values
        for key, values in settings.items()
        if _COPIED_SETTINGS.fullmatch(key) and not key.startswith(f"{own}.")
    }
    copied[f"{own}.url"] = [repository]
    copied[f"{own}.fetch"] = [f"+refs/heads/*:refs/remotes/{PROJECT_REMOTE}/*"]
    for key, values in copied.items():
        section, _, rest = key.partition(".")
        subsection, _, name = rest.rpartition(".")
        lines.append(f"[{section} {_quote(subsection)}]" if subsection else f"[{section}]")
        lines += [f"\t{name} = {_quote(value)}" for value in values]
    return "".join(f"{line}\n" for line in lines)


def parse_settings(listed: str) -> dict[str, list[str]]:
    """Parse the output of `git config --null --list`. A setting without a value means `true`."""
    settings: dict[str, list[str]] = {}
    for entry in listed.split("\0")[:-1]:
        name, has_value, value = entry.partition("\n")
        settings.setdefault(name, []).append(value if has_value else "true")
    return settings


def _quote(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
