"""Decide about an agent's permission request, by the rules of its persona.

1. A call that writes a protected file, or that matches `deny`, is rejected.
2. A call that writes only the draft of the next relay is allowed.
3. A call that matches `ask` waits for a person.
4. A call that matches `allowed_tools` is allowed. Tools that only read are allowed too, because
   agents do not ask about all of them. File tools may write in the agent's folder.
5. Any other call is rejected if the persona lists its tools. Otherwise, it waits for a person.
"""

import os
import re
from typing import Any, Literal

from rekindle.harnesses.acp.acp_calls import FETCHING, READING, WRITING, AcpCall
from rekindle.hook.ask_rules import is_asked, is_named

Decision = Literal["allow", "reject", "ask"]
_SEPARATE = re.compile(r"[;&|<>`\n\r$(){}\\]")
"""Characters with which a command can contain another one."""

Rules = dict[str, Any]
"""Content of the rules file: `allowed` (or None), `deny` and `ask`, each a list of a tool and a
text; `folder`, `draft` and `protected`, which are paths; `seconds` for a call that waits.
"""


def decide_call(rules: Rules, call: AcpCall) -> Decision:  # noqa: PLR0911 - one return per rule
    """Return the decision about a call."""
    files = [_locate(path, rules["folder"]) for path in call.paths.files]
    others = [_locate(path, rules["folder"]) for path in call.paths.others]
    is_writing = call.tool in WRITING
    draft = rules["draft"]
    paths = [path for path in (*files, *others) if not draft or path != draft]
    is_protected = any(_is_inside(path, place) for path in paths for place in rules["protected"])
    is_here = bool(files) and all(_is_inside(path, rules["folder"]) for path in paths)
    if is_writing and is_here and not is_protected and set(files) == {draft}:
        return "allow"
    may_write = is_writing or call.claimed_tool in WRITING
    if (may_write and is_protected) or _matches(rules["deny"], call):
        return "reject"
    if _matches(rules["ask"], call):
        return "ask"
    if call.tool in READING:
        return "allow"
    if rules["allowed"] is None:
        return "ask"
    if is_writing and not is_here:
        return "reject"
    is_allowed = any(_allows(name, text, call) for name, text in rules["allowed"])
    return "allow" if is_allowed else "reject"


def list_names(tool: str) -> tuple[str, ...]:
    """Return all of a persona's names for a tool that an agent describes only by its kind."""
    for group in (READING, WRITING, FETCHING):
        if tool in group:
            return group
    return (tool,)


def _matches(rules: list[list[str]], call: AcpCall) -> bool:
    """Return whether a rule covers a call. Its text may be anywhere in the call's description."""
    names = {*list_names(call.tool), *list_names(call.claimed_tool)}
    return any(is_asked(rules, name, call.texts) for name in names)


def _allows(name: str, text: str, call: AcpCall) -> bool:
    """Return whether a rule allows a call. A text must start the command, which must be simple."""
    if not any(is_named(name, own) for own in list_names(call.tool)):
        return False
    if not text:
        return True
    is_prefix = call.command == text or call.command.startswith(f"{text} ")
    return is_prefix and not _SEPARATE.search(call.command)


def _locate(path: str, folder: str) -> str:
    """Return the real path of a file that a call names, or the root if it is not a path."""
    plain = os.path.expanduser(path.removeprefix("file://"))  # noqa: PTH111 - as below
    try:
        return os.path.realpath(os.path.join(folder, plain))  # noqa: PTH118 - pathlib keeps `..`
    except (OSError, ValueError):
        return os.sep


def _is_inside(path: str, folder: str) -> bool:
    real = os.path.realpath(folder)
    return path == real or path.startswith(f"{real.rstrip('/')}/")
