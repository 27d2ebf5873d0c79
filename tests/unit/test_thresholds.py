"""Every threshold is declared once, and no module keeps a number of its own."""

import ast
import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import get_args

import pytest

from rekindle import thresholds
from rekindle.policy.settings import runtime_settings
from rekindle.thresholds import (
    FIXED,
    Threshold,
    Unit,
    declare_threshold,
)

pytestmark = pytest.mark.pure

SOURCE = Path(thresholds.__file__).parents[1]

ALLOWED = {
    "*:*SCHEMA": "version of a format on disk or of printed JSON",
    "*:*_MODE": "permission bits of a file",
    "*:_DAY*": "conversion of units",
    "policy/settings/runtime_settings.py:SECONDS_AN_HOUR": "conversion of units",
    "documents/screens/metrics_otlp.py:_CUMULATIVE": "number of a kind in OTLP",
    "documents/traces/trace_span.py:_*": "numbers of kinds and codes in OTLP",
    "policy/supervision/budget.py:_MILLION": "conversion of units",
    "policy/schedules/*:*": "the calendar and its units of time",
    "policy/projection/open_loops.py:_TICK": "the smallest difference of two times",
    "hook/*:*": "the hook imports nothing of ours, because every tool call waits for it",
    "demo/*:*": "the script of a demonstration",
    "testing/*:*": "inputs of tests",
    "flows/torture_folder.py:*": "the load of `rekindle torture`",
    "policy/redact/*:*": "shapes of secrets, fitted together with the patterns beside them",
    "__main__.py:UNSUPPORTED": "exit code",
    "cli/main.py:*": "exit codes",
    "mcp/messages.py:*": "error codes of JSON-RPC",
    "cli/output_file.py:_FOR_ALL": "permission bits of a file",
    "cli/reports/ui_command.py:_LARGEST_PORT": "port numbers of TCP",
    "web/page_links.py:_TOKEN_BYTES": "256 bits, which cannot be guessed",
    "cli/setup/torture_command.py:_LARGEST_SEED": "range of a random generator",
    "documents/event_output.py:_*_DIGITS": "format of printed JSON",
    "documents/hooks/hook_record.py:_WORDS": "format of an inbox line",
    "documents/hooks/hook_settings.py:_LONG_NUMBER": "digits that Python converts to a number",
    "fleet/engine/payload_codec.py:_NONCE_BYTES": "AES-GCM",
    "fleet/engine/encryption_keys.py:KEY_BYTES": "AES-256",
    "flows/transcripts/transcript_reader.py:_BUFFER_BYTES": "buffer",
    "flows/transcripts/transcript_reader.py:_MARK_BYTES": "format of a place in a transcript",
    "harnesses/*_exits.py:*": "HTTP and exit status codes",
    "harnesses/exit_verdicts.py:_BROKEN": "HTTP status code",
    "harnesses/codex/codex_hooks.py:ENDING_SECONDS": "timeout that Codex itself sets",
    "harnesses/acp/acp_bridge.py:VERSION": "version of a protocol",
    "harnesses/acp/acp_bridge.py:METHOD_MISSING": "error code of JSON-RPC",
    "harnesses/untrusted_json.py:_MOST": "largest integer of JavaScript",
    "phone/ntfy.py:_*": "limits of ntfy, and HTTP status codes",
    "phone/telegram.py:_*": "limits of Telegram, and HTTP status codes",
    "policy/summaries/attribution.py:_TELLING": "word count of a language rule",
    "policy/briefs/brief_content.py:_UNIT_WORDS": "word count of a language rule",
    "policy/briefs/brief_request.py:_SHORT": "end of a halving that would not stop",
    "policy/briefs/loop_evidence.py:_BY_ID": "rank above every likeness",
    "policy/stall/stall_response.py:*_RUNG": "numbers of the steps of a ladder",
    "policy/relay/redebate.py:_FEWEST": "word count of a language rule",
    "policy/projection/sessions.py:NOT_IN_LOG": "position after every event",
    "policy/exits/backoff.py:_MOST_DOUBLINGS": "keeps a power within a float",
    "stores/log/inbox.py:_VERSION": "version of a format on disk",
    "stores/log/event_log.py:_BLOCK": "buffer",
    "stores/log/question_numbers.py:_DIGITS": "format of an id on disk",
    "stores/log/seal.py:_*": "format on disk",
    "stores/files/supervisor_locks.py:_SLOT_BYTES": "format on disk",
    "stores/files/transcript_archive.py:_*": "zlib's window and buffers",
    "policy/sandbox/resource_limits.py:_MICROSECONDS": "unit",
    "terminal_screen/*:_*": "widths and steps of a screen's layout",
    "system/terminal/tmux.py:_SOCKET_BYTES": "limit of the kernel",
    "stores/folders/private_files.py:_HASH_LENGTH": "format of a folder's name",
    "system/files/file_status.py:_*": "arguments of Linux's statx",
    "system/files/hook_program.py:_HASH_LENGTH": "format of a file's name",
    "system/processes/linux_processes.py:_*": "arguments of prctl and fields of /proc",
    "system/processes/launch_processes.py:_ABOVE": "layout of a project's folder",
    "system/processes/launch_processes.py:_FACTS_OF_BIRTH": "format of a process's mark",
    "system/processes/child_processes.py:_PIPE_BYTES": "largest pipe of Linux",
    "policy/pipelines/worker_names.py:_*": "format of an agent's name",
    "documents/launches/launch_credentials.py:_LAST_PORT": "port numbers of TCP",
    "policy/sandbox/gateway_access.py:_PLAIN_PORT": "port of HTTP",
    "policy/sandbox/gateway_access.py:_TLS_PORT": "port of HTTPS",
    "policy/sandbox/allowed_hosts.py:PROXY_PORT": "port of a proxy, whose network is its own",
    "system/sandbox/egress_proxy.py:*": "the proxy imports nothing of ours, like the hook",
    "system/sandbox/sandbox_entry.py:*": "as above",
    "system/sandbox/container_init.py:*": "as above",
    "system/sandbox/container_launcher.py:*": "as above",
    "policy/sandbox/syscall_filter.py:_*": "flags and error codes of the kernel",
    "system/processes/program_search.py:_SHEBANG_BYTES": "longest first line that Linux reads",
    "system/terminal/pty_process.py:_PIECE_BYTES": "buffer",
    "system/terminal/pty_process.py:_SIZE_BYTES": "size of struct winsize",
}
"""Numbers outside `rekindle.thresholds` as `file:name`, each with its reason."""
ALLOWED_INSIDE = {
    "cli/fleet/deploy_command.py:_PERCENT": "range of a percentage",
    "cli/fleet/fleet_command.py:_PORT": "port numbers of TCP",
    "cli/fleet/fleet_command.py:dev": "usual port of the engine's UI",
    "policy/traces/build_trace.py:_*": "lengths of ids in OTLP",
    "formats/identifiers.py:make_agent_name": "format of a name on disk",
    "cli/output.py:_escape_control": "largest byte",
    "cli/setup/torture_command.py:torture": "the load of `rekindle torture`",
    "demo/*:*": "the script of a demonstration",
    "formats/identifiers.py:derive_id": "format of an id on disk",
    "formats/identifiers.py:make_slug": "format of an id on disk",
    "formats/outline.py:_find_headings": "indentation that makes code in Markdown",
    "errors/*:*": "exit codes",
    "flows/torture_folder.py:*": "the load of `rekindle torture`",
    "harnesses/claude_code/claude_harness.py:_render_cap": "smallest budget that Claude Code takes",
    "harnesses/command_harness.py:read_stream": "bytes of the longest character in UTF-8",
    "hook/*:*": "the hook imports nothing of ours, because every tool call waits for it",
    "policy/exits/stop_reasons.py:OUTCOMES": "exit codes",
    "policy/exits/usage_limits.py:_parse_clock": "hours of a clock",
    "policy/pipelines/worker_names.py:NAME_ROOM": "format of an agent's name",
    "policy/redact/*:*": "shapes of secrets, fitted together with the patterns beside them",
    "policy/settings/fleet_settings.py:*": "defaults of manifest keys, declared with `_doc`",
    "policy/settings/runtime_settings.py:*": "defaults of manifest keys, declared with `_doc`",
    "policy/text/token_estimate.py:_classify_bytes": "number of bytes there are",
    "stores/log/event_log.py:compute_anchor": "format on disk",
    "stores/folders/private_files.py:_name": "format of a folder's name",
    "system/terminal/tmux.py:find_socket": "format of a file's name",
    "testing/*:*": "inputs of tests",
}
"""Limits inside functions as `file:function`, each with its reason."""
SMALL = {-1, 0, 1, 2}
"""Numbers that count, halve or point to the end: a limit is larger."""
SHORTEST_TEXT = 20
"""A slice below this takes a field, a digest or a date apart; a longer one cuts a text."""
CUTTING = {
    *("one_line", "word", "timedelta", "sleep", "wait", "wait_for", "join", "select"),
    *("min", "max", "IntRange", "FloatRange", "Number"),
}
"""Calls whose numbers are limits, also without a keyword."""
CACHES = {"lru_cache", "_doc"}
"""Calls whose numbers are none: sizes of caches change no result, `_doc` declares a setting."""
CONVERSIONS = {60, 100, 1_000, 10**6, 10**9}
"""Factors between units: minutes, percent, and parts of a second."""


