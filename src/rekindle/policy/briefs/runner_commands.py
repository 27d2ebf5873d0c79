"""Recognize shell commands that run tests.

No list of test runners is complete, so the rules are about the form of a command:

- a program that only runs tests, such as `pytest`;
- any other program, except for common tools such as `cat` and `git`, if its first argument is a
  word such as `test` or `test:unit`;
- a task runner, such as `make`, if any of its tasks is such a word, or `check`, `ci` or `verify`;
- a script whose name says that it runs tests;
- a wrapper, such as `uv run` or `docker compose exec web`, around one of these.

A command that only lists tests or prints a version is not a test run.
"""

import re
import shlex
from collections.abc import Iterator


def _read_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_RUNNERS = _read_words(
    "pytest py.test unittest nose2 tox nox jest vitest mocha ava tap jasmine rspec phpunit"
    " pest ctest prove bats shellspec busted behave behat cucumber robot gotestsum ginkgo"
    " elm-test runtests kaocha minitest stestr testcafe cargo-nextest doctest trial"
)
_TASK_RUNNERS = _read_words(
    "make gmake just task ninja rake mage invoke inv poe npm pnpm yarn bun composer gradle"
    " gradlew mvn mvnw sbt mill nx turbo lerna moon xcodebuild mise cmake r dagger earthly"
)
_PACKAGE_MANAGERS = frozenset(("npm", "pnpm", "yarn", "bun"))
_INTERPRETERS = re.compile(r"(?:python|pypy|node|ruby|php|perl|tsx|ts-node|deno)[\d.]*")
_SHELLS = _read_words("bash sh zsh dash pwsh ssh nix nix-shell su xvfb-run wsl watch vagrant")
"""Programs that take a command as one argument."""
_SCRIPT_SHELLS = _read_words("bash sh zsh dash pwsh")
_SHORT = frozenset(
    ("npm t", "pnpm t", "cargo t", "cypress run", "karma start", "codecept run", "phpspec run")
)
"""Commands that run tests without the word."""
_WRAPPERS = _read_words(
    "env sudo time nice timeout nohup stdbuf setsid npx pnpx bunx uvx xvfb-run xargs coverage"
    " c8 nyc dotenv watch entr strace caffeinate"
)
"""Programs whose arguments are a command."""
_WRAPPING_WORDS = frozenset(("run", "exec", "dlx", "x", "--", "-c", "--run", "--command"))
_TOOLS = _read_words(
    "cat ls grep rg ag ack find fd head tail less more vim vi nano emacs code rm cp mv ln"
    " mkdir rmdir touch echo printf git gh glab hg sed awk tee wc diff chmod chown du df stat"
    " file tree which whereis type command man alias unset test [ pip pip3 apt apt-get brew"
    " curl wget tar zip unzip kill ps psql mysql sqlite3 redis-cli mongosh createdb dropdb scp"
    " rsync tmux screen jq sort uniq cut open bat ping nc host aws gcloud az systemctl service"
    " crontab read pgrep pkill basename dirname realpath import from ruff eslint flake8 pylint"
    " prettier tsc black mypy venv cloc wait sleep true false"
)
_BEFORE = {"cd": 2, "pushd": 2, "source": 2, ".": 2, "set": 2, "export": 2}
"""Number of words of commands that often precede another one on a joined line."""
_KEYWORDS = frozenset(("if", "then", "else", "elif", "while", "until", "do", "!", "{"))
_OTHER_VERBS = _read_words(
    "install i add remove uninstall rm update upgrade list ls show why info search outdated"
    " build pull push init create new publish link config set get view audit pip"
)
_NOT_RUN = re.compile(
    r"--(?:version|help|collect-only|co|list(?:-?tests?)?|listTests|no-run|dry-run|just-print|show"
    r"|summary|init|clearCache|showConfig|fixtures|markers|show-only|setup-plan)$|-(?:V|h)$"
    r"|-D(?:skipTests|maven\.test\.skip)"
)
_QUIET_LISTS = {"make": "-n", "gmake": "-n", "just": "-l", "ctest": "-N", "tox": "-l", "nox": "-l"}
"""Short options with which a program lists its work instead of doing it."""
_TEST = re.compile(
    r"(?:[\w./+@:-]*[:/+_.-])?(?:tests?|specs?|e2e|nextest|run-?tests?|unittests?|eunit)"
    r"(?:[:_-][\w:./-]*)?|[\w:/-]*?(?:test[A-Z]\w*|[a-z]Tests?)",
)
_TASK = re.compile(
    r"(?:[\w:-]*[:_-])?(?:checks?|verify|ci|unit|integration|acceptance)(?:[:_-]\w+)*"
)
_ABOUT_TESTS = re.compile(
    r"data|image|fixture|deps|env\b|setup|clean|build|lint|fmt|format|report|server|install|compile"
    r"|type|docs?\b|\.(?!tests?$|specs?$)\w{1,4}$"
)
_SCRIPT = re.compile(r"(?:.*[_.-])?(?:run)?[_-]?(?:tests?|specs?)(?:[_.-].*)?", re.IGNORECASE)
_OPTION = re.compile(r"(?:--targets?=|-[MXTA]\S*:)tests?\b|[\w;:. ]*\btest\(\)")
"""Options that name a task: `--target=test`, `-X:test` of Clojure, and `Pkg.test()` of Julia."""
_WITH_VALUE = _read_words("-C -f -p -x -n -w -F --prefix --filter --directory --build")
"""Options whose value is not a task."""
_PASSING = _read_words("make xtask build flake run artisan manage.py llvm-cov")
"""First arguments after which the name of a task may follow."""
_OPERATORS = frozenset("();|&\n")


