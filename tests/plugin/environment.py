"""An environment of its own to install a plugin in, beside the one that the tests run in."""

import importlib.util
import subprocess
import sys
from pathlib import Path


def made(place: Path) -> Path:
    """The Python of a new environment that has all that the tests have."""
    subprocess.run(
        [sys.executable, "-m", "venv", "--system-site-packages", "--without-pip", str(place)],
        check=True,
    )
    # The environment that the tests run in is one itself: what it has is not in the base.
    ours = [path for path in sys.path if path.endswith("site-packages")]
    source = [str(Path(importlib.util.find_spec("rekindle").origin).parents[1])]
    packages(place).joinpath("beside.pth").write_text("\n".join([*ours, *source]) + "\n")
    return place / "bin/python"


def packages(place: Path) -> Path:
    """Return the folder of that environment's packages."""
    (found,) = place.glob("lib/python*/site-packages")
    return found