def is_number(node: ast.expr) -> bool:
    """A literal number, or one that is computed from literals only; a time span too."""
    if isinstance(node, ast.Constant):
        return type(node.value) in {int, float}
    if isinstance(node, ast.BinOp):
        return is_number(node.left) and is_number(node.right)
    if isinstance(node, ast.UnaryOp):
        return is_number(node.operand)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        return node.func.id in {"timedelta", "Duration"} and all(map(is_number, given))
    return False


def find_numbers(source: str) -> Iterator[str]:
    """Return the names of a module's numeric constants."""
    for node in ast.parse(source).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        value = getattr(node, "value", None)
        if isinstance(value, ast.expr) and is_number(value):
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def is_limit(node: ast.expr | None, least: float = 0) -> bool:
    """A literal number that is not small and at least so large."""
    if node is None or not is_number(node):
        return False
    if isinstance(node, ast.Call):
        return any(map(is_limit, [*node.args, *(keyword.value for keyword in node.keywords)]))
    number = eval(compile(ast.Expression(node), "", "eval"), {})  # noqa: S307 - literals only
    return number not in SMALL and number >= least


def find_limits(source: str) -> Iterator[str]:
    """Return the names of functions, classes and assignments that keep a limit of their own."""
    open_nodes: list[tuple[ast.AST, str]] = [(ast.parse(source), "module")]
    while open_nodes:
        parent, name = open_nodes.pop()
        for node in ast.iter_child_nodes(parent):
            inner = _name_scope(node, parent) or name
            open_nodes.append((node, inner))
            if _holds_limit(node, parent):
                yield inner