def is_test_run(command: str) -> bool:
    """Return whether a shell command runs tests."""
    return any(_runs_tests(words) for words in _split_commands(command))


def _split_commands(command: str) -> Iterator[list[str]]:
    """Yield the words of each simple command, without redirections."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    redirects = False
    try:
        for token in lexer:
            if not set(token) - _OPERATORS:
                yield words
                words = []
            elif not set(token) - set("<>&"):
                redirects = True
                if words and words[-1].isdigit():
                    words.pop()
            elif redirects:
                redirects = False
            else:
                words.append(token)
    except ValueError:  # the command was cut off inside a quotation
        pass
    yield words


def _runs_tests(words: list[str]) -> bool:
    while words and (words[0] in _KEYWORDS or re.match(r"\w+=", words[0])):
        words = words[1:]
    if not words:
        return False
    program = words[0].rpartition("/")[2].removesuffix(".cmd").removesuffix(".exe").lower()
    rest = words[1:]
    if program in _BEFORE:
        return _runs_tests(words[_BEFORE[program] :])
    if program in _TOOLS or _only_lists(program, rest):
        return False
    if _INTERPRETERS.fullmatch(program):
        return _interprets_tests(program, rest)
    return (
        program in _RUNNERS
        or _is_script(words[0])
        or _wraps_tests(program, rest)
        or _names_tests(program, rest)
    )


def _only_lists(program: str, rest: list[str]) -> bool:
    return any(map(_NOT_RUN.match, rest)) or _QUIET_LISTS.get(program) in rest


def _interprets_tests(program: str, rest: list[str]) -> bool:
    if "-m" in rest:
        return _runs_tests(rest[rest.index("-m") + 1 :])
    if "-c" in rest or "-e" in rest:
        return False
    if program == "node" and "--test" in rest:
        return True
    match [word for word in rest if not word.startswith("-")]:
        case [script, *arguments]:
            name = script.rpartition("/")[2]
            return (
                name in _RUNNERS
                or bool(_SCRIPT.fullmatch(name))
                or any(map(_is_test_word, arguments[:1]))
            )
    return False


def _is_script(path: str) -> bool:
    """Return whether a program is a script that runs tests, such as `./scripts/test.sh`."""
    folder, slash, name = path.rpartition("/")
    is_run = folder.startswith(".") or folder.endswith(("bin", "script", "scripts"))
    return bool(slash) and is_run and bool(_SCRIPT.fullmatch(name)) and not _is_module(name)


def _is_module(name: str) -> bool:
    return bool(re.search(r"\.(?!sh$|bash$|py$|ps1$|bat$)\w+$", name))


def _wraps_tests(program: str, rest: list[str]) -> bool:
    """Return whether a wrapper's arguments contain a command that runs tests."""
    if program in _SHELLS and any(" " in word and is_test_run(word) for word in rest):
        return True
    if program in _SCRIPT_SHELLS and rest and _SCRIPT.fullmatch(rest[-1].rpartition("/")[2]):
        return not _is_module(rest[-1])
    if program in _WRAPPERS:
        start = 0
    else:
        places = [place for place, word in enumerate(rest) if word in _WRAPPING_WORDS]
        if not places or _OTHER_VERBS & set(rest[: places[0]]):
            return False
        start = places[0] + 1
    if program in _PACKAGE_MANAGERS and rest[start - 1 : start] == ["run"]:
        return False  # the name of a task follows, and not a command
    return any(_runs_tests(rest[place:]) for place in range(start, len(rest)))


def _names_tests(program: str, rest: list[str]) -> bool:
    """Return whether a program's first argument, or a task runner's task, is about tests."""
    words = [
        word.partition(" ")[0]
        for place, word in enumerate(rest)
        if not word.startswith("-") and (not place or rest[place - 1] not in _WITH_VALUE)
    ]
    first = words[0] if words else ""
    if program in _SHELLS or (first in _OTHER_VERBS and program != "zig"):
        return False
    if any(map(_OPTION.match, rest)) or f"{program} {first}" in _SHORT:
        return True
    if program in _PACKAGE_MANAGERS and (first == "ci" or first in _RUNNERS):
        return first != "ci"  # `npm ci` installs packages
    if program in _TASK_RUNNERS:
        return any(_is_test_word(word) or _is_task(word) for word in words)
    return any(map(_is_test_word, words[: 2 if first in _PASSING else 1]))


def _is_test_word(word: str) -> bool:
    return bool(_TEST.fullmatch(word)) and not _ABOUT_TESTS.search(word)


def _is_task(word: str) -> bool:
    return bool(_TASK.fullmatch(word)) and not _ABOUT_TESTS.search(word)
