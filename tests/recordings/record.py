"""Make the recordings again: `just record [CLI] [CASE...]`; without a name, all of them."""

import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from loopback import install  # noqa: E402 - found by the line above
from loopback.acp_agents import AGENTS  # noqa: E402
from loopback.anthropic import Anthropic  # noqa: E402
from loopback.cli import ClaudeSandbox  # noqa: E402
from loopback.model import Model  # noqa: E402
from loopback.namespace import Namespace  # noqa: E402
from loopback.place import Place  # noqa: E402
from recordings import acp_cases, cases, codex_cases, gemini_cases  # noqa: E402
from recordings.clis import Case, Cli  # noqa: E402
from recordings.recording import KEPT  # noqa: E402
from recordings.tape import Tape, traces  # noqa: E402


def claude(name: str) -> Tape:
    """Play a case now, in its own sandbox."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        Namespace() as network,
        Model(Anthropic(), network.listener) as model,
    ):
        root = Path(folder)
        sandbox = ClaudeSandbox(install.claude(), model=model, network=network, root=root)
        with closing(sandbox):
            return cases.CASES[name](sandbox, model).without_traces(root)


def other(cli: Cli, played: Mapping[str, Case]) -> Callable[[str], Tape]:
    """The same for the CLIs that live in a place of their own."""

    def play(name: str) -> Tape:
        program = install.program(cli.package)
        with (
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
            Namespace() as network,
            Model(cli.dialect(), network.listener) as model,
            Place(network, Path(folder) / "place") as place,
        ):
            root = Path(folder) / "root"
            sandbox = cli.sandbox(program, model=model, place=place, root=root)
            return played[name](sandbox, model).without_traces(root, install.home(cli.package))

    return play


def acp(agent: str) -> Callable[[str], Tape]:
    """The same for the agents behind the bridge."""

    def play(name: str) -> Tape:
        package, api = AGENTS[agent].package, AGENTS[agent].api
        program = install.program(package)
        with (
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
            Namespace() as network,
            Model(api.dialect(), network.listener) as model,
            Place(network, Path(folder) / "place") as place,
        ):
            root = Path(folder) / "root"
            sandbox = acp_cases.SANDBOXES[agent](program, model=model, place=place, root=root)
            tape = acp_cases.CASES[agent][name](sandbox, model)
            return tape.without_traces(root, install.home(package))

    return play


CLIS: Final = {
    "claude-code": (KEPT, tuple(cases.CASES), claude),
    **{
        cli.name: (cli.kept, tuple(played), other(cli, played))
        for cli, played in (
            (codex_cases.CODEX, codex_cases.CASES),
            (gemini_cases.GEMINI, gemini_cases.CASES),
        )
    },
    **{
        f"acp:{agent}": (acp_cases.KEPT[agent], tuple(played), acp(agent))
        for agent, played in acp_cases.CASES.items()
    },
}


def main(names: list[str]) -> None:
    clis = [names.pop(0)] if names and names[0] in CLIS else list(CLIS)
    for cli in clis:
        kept, known, play = CLIS[cli]
        for name in [name for name in known if not names or name in names]:
            path = kept / f"{name}.jsonl"
            tape = play(name)
            tape.save(path)
            if left := traces(path.read_text()):
                path.unlink()
                raise SystemExit(f"{cli} {name}: names places of this machine: {left[:5]}")
            shown = [line["type"] for line in tape.stream if isinstance(line, dict)]
            print(f"{cli} {name}: {tape.code}", shown, [event for event, _ in tape.hooks])


if __name__ == "__main__":
    main(sys.argv[1:])
