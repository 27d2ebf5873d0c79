"""Build the site from docs/ into site/, and check its links and its structure."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build/site"
SITE = BUILD / "site"
REPOSITORY = "https://github.com/rekindle-agents/rekindle/blob/main"
PROJECT_PAGES = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
}
"""Pages outside of docs/, and their paths on the site."""

_FENCE = re.compile(r"^( *```)(\w+) (.+)$", re.MULTILINE)
_DIAGRAM = re.compile(r"^```mermaid\nstateDiagram-v2\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")
_CELL = re.compile(r"<td\b.*?</td>", re.DOTALL)
_CODE = re.compile(r"(?<=<code>)[^<]*")
_JOINT = re.compile(r"(?<=[._/])(?=\w)")
_COMPARED = frozenset({"li", "pre", "table", "h2", "h3"})
"""Elements that must be equally frequent on the site and on GitHub."""
_LOADING = {"script": "src", "img": "src", "iframe": "src"}


def list_pages() -> dict[str, str]:
    """Return the path of each page on the site, by its path in the repository."""
    docs = ROOT / "docs"
    pages = {
        f"docs/{path.relative_to(docs).as_posix()}": path.relative_to(docs).as_posix()
        for path in sorted(docs.glob("**/*.md"))
    }
    return pages | PROJECT_PAGES


def convert_page(text: str, source: str, pages: dict[str, str]) -> str:
    """Return the text of a page for the generator, with fences and links that it understands."""
    text = _FENCE.sub(_title, replace_diagrams(text))
    return _LINK.sub(lambda link: _convert_link(link, source, pages), text)


def replace_diagrams(text: str) -> str:
    """Return the text with a table instead of each state diagram.

    The site would load a program from another host to draw one, and scale it down to its column,
    too small to read.
    """
    return _DIAGRAM.sub(lambda diagram: _list_transitions(diagram[1]), text)


def _list_transitions(diagram: str) -> str:
    titles = {name: title for title, name in re.findall(r'state "(.+)" as (\w+)', diagram)}
    moves = re.findall(r"^ *(\S+) --> (\S+)(?: : (.+))?$", diagram, re.MULTILINE)
    rows = [
        f"| {titles.get(start, '')} | {event} | {titles.get(end, '')} |"
        for start, end, event in moves
    ]
    return "\n".join(["| from | when | to |", "|---|---|---|", *rows, ""])


def _title(fence: re.Match[str]) -> str:
    """Use the file name after the language as the title, and drop words for the tests."""
    name = fence[3].split()[0]
    return f'{fence[1]}{fence[2]} title="{name}"' if "." in name else f"{fence[1]}{fence[2]}"


def _convert_link(link: re.Match[str], source: str, pages: dict[str, str]) -> str:
    target = os.path.normpath(PurePosixPath(source).parent / link[2])
    if target in pages:
        start = PurePosixPath(pages[source]).parent
        place = os.path.relpath(pages[target], start)
    elif target.startswith("docs/"):
        return link[0]
    else:
        place = f"{REPOSITORY}/{target}"
    return f"{link[1]}{place}{link[3]}"


def read_navigation(index: str, pages: dict[str, str]) -> list[dict[str, object]]:
    """Return the navigation: the sections of docs/index.md, each with its links in their order."""
    navigation: list[dict[str, object]] = [{"Home": "index.md"}]
    section = navigation
    for line in index.splitlines():
        if line.startswith("## "):
            section = []
            navigation.append({line[3:]: section})
        for title, target in re.findall(r"\[([^]]+)\]\(([^)#\s]+\.md)\)", line):
            if f"docs/{target}" in pages:
                section.append({title[0].upper() + title[1:]: target})
    project = [{Path(page).stem.capitalize(): page} for page in PROJECT_PAGES.values()]
    return [*navigation, {"Project": project}]


def find_unlisted(index: str, pages: dict[str, str]) -> set[str]:
    """Return the pages in docs/ that docs/index.md does not link to."""
    listed = {f"docs/{target}" for target in re.findall(r"\]\(([^)#\s]+\.md)\)", index)}
    return pages.keys() - listed - PROJECT_PAGES.keys() - {"docs/index.md"}


def build() -> None:
    """Build the site, and treat warnings of the generator as errors."""
    pages = list_pages()
    index = (ROOT / "docs/index.md").read_text()
    if unlisted := find_unlisted(index, pages):
        raise SystemExit(f"docs/index.md does not link to {', '.join(sorted(unlisted))}")
    shutil.rmtree(BUILD, ignore_errors=True)
    shutil.copytree(ROOT / "docs", BUILD / "docs")
    for source, place in pages.items():
        page = BUILD / "docs" / place
        page.parent.mkdir(exist_ok=True)
        page.write_text(convert_page((ROOT / source).read_text(), source, pages))
    settings = (ROOT / "zensical.toml").read_text()
    navigation = _render_toml(read_navigation(index, pages))
    settings = settings.replace("[project]\n", f"[project]\nnav = {navigation}\n", 1)
    (BUILD / "zensical.toml").write_text(settings)
    zensical = Path(sys.executable).with_name("zensical")
    command = [zensical, "build", "--strict", "-f", BUILD / "zensical.toml"]
    subprocess.run(command, check=True, env={**os.environ, "NO_COLOR": "1"})
    for path in SITE.glob("**/*.html"):
        path.write_text(add_breaks(path.read_text()))


def add_breaks(html: str) -> str:
    """Let a key, path or command in a table break after its dots, underscores and slashes.

    Otherwise a long key takes the width of the other columns, or breaks within a word.
    """

    def change(cell: re.Match[str]) -> str:
        return _CODE.sub(lambda code: _JOINT.sub("<wbr>", code[0]), cell[0])

    return _CELL.sub(change, html)


def _render_toml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_render_toml, value))}]"
    if isinstance(value, dict):
        items = (f"{json.dumps(key)} = {_render_toml(item)}" for key, item in value.items())
        return f"{{{', '.join(items)}}}"
    return json.dumps(value)


class Page(HTMLParser):
    """Links, anchors, loaded files and elements of one built page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.elements: Counter[str] = Counter()
        self.has_diagram = False
        self._is_article = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "article":
            self._is_article = True
        if self._is_article and tag in _COMPARED:
            self.elements[tag] += 1
        self.has_diagram |= "mermaid" in (values.get("class") or "").split()
        self.anchors |= {name for key in ("id", "name") if (name := values.get(key))}
        if tag == "a" and (target := values.get("href")):
            self.links.append(target)
        if tag in _LOADING and (target := values.get(_LOADING[tag])):
            self.loaded.append(target)
        if tag == "link" and values.get("rel") in {"stylesheet", "icon", "preload"}:
            self.loaded.append(values.get("href") or "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "article":
            self._is_article = False


def check() -> list[str]:
    """Return the problems of the built site: broken links and lost structure."""
    built = {path: Page(path.read_text()) for path in sorted(SITE.glob("**/*.html"))}
    problems = []
    for path, page in built.items():
        name = path.relative_to(SITE)
        for target in page.links + page.loaded:
            if _is_external(target):
                continue
            if (reason := _find_fault(path, target, built)) is not None:
                problems.append(f"{name}: {target}: {reason}")
        problems += [f"{name}: loads {one}" for one in page.loaded if _is_external(one)]
        if page.has_diagram:
            problems.append(f"{name}: a diagram, for which the site loads a program")
    return problems + _compare_structure(built)


def _is_external(target: str) -> bool:
    return bool(urlsplit(target).scheme or urlsplit(target).netloc)


def _find_fault(path: Path, target: str, built: dict[Path, Page]) -> str | None:
    address = urlsplit(target)
    # The page for unknown addresses is shown below any path, and has absolute links.
    place = address.path.removeprefix("/rekindle/") if path.name == "404.html" else address.path
    file = (path.parent / unquote(place)).resolve() if place else path
    file = file / "index.html" if file.is_dir() else file
    if not file.is_file():
        return "there is no such file"
    if address.fragment and file in built and unquote(address.fragment) not in built[file].anchors:
        return "there is no such heading"
    return None


def _compare_structure(built: dict[Path, Page]) -> list[str]:
    """Compare each page with the same page as GitHub shows it."""
    problems = []
    for source, place in list_pages().items():
        html = SITE / place.removesuffix(".md") / "index.html"
        if place == "index.md":
            html = SITE / "index.html"
        markdown = replace_diagrams((ROOT / source).read_text())
        text = MarkdownIt("gfm-like", {"linkify": False}).render(markdown)
        github = Page(f"<article>{text}</article>").elements
        if html not in built:
            problems.append(f"{source} is not on the site")
        elif github != built[html].elements:
            shown = dict(built[html].elements)
            problems.append(f"{source}: GitHub shows {dict(github)}, the site {shown}")
    return problems


def main() -> int:
    build()
    problems = check()
    print("\n".join(problems) or f"{len(list(SITE.glob('**/*.html')))} pages in {SITE}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
