"""Code and pages avoid words that make sentences hard to read, such as "anew" or "whoever"."""

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

QUOTED: dict[str, tuple[str, ...]] = {
    "tests/docs/test_words.py": ("",),
    # Words that contradict a claim, which policy looks for.
    "src/rekindle/policy/briefs/loop_evidence.py": ("|nobody|",),
    "src/rekindle/policy/relay/end_phrases.py": ("|barely|nobody",),
    # Reports of agents whose work is not done.
    "tests/corpus/claimed_end_phrases.py": ("Nobody on the team can log in.",),
    "tests/unit/policy/relay/test_claimed_end.py": ("Nobody has run it.", "Somebody from ops"),
    # Sentences that a careless agent writes, and one that must not count as an answer.
    "tests/unit/policy/briefs/test_loop_evidence.py": ("Nobody has answered rate-limit.",),
    "tests/unit/policy/test_careless.py": ("Somebody has to finish", "Nobody has fixed"),
    # Prose whose tokens were counted once.
    "tests/unit/policy/text/test_token_estimate.py": (
        "who mended the nets",
        "as though nobody were holding",
        "| nobody  |",
    ),
}
"""Texts per file that keep a word: quoted specifications, or samples that a test reads.

An empty text allows the whole file.
"""

AVOIDED = re.compile(
    r"\b(?:whoever|somebody|nobody|anew|mend(?:s|ed|ing)?|goes\s+on|stands\s+in"
    r"|where\s+there\s+is\s+one|(?P<there>there\s+)?is\s+no(?P<longer>\s+longer)?)\b(?!-)",
    re.IGNORECASE,
)
SUSPECT = re.compile(
    r"whoever|somebody|nobody|anew|mend|goes|stands|where[\W_]+(?:[rfb]+[\W_]+)?there"
    r"|is[\W_]+(?:[rfb]+[\W_]+)?no(?![a-z])",
    re.IGNORECASE,
)
"""Matches every source with an avoided word; the others need not be parsed."""


def avoided(text: str) -> Iterator[re.Match[str]]:
    """Yield the words of a text that should be replaced."""
    for match in AVOIDED.finditer(text):
        if not match["there"] and not match["longer"]:
            yield match


def python_texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield the strings, comments and names of functions and classes, each with its line."""
    parts = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            parts.update(map(id, node.values))
            texts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
            yield node.lineno, "".join(texts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            if id(node) not in parts:
                value = node.value
                yield node.lineno, value if isinstance(value, str) else value.decode("latin-1")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name.replace("_", " ")
    first, lines = 0, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            # A phrase may be wrapped: comments on consecutive lines are one text.
            if token.start[0] != first + len(lines):
                yield first, "\n".join(lines)
                first, lines = token.start[0], []
            lines.append(token.string.lstrip("#").strip())
    yield first, "\n".join(lines)


def findings(name: str, source: str) -> list[str]:
    """Return one line for each avoided word of a file: its place, and the words around it."""
    if not SUSPECT.search(source):
        return []
    texts = python_texts(source) if name.endswith(".py") else [(1, source)]
    found = []
    for first, text in texts:
        kept = [
            range(match.start(), match.end() + 1)
            for quoted in QUOTED.get(name, ())
            for match in re.finditer(re.escape(quoted), text)
        ]
        for match in avoided(text):
            if not any(match.start() in span and match.end() in span for span in kept):
                line = first + text.count("\n", 0, match.start())
                around = text[max(0, match.start() - 30) : match.end() + 30]
                found.append(f"{name}:{line}: {' '.join(around.split())}")
    return found


def files() -> list[str]:
    """Return the tracked Python files and pages that are checked."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "*.py", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    names = [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]
    assert len(names) > 100
    return [name for name in names if QUOTED.get(name) != ("",)]


def test_no_file_has_a_word_to_avoid():
    """Every string, comment, name and page is free of the words, but for what it quotes."""
    found = [line for name in files() for line in findings(name, (ROOT / name).read_text())]
    assert not found, "\n".join(["reword these:", *found])


def test_every_quotation_is_still_needed():
    """Each allowed text occurs in its file and has a word to avoid in it."""
    for name, quotations in QUOTED.items():
        source = (ROOT / name).read_text()
        texts = [text for _, text in python_texts(source)] if name.endswith(".py") else [source]
        for quoted in filter(None, quotations):
            assert list(avoided(quoted)), f"{name} quotes nothing to avoid: {quoted}"
            assert any(quoted in text for text in texts), f"{name} has no text {quoted!r}"


@pytest.mark.parametrize(
    "words",
    [
        "whoever reads it",
        "Somebody asks",
        "nobody knows",
        "begun anew",
        "it goes on",
        "stands in its place",
        "mend it",
        "mended",
        "read it where there is one",
        "this is no file",
    ],
)
def test_each_word_is_found_wherever_it_is_planted(words):
    """It may be in any text or name of a source, or in a page, wrapped or in parts of a string."""
    name = words.replace(" ", "_")
    wrapped = words.replace(" ", "\n")
    parts = " ".join(f"f'{word} '" for word in words.split())
    planted = [
        f'"""Say: {words}."""\n',
        f'"""Say: {wrapped}."""\n',
        "\n".join(["x = 1", *(f"# {line}" for line in wrapped.splitlines())]),
        f"x = 1  # {words}\n",
        f"x = 'say: {words}'\n",
        f"x = f'{{y}} {words}'\n",
        f"x = b'{words}'\n",
        f"x = ({parts})\n",
        f"def test_{name}():\n    pass\n",
    ]
    for source in planted:
        assert len(findings("a.py", source)) == 1, source
    assert len(findings("a.md", f"Say: {wrapped}.\n")) == 1


def test_the_place_of_a_word_is_named():
    """A finding names the line of the word, not the line where its text begins."""
    assert findings("a.py", '"""One.\n\nTwo nobody three.\n"""\n') == [
        "a.py:3: One. Two nobody three."
    ]


@pytest.mark.parametrize(
    "words",
    ["there is no file", "it is no longer there", "this is not a file", "recommend", "is no-op"],
)
def test_plain_words_are_not_found(words):
    """The check knows the forms that are plain English."""
    assert findings("a.md", words) == []


def test_a_quotation_is_allowed_only_in_its_file(monkeypatch):
    """The same words elsewhere, or beside the quotation, are found."""
    monkeypatch.setitem(QUOTED, "a.md", ("the file is no relay",))
    assert findings("a.md", "`the file is no relay`") == []
    assert len(findings("a.md", "`the file is no relay`, nobody knows why")) == 1
    assert len(findings("b.md", "`the file is no relay`")) == 1
