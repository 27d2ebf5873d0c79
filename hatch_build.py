"""Let the links of the README work on the package index, which shows it without the repository."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

REPOSITORY = "https://github.com/rekindle-agents/rekindle"
_TARGET = re.compile(r"(!?)(\[[^]]*\]\()(?!\w+:|#)([^)]+)\)")


def make_links_absolute(text: str) -> str:
    """Return Markdown whose relative links and pictures lead to the repository."""

    def change(link: re.Match[str]) -> str:
        kind = "raw" if link[1] else "blob"
        return f"{link[1]}{link[2]}{REPOSITORY}/{kind}/main/{link[3]})"

    return _TARGET.sub(change, text)


class ReadmeHook(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        """Set the readme of the package."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": make_links_absolute(text),
        }
