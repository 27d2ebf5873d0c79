"""Change the pure modules in one place at a time, and see whether their tests notice.

`just mutate [COUNT]` draws a seeded sample. A mutation is caught if a unit test file that imports
the changed module fails. Maintained tools do not fit: mutmut leaves code outside of functions
alone, which is where this project keeps its decision tables, and cosmic-ray starts a new process
and edits files. Here one process imports everything once and forks for every mutation; the
changed module exists in memory only.
"""

import argparse
import ast
import importlib
import json
import os
import resource
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final, NamedTuple

import grimp
import hypothesis
import pytest

from mutation.mutations import Mutation, list_mutations

ROOT: Final = Path(__file__).resolve().parents[2]
UNIT: Final = ROOT / "tests" / "unit"
SLOW: Final = 0.5
"""Processor seconds after which a test (a sweep, a corpus) is stopped and decides nothing."""
LONGEST: Final = 20
"""Processor seconds for all tests of one mutation; one that needs more is caught."""
PYTEST: Final = (
    *("-q", "-x", "-c", os.devnull, f"--rootdir={ROOT}", "--import-mode=importlib"),
    *("--noconftest", "--assert=plain", "-m", "not torture and not bench"),
    *("-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:faulthandler", "-p", "no:warnings"),
)
KNOWN: Final = Path(__file__).with_name("survivors.toml")


