"""Split one-line commands into words, and refuse those that need a shell.

Commands in the manifest do not run in a shell. In a line such as `make && ./check`, `make` would
get the rest of the line as arguments, and only its exit code would count.
"""

import re

import msgspec

from rekindle.errors import ManifestError

_QUOTED = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
_LITERAL = re.compile(r"\\.|'[^']*'", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:\w+|\{\w+)\}?", re.ASCII)
_OPERATOR = re.compile(r"&&|\|\||>>|<<|\$\(|[;&|<>()`\n]")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
_SHELL_WORD = re.compile(
    r"[!.:{]|\[\[|alias|bg|break|case|cd|continue|declare|eval|exec|exit|export|fg|for|function|if"
    r"|jobs|local|popd|pushd|read|readonly|return|select|set|shift|shopt|source|trap|type|typeset"
    r"|ulimit|umask|unalias|unset|until|wait|while"
)
"""Commands that only work in a shell. Some hosts also have a `cd` program, but it does nothing."""


def find_shell_syntax(line: str) -> str:
    """Return the first piece of shell syntax in a line, or "" if there is none."""
    bare = _QUOTED.sub("_", line.strip())
    if operator := _OPERATOR.search(bare):
        return operator[0].replace("\n", "several lines")
    first = bare.split(maxsplit=1)[0] if bare else ""
    return first if _SHELL_WORD.fullmatch(first) or _ASSIGNMENT.match(first) else ""


def find_unexpanded(line: str) -> str:
    """Return the first variable or pattern in a line that a shell would expand, or "".

    Variables in double quotes are included, because a shell expands them too.
    """
    bare = _LITERAL.sub(_mask_match, line)
    if variable := _VARIABLE.search(bare):
        return variable[0]
    words = re.finditer(r"\S+", _QUOTED.sub(_mask_match, line))
    return next((line[slice(*word.span())] for word in words if _is_pattern(word[0])), "")


def _mask_match(match: re.Match[str]) -> str:
    return "_" * len(match[0])


def _is_pattern(word: str) -> bool:
    return word.startswith("~/") or (not {"*", "?"}.isdisjoint(word) and "://" not in word)


def split_line(line: str, key: str, *, file: str, number: int | None) -> list[str]:
    """Split a command into words. `key` and `number` are the command's key and line in the file.

    Raises:
        ManifestError: The line cannot be split, or only a shell could run it.
    """
    import shlex  # noqa: PLC0415 - few manifests need this import

    hint = f'write the program and its arguments, as in `{key}: ["./check", "--all"]`'
    try:
        words = shlex.split(line)
    except ValueError as error:
        reason = f"`{key}: {line}`: {str(error).casefold()}"
        raise ManifestError(reason, file=file, line=number, hint=hint) from error
    if not words:
        raise ManifestError(f"`{key}:` is empty", file=file, line=number, hint=hint)
    if syntax := find_shell_syntax(line):
        shown = syntax if " " in syntax else f"`{syntax}`"
        script = msgspec.json.encode(line.strip()).decode()
        raise ManifestError(
            f"`{key}:` needs a shell for {shown}, but Rekindle runs it without one",
            file=file,
            line=number,
            hint=f"write `{key}: [sh, -c, {script}]`, or quote the characters that are meant "
            "literally",
        )
    return words