def _name_scope(node: ast.AST, parent: ast.AST) -> str:
    match node, parent:
        case ((ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef()), _):
            return node.name
        case (ast.Assign(targets=[ast.Name(id=name), *_]), ast.Module()):
            return name
        case (ast.AnnAssign(target=ast.Name(id=name)), ast.Module()):
            return name
    return ""


def _holds_limit(node: ast.AST, parent: ast.AST) -> bool:  # noqa: PLR0911 - one kind of node each
    """Return whether a node is a default, an attribute, a cut, a bound, a time or a factor."""
    match node:
        case ast.arguments(defaults=defaults, kw_defaults=more):
            return any(map(is_limit, [*defaults, *more]))
        case ast.Assign(value=value) | ast.AnnAssign(value=value):
            return not isinstance(parent, ast.Module) and is_limit(value)
        case ast.Slice(upper=upper):
            return is_limit(upper, SHORTEST_TEXT)
        case ast.Compare(left=left, comparators=others):
            return any(map(is_limit, [left, *others]))
        case ast.Call(func=func, args=args, keywords=keywords):
            called = func.attr if isinstance(func, ast.Attribute) else ast.unparse(func)
            values = [keyword.value for keyword in keywords]
            given = [*args, *values] if called in CUTTING else values
            return called not in CACHES and any(map(is_limit, given))
        case ast.BinOp(left=left, op=op, right=right):
            return _scales(left, op, right) or _scales(right, op, left)
    return False


def _scales(value: ast.expr, op: ast.operator, number: ast.expr) -> bool:
    """Return whether a literal changes a value: as a factor, or added to a threshold."""
    if is_number(value) or not is_limit(number):
        return False
    if isinstance(op, ast.Mult | ast.Div | ast.FloorDiv):
        return eval(ast.unparse(number), {}) not in CONVERSIONS  # noqa: S307 - literals only
    names = (one.id for one in ast.walk(value) if isinstance(one, ast.Name))
    return isinstance(op, ast.Add | ast.Sub) and any(one.isupper() for one in names)


def find_undeclared(numbers: list[str], allowed: Mapping[str, str] = ALLOWED) -> list[str]:
    """Return the numeric constants that are neither declared nor allowed."""
    return [one for one in numbers if not any(fnmatch(one, pattern) for pattern in allowed)]


def find_faults(declared: Mapping[str, Threshold]) -> list[str]:
    """Return the thresholds without a number, a unit or a sentence that says what it means."""
    faults = []
    for key, (default, unit, meaning) in declared.items():
        numbers = default if isinstance(default, tuple) else (default,)
        if (
            not all(type(number) in {int, float} for number in numbers)
            or unit not in get_args(Unit)
            or not meaning[:1].isupper()
            or not meaning.endswith(".")
            or "." not in key
        ):
            faults.append(key)
    return faults


def search_source(find: Callable[[str], Iterator[str]]) -> list[str]:
    """Return what is found in the source files, as `file:name`."""
    return [
        f"{file.relative_to(SOURCE).as_posix()}:{name}"
        for file in sorted(SOURCE.rglob("*.py"))
        for name in find(file.read_text("utf-8"))
    ]


@pytest.fixture(scope="module")
def numbers() -> list[str]:
    return search_source(find_numbers)


@pytest.fixture(scope="module")
def limits() -> list[str]:
    return search_source(find_limits)


