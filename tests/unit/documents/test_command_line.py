"""A command in one line: what a shell would have expanded, and no shell runs it."""

import pytest

from rekindle.documents.command_line import find_unexpanded


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("pytest -q", ""),
        ("./check $HOME/x", "$HOME"),
        ("./check ${HOME}/x", "${HOME}"),
        ('./check "$HOME"', "$HOME"),
        ("./check '$HOME'", ""),
        (r"./check \$HOME", ""),
        ("grep -q done$ file", ""),
        ("./check 5$", ""),
        ("pytest tests/*.py", "tests/*.py"),
        ("pytest 'tests/*.py'", ""),
        ('find . -name "*.py"', ""),
        ("pytest 'a b' tests/?.py", "tests/?.py"),
        ("curl -f http://127.0.0.1/?ready=1", ""),
        ("~/bin/check", "~/bin/check"),
        ("", ""),
    ],
)
def test_what_a_shell_would_expand_is_found(line, word):
    assert find_unexpanded(line) == word
