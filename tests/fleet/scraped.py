"""Read a page of Prometheus's text format."""

import re
import urllib.request

_LINE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
Series = tuple[str, frozenset[tuple[str, str]]]


def read_page(address: str, seconds: float = 10) -> str:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=seconds) as page:
        return page.read().decode()


def parse_page(text: str) -> dict[Series, float]:
    """Return the values on a page by name and labels."""
    return {
        (name, frozenset(_LABEL.findall(labels))): float(value)
        for name, labels, value in _LINE.findall(text)
    }
