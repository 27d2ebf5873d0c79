"""Make the recordings anew: `just record [CASE...]`; without a name, all of them."""

import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from loopback import install  # noqa: E402 - found by the line above
from loopback.anthropic import Anthropic  # noqa: E402
from loopback.cli import ClaudeSandbox  # noqa: E402
from loopback.model import Model  # noqa: E402
from loopback.namespace import Namespace  # noqa: E402
from recordings.cases import CASES  # noqa: E402
from recordings.recording import KEPT, Recording, traces  # noqa: E402


def played(name: str) -> Recording:
    """The case as it goes now, in a sandbox of its own."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        Namespace() as network,
        Model(Anthropic(), network.listener) as model,
    ):
        root = Path(folder)
        sandbox = ClaudeSandbox(install.claude(), model=model, network=network, root=root)
        try:
            return CASES[name](sandbox, model).without_traces(root)
        finally:
            sandbox.close()


def main(names: list[str]) -> None:
    for name in names or CASES:
        path = KEPT / f"{name}.jsonl"
        recording = played(name)
        recording.save(path)
        if left := traces(path.read_text()):
            path.unlink()
            raise SystemExit(f"{name}: names places of this machine: {left[:5]}")
        print(f"{name}: {recording.exit.kind}, {recording.exit.words}", recording.kinds)


if __name__ == "__main__":
    main(sys.argv[1:])