def test_no_module_keeps_a_threshold_of_its_own(numbers):
    """A number belongs into `rekindle.thresholds`, or on the list above with its reason."""
    assert find_undeclared(numbers) == []


@pytest.mark.parametrize(
    "line", ["LIMIT = 3", "_WAIT: Final = 2 * 60.0", "_WAIT = timedelta(days=1)", "X: int = -1"]
)
def test_a_new_number_in_a_module_is_found(line):
    """Whatever its form, the check above names it."""
    [name] = find_numbers(line)
    for file in ("flows/new.py", "thresholds/new.py"):
        assert find_undeclared([f"{file}:{name}"]) == [f"{file}:{name}"]


def test_no_function_keeps_a_limit_of_its_own(limits):
    """The same inside functions: how much is cut off, how long is waited, how many are shown."""
    assert find_undeclared(limits, ALLOWED_INSIDE) == []


@pytest.mark.parametrize(
    "line",
    [
        "def new(text): return one_line(text, 80)",
        "def new(text): return text[:80]",
        "def new(text, most=3): return text",
        "def new():\n    patience = 5.0",
        "async def new(): await asyncio.sleep(0.1)",
        "def new(): return timedelta(minutes=2 * 5)",
        "def new(text): return len(text) > 500",
        "def new(text): return 3 <= len(text)",
        "def new(thread): thread.join(timeout=30)",
        "def new(process): process.wait(30)",
        "def new(lock): lock.acquire(wait=5)",
        "def new(): return LOCK_WAIT_SECONDS * 10",
        "def new(patience): return patience / 8",
        "def new(): return STOP_SECONDS + 5",
        "def new(many): return min(many, 50)",
        "class new:\n    most = 500",
        "class new(Struct):\n    most: int = 500",
        "@click.option('--slots', default=4)\ndef new(): ...",
        "new = click.option('-n', type=click.IntRange(0, 500))",
        "new = click.option('-n', type=Number(0, 500))",
        "new = 2 * STOP_SECONDS + 5",
    ],
)
def test_a_new_limit_in_a_function_is_found(line):
    assert set(find_limits(line)) == {"new"}
    assert find_undeclared(["flows/new.py:new"], ALLOWED_INSIDE) == ["flows/new.py:new"]


@pytest.mark.parametrize(
    "line",
    [
        "def new(text): return text[:8]",
        "def new(x, least=1): x = 0",
        "def new(seconds): return seconds / 60",
        "def new(place): return place + 5",
        "def new(span): return span <= timedelta(0)",
        "@lru_cache(maxsize=4096)\ndef new(): ...",
    ],
)
def test_a_number_that_is_not_a_limit_is_left_alone(line):
    assert list(find_limits(line)) == []


def test_every_reason_is_still_needed(numbers, limits):
    """An entry whose number is gone would hide the next one."""
    for allowed, found in ((ALLOWED, numbers), (ALLOWED_INSIDE, limits)):
        assert {one for one in allowed if not any(fnmatch(each, one) for each in found)} == set()


def test_every_threshold_has_a_number_a_unit_and_a_meaning():
    """The reference page and `config explain` have nothing else to show."""
    assert find_faults(FIXED) == []


@pytest.mark.parametrize(
    "incomplete",
    [
        (None, "seconds", "Time until it stops."),
        (3, "", "Time until it stops."),
        (3, "moments", "Time until it stops."),
        (3, "seconds", ""),
        (3, "seconds", "Time"),
    ],
)
def test_an_incomplete_threshold_is_found(incomplete):
    """Without one of the three it fails the check above."""
    assert find_faults({"run.new": incomplete}) == ["run.new"]


def test_a_threshold_cannot_be_declared_without_unit_and_meaning():
    """Python refuses it at import, mypy before."""
    with pytest.raises(TypeError, match="meaning"):
        declare_threshold(3, "run.new", "seconds")  # type: ignore[call-arg]
    assert "run.new" not in FIXED


def test_every_subject_is_listed_and_no_key_or_name_is_used_twice():
    """`config explain` lists each constant of `policy.settings.runtime_settings` exactly once."""
    names, keys = [], []
    for module in pkgutil.iter_modules(thresholds.__path__):
        whole = importlib.import_module(f"{thresholds.__name__}.{module.name}")
        for node in ast.parse((SOURCE / f"thresholds/{module.name}.py").read_text("utf-8")).body:
            if isinstance(node, ast.Assign):
                assert isinstance(node.value, ast.Call)
                names.append(ast.unparse(node.targets[0]))
                keys.append(ast.literal_eval(node.value.args[1]))
                assert getattr(runtime_settings, names[-1]) is getattr(whole, names[-1])
                assert FIXED[keys[-1]][0] is getattr(whole, names[-1])
    assert len(names) == len(set(names))
    assert sorted(keys) == sorted(FIXED)