def list_pure_modules() -> dict[str, Path]:
    """Return the modules that the import contract keeps free of the world, with their files."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = project["tool"]["importlinter"]["contracts"]
    packages = next(each for each in contracts if "os" in each.get("forbidden_modules", ()))
    files = {}
    for package in packages["source_modules"]:
        folder = ROOT / "src" / package.replace(".", "/")
        for path in sorted(folder.rglob("*.py")):
            if path.stem != "__init__":
                files[".".join(path.relative_to(ROOT / "src").with_suffix("").parts)] = path
    return files


def find_tests(modules: Iterable[str]) -> dict[str, list[Path]]:
    """Return the unit test files of the pure layers that import each module, its own first."""
    modules = list(modules)
    importers = defaultdict(list)
    for layer in sorted({module.split(".")[1] for module in modules}):
        for path in sorted((UNIT / layer).rglob("test_*.py")):
            for imported in _imports(path):
                importers[imported].append(path)
    for module in modules:
        own = "test_" + module.rpartition(".")[2]
        importers[module].sort(key=lambda path, own=own: (path.stem != own, path.stat().st_size))
    return {module: importers[module] for module in modules}


def _imports(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def run_forked(tasks: Sequence[Callable[[], int]], jobs: int) -> list[int]:
    """Run every task in a fork of this process; return what each exited with."""
    running: dict[int, int] = {}
    exits = [0] * len(tasks)
    waiting = list(enumerate(tasks))[::-1]
    while waiting or running:
        while waiting and len(running) < jobs:
            number, task = waiting.pop()
            if pid := os.fork():
                running[pid] = number
                continue
            try:
                quiet = os.open(os.devnull, os.O_RDWR)
                for stream in (0, 1, 2):
                    os.dup2(quiet, stream)
                os._exit(task())
            finally:
                os._exit(70)
        pid, status = os.wait()
        exits[running.pop(pid)] = os.waitstatus_to_exitcode(status)
    return exits


class TooSlowError(BaseException):
    """A test has used its processor seconds; no `except Exception` of a test catches it."""


def _stop_test(*_: Any) -> None:
    raise TooSlowError


class Watch:
    """Keeps the test that failed first, and the tests that it stopped."""

    def __init__(self, limit: float = SLOW) -> None:
        self._limit = limit
        self.failed = ""
        self.slow: list[str] = []
        signal.signal(signal.SIGPROF, _stop_test)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Any:
        signal.setitimer(signal.ITIMER_PROF, self._limit)
        result = yield
        signal.setitimer(signal.ITIMER_PROF, 0)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        report = yield
        if call.excinfo and call.excinfo.errisinstance(TooSlowError):
            self.slow.append(item.nodeid)
            report.outcome, report.longrepr = "skipped", (str(item.path), 0, "slow")
        elif report.failed:
            self.failed = self.failed or item.nodeid
        return report


class Mutated:
    """Imports one module from changed code."""

    def __init__(self, module: str, code: CodeType) -> None:
        self._module, self._code = module, code

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name == self._module else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = self._code.co_filename
        exec(self._code, module.__dict__)  # noqa: S102 - that is the mutation


class Verdict(NamedTuple):
    """The result of the tests of a mutated module."""

    caught: bool
    failed: str
    """The test that noticed; empty if an import failed or time was up."""
    slow: list[str]


class Bench:
    """Runs test files in forks of a process that has imported the project once."""

    def __init__(self, modules: dict[str, Path], jobs: int) -> None:
        self._tests = find_tests(modules)
        self._jobs = jobs
        self._graph = grimp.build_graph("rekindle", cache_dir=None)
        for module in modules:
            importlib.import_module(module)

    def run(self, mutations: Sequence[Mutation]) -> list[bool]:
        """Return for each mutation whether a test noticed it."""
        verdicts = self._run([(each.module, each) for each in mutations])
        self._check_without_mutation({verdict.failed for verdict in verdicts} - {""})
        # A test that only a mutation makes slow has noticed it: an endless loop, mostly.
        doubtful = {
            each.module
            for each, verdict in zip(mutations, verdicts, strict=True)
            if verdict.slow and not verdict.caught
        }
        controls = self._run([(module, None) for module in sorted(doubtful)])
        slow = {test for control in controls for test in control.slow}
        return [verdict.caught or not slow.issuperset(verdict.slow) for verdict in verdicts]

    def _check_without_mutation(self, tests: set[str]) -> None:
        """Refuse tests that fail whether a module is mutated or not."""
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "failed"

            def run_tests() -> int:
                watch = Watch(limit=0)
                # Without the parameters: a mutation may have changed the ids of the cases.
                names = sorted({test.partition("[")[0] for test in tests})
                is_failed = run_pytest([str(ROOT / name) for name in names], watch)
                report.write_text(watch.failed)
                return int(is_failed)

            if tests and any(run_forked([run_tests], 1)):
                failed = report.read_text() if report.exists() else "the run of these tests"
                raise SystemExit(f"{failed} fails without any mutation: run `just test`")

    def _run(self, runs: Sequence[tuple[str, Mutation | None]]) -> list[Verdict]:
        with tempfile.TemporaryDirectory() as folder:
            reports = [Path(folder) / str(number) for number in range(len(runs))]
            tasks = [
                lambda run=run, report=report: self._try(*run, report)
                for run, report in zip(runs, reports, strict=True)
            ]
            exits = run_forked(tasks, self._jobs)
            found = [
                json.loads(each.read_text()) if each.exists() else ("", []) for each in reports
            ]
        return [Verdict(bool(code), *each) for code, each in zip(exits, found, strict=True)]

    def _try(self, module: str, mutation: Mutation | None, report: Path) -> int:
        resource.setrlimit(resource.RLIMIT_CPU, (LONGEST, LONGEST))
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        if mutation:
            self._forget(module)
            sys.meta_path.insert(0, Mutated(module, mutation.compile()))
        watch = Watch()
        tests = [str(path) for path in self._tests[module]]
        # The module's own file notices most: the others are only collected if it does not.
        caught = any(run_pytest(files, watch) for files in (tests[:1], tests[1:]) if files)
        report.write_text(json.dumps((watch.failed, watch.slow)))
        return int(caught)

    def _forget(self, module: str) -> None:
        """Drop a module, and all that import it, so that the tests import them again."""
        dropped = {module, *self._graph.find_downstream_modules(module)}
        for name in dropped & sys.modules.keys():
            del sys.modules[name]
            package, _, last = name.rpartition(".")
            vars(sys.modules[package]).pop(last, None) if package in sys.modules else None


def run_pytest(tests: Sequence[str], watch: Watch) -> bool:
    """Run tests up to the first failure; return whether there is one."""
    done = pytest.main([*PYTEST, *tests], [watch])
    return done not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


def read_known_survivors() -> dict[tuple[str, ...], str]:
    """Return why mutations that no test can or should notice are harmless."""
    rows = tomllib.loads(KNOWN.read_text())["survivor"] if KNOWN.exists() else []
    keys = ("module", "source", "before", "after")
    return {tuple(row[key] for key in keys): row["reason"] for row in rows}


def draw_sample(modules: dict[str, Path], count: int, *, seed: str, only: str) -> list[Mutation]:
    """Return the mutations that rank first; a larger sample contains the smaller one."""
    named = {name: path for name, path in modules.items() if only in name}
    every = [each for name, path in named.items() for each in list_mutations(name, path)]
    sample = sorted(every, key=lambda each: each.rank(seed))[:count]
    return sorted(sample, key=lambda each: (each.module, each.line))


def prepare_tests() -> None:
    """Set up what `tests/conftest.py` and pyproject.toml set up for a run of all tests."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    paths = project["tool"]["pytest"]["ini_options"]["pythonpath"]
    sys.path[:0] = [str(ROOT / path) for path in paths]
    hypothesis.settings.register_profile(
        "mutate",
        derandomize=True,
        deadline=None,
        database=None,
        max_examples=15,
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    hypothesis.settings.load_profile("mutate")


def report(sample: Sequence[Mutation], results: Sequence[bool]) -> int:
    """Print every survivor and the count of each module; return how many are known as harmless."""
    known = read_known_survivors()
    total: Counter[str] = Counter()
    caught: Counter[str] = Counter()
    harmless = 0
    for mutation, is_caught in zip(sample, results, strict=True):
        total[mutation.module] += 1
        caught[mutation.module] += is_caught
        if not is_caught:
            reason = known.get((mutation.module, mutation.source, mutation.before, mutation.after))
            print(f"{mutation.path.relative_to(ROOT)}:{mutation.line}: {mutation.source}")
            print(f"    {mutation.before}  →  {mutation.after}")
            print(f"    harmless: {reason}" if reason else "    survived")
            harmless += bool(reason)
    print()
    for module in sorted(total, key=lambda name: (caught[name] / total[name], name)):
        print(f"{caught[module]:4} of {total[module]:4}  {module}")
    return harmless


def main() -> int:
    """Print what a sample of mutations came to; exit 1 below the bar."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int, nargs="?", default=200, help="size of the sample")
    parser.add_argument("--seed", default="rekindle", help="another seed draws another sample")
    parser.add_argument("--only", default="", help="modules whose name contains this text")
    parser.add_argument("--bar", type=float, default=90, help="percent that must be caught")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    started = time.monotonic()
    modules = list_pure_modules()
    sample = draw_sample(modules, options.count, seed=options.seed, only=options.only)
    prepare_tests()
    results = Bench(modules, options.jobs).run(sample)
    harmless = report(sample, results)
    seconds = time.monotonic() - started
    caught, count = sum(results), len(results)
    percent = 100 * caught / max(1, count)
    print(
        f"{caught} of {count} caught: {percent:.1f} %, {harmless} harmless,"
        f" {count - caught - harmless} survived, in {seconds:.0f} s"
    )
    return 0 if percent >= options.bar else 1


if __name__ == "__main__":
    sys.exit(main())
