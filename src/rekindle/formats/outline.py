"""Split markdown into sections that can be joined again to form exactly the original text.

The parser recognizes only ATX headings and `===` underlines at the top level, and the constructs
that can hide them: front matter, fences, comments, list items and quotes. Nothing is rendered
again, so unchanged sections keep their bytes. A general parser finds the same headings ten times
more slowly (the tests compare the two), and a relay history can be many megabytes long.

There is one deliberate difference from CommonMark: a line of dashes is a rule, never the underline
of a heading. People put `---` right below a paragraph to separate sections; read as an underline,
it would turn the last line of a directive into a title.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

import msgspec

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?$")
_LINE_ENDS = ("\n", "\r")
_UNDERLINE = re.compile(r" {0,3}=+[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_ITEM = re.compile(r"( {0,3})([-+*]|\d{1,9}[.)])(?:([ \t]+)(?=\S)|[ \t]*$)")
_RULE = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")
_RAW_HTML = re.compile(r" {0,3}<(script|pre|style|textarea)(?:[\s>]|$)", re.IGNORECASE)
_HTML_BLOCK = re.compile(
    r" {0,3}</?(?:address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup"
    r"|dd|details|dialog|dir|div|dl|dt|fieldset|figcaption|figure|footer|form|frame|frameset"
    r"|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu|menuitem|nav|noframes|ol"
    r"|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr"
    r"|track|ul)(?:[\s>]|/>|$)",
    re.IGNORECASE,
)
_ENDINGS = (
    (re.compile(r" {0,3}<!--"), re.compile("-->")),
    (re.compile(r" {0,3}<\?"), re.compile(r"\?>")),
    (re.compile(r" {0,3}<!\[CDATA\["), re.compile(r"\]\]>")),
    (re.compile(r" {0,3}<![A-Za-z]"), re.compile(">")),
    (_HTML_BLOCK, re.compile(r"^[ \t]*$")),
)
_DRESS = re.compile(r"^(?:[\W_]|\d+(?:[.):]\s|\ufe0f?\u20e3))+")


class Section(msgspec.Struct, frozen=True):
    heading: str
    """The heading's lines, unchanged, with their line endings."""
    level: int
    title: str
    """The heading's text, without markup."""
    body: str
    """Text up to the next heading of any level, unchanged."""

    @property
    def text(self) -> str:
        return self.heading + self.body


class Outline(msgspec.Struct, frozen=True):
    head: str
    """Text before the first heading, such as front matter, a schema mark or a preface."""
    sections: tuple[Section, ...]

    @property
    def text(self) -> str:
        return self.head + "".join(section.text for section in self.sections)

    def extent(self, index: int) -> range:
        """Return the range of indexes that a section and its subsections cover."""
        level = self.sections[index].level
        end = index + 1
        while end < len(self.sections) and self.sections[end].level > level:
            end += 1
        return range(index, end)

    def content(self, index: int) -> str:
        """Return the text below a heading, including subsections."""
        below = self.extent(index)[1:]
        return self.sections[index].body + "".join(self.sections[i].text for i in below)

    def replace_content(self, index: int, content: str) -> "Outline":
        """Replace the text below a heading. Missing line endings are added."""
        extent = self.extent(index)
        before = self.head + "".join(section.text for section in self.sections[:index])
        below = "".join(section.text for section in self.sections[extent.stop :])
        heading = self.sections[index].heading
        if content and not heading.endswith(_LINE_ENDS):
            heading += "\n"
        if content and below and not content.endswith(_LINE_ENDS):
            content += "\n"
        return parse(before + heading + content + below)


def split_lines(text: str) -> list[str]:
    """Split a text into lines, only at LF, CRLF and CR. Each line keeps its line ending."""
    return _LINE.findall(text)


def parse(text: str) -> Outline:
    all_lines = split_lines(text)
    parts: list[Section] = []
    head = ""
    heading: tuple[str, int, str] | None = None
    body_from = 0
    for first, after, level, title in _find_headings(all_lines):
        body = "".join(all_lines[body_from:first])
        if heading is None:
            head = body
        else:
            parts.append(Section(*heading, body))
        heading = ("".join(all_lines[first:after]), level, title)
        body_from = after
    rest = "".join(all_lines[body_from:])
    if heading is None:
        return Outline(rest, ())
    parts.append(Section(*heading, rest))
    return Outline(head, tuple(parts))


def split_blocks(text: str) -> list[str]:
    """Split a text into paragraphs, list items and fences.

    Blank lines belong to the block before them, so joining the blocks gives the original text.
    """
    blocks: list[list[str]] = []
    fence = ""
    item_indent = -1
    blank_before = True
    for line in split_lines(text):
        bare = line.rstrip("\r\n")
        stripped = bare.strip(" \t")
        if fence:
            blocks[-1].append(line)
            if _ends_fence(line, fence):
                fence = ""
            continue
        indent = len(line) - len(line.lstrip(" \t"))
        fence = _find_fence(line)
        is_rule = bool(_RULE.match(bare))
        if not stripped:
            starts = not blocks
        elif item_indent >= 0 and indent > item_indent:
            starts = False  # the line belongs to the list item above it
        elif not is_rule and _ITEM.match(bare):
            starts = True
            item_indent = indent
        else:
            starts = blank_before or is_rule or bool(fence or _ATX.match(bare)) or not blocks
            if starts:
                item_indent = -1
        if starts:
            blocks.append([])
        blocks[-1].append(line)
        blank_before = not stripped
    return ["".join(block) for block in blocks]


def mark_prose(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each line, and whether it is outside of fences."""
    fence = ""
    for line in split_lines(text):
        if fence:
            if _ends_fence(line, fence):
                fence = ""
            yield line, False
        elif fence := _find_fence(line):
            yield line, False
        else:
            yield line, True


@lru_cache(maxsize=4096)  # cached, because the documents in a history share their titles
def normalize_title(title: str) -> str:
    """Return a title in lower case, without a leading emoji or number and without emphasis."""
    bare = " ".join(title.replace("*", "").replace("`", "").replace("’", "'").split())
    return _DRESS.sub("", bare.strip("_")).casefold()


def _find_headings(  # noqa: C901, PLR0912 - one branch per construct, in order of precedence
    all_lines: list[str],
) -> Iterator[tuple[int, int, int, str]]:
    """Yield each top-level heading: its first line, the line after it, its level and its title."""
    position = _skip_front_matter(all_lines)
    item_indent = 0  # indent of the current list item's content; 0 outside a list item
    paragraph = -1  # first line of the current paragraph; -1 outside a paragraph
    lazy = False  # whether unindented text continues the list item above it
    until: re.Pattern[str] | None = None  # pattern that ends the construct that is hiding headings
    for number in range(position, len(all_lines)):
        line = all_lines[number].rstrip("\r\n")
        if number == 0:
            line = line.removeprefix("\ufeff")
        if until is not None:
            if until.search(line):
                until = None
            continue
        stripped = line.lstrip(" \t")
        if not stripped:
            paragraph, lazy = -1, False
            continue
        indent = len(line) - len(stripped)
        if item_indent and (indent >= item_indent or line[0] == "\t"):
            paragraph, lazy = number, _is_plain_text(stripped)
            continue
        mark = stripped[0]
        if mark == "#" and (heading := _ATX.match(line)):
            item_indent, paragraph = 0, -1
            yield number, number + 1, len(heading[1]), _read_title(heading[2] or "")
        elif mark in "`~" and (fence := _FENCE.match(line)):
            item_indent, paragraph = 0, -1
            until = _make_fence_end(fence[1])
        elif mark == "=" and paragraph == number - 1 >= 0 and _UNDERLINE.match(line):
            if not item_indent:
                yield paragraph, number + 1, 1, all_lines[paragraph].strip()
            paragraph = -1
        elif mark == "<" and (ending := _find_html_end(line)):
            item_indent, paragraph = 0, -1
            if not ending.search(line, line.index("<") + 1):
                until = ending
        elif mark == ">" or _RULE.match(line):
            item_indent = 0
            paragraph = -1
        elif item := _ITEM.match(line):
            gap = len((item[3] or " ").expandtabs(4))
            item_indent = len(item[1]) + len(item[2]) + (gap if gap <= 4 else 1)  # noqa: PLR2004 - five spaces begin indented code inside the item
            paragraph = -1
            lazy = gap <= 4 and _is_plain_text(line[item.end() :])  # noqa: PLR2004 - as above
        elif item_indent and not lazy:
            item_indent = 0  # unindented text after a blank line or a heading ends the list
            paragraph = number
        else:
            # Unlike in CommonMark, an underlined heading can only have one line.
            paragraph = number if paragraph < 0 else len(all_lines)


def _is_plain_text(stripped: str) -> bool:
    return bool(stripped) and not _ATX.match(stripped) and not _FENCE.match(stripped)


def _skip_front_matter(all_lines: list[str]) -> int:
    if not all_lines or all_lines[0].lstrip("\ufeff").rstrip() != "---":
        return 0
    for number, line in enumerate(all_lines[1:], 1):
        if line.rstrip() in {"---", "..."}:
            return number + 1
    return 0


def _read_title(text: str) -> str:
    """Return a heading's text without the closing `##`, if any."""
    text = text.rstrip(" \t")
    open_ended = text.rstrip("#")
    closed = open_ended != text and open_ended[-1:] in {"", " ", "\t"}
    return (open_ended if closed else text).strip()


def _find_html_end(line: str) -> re.Pattern[str] | None:
    if raw := _RAW_HTML.match(line):
        return re.compile(f"</{raw[1].lower()}>", re.IGNORECASE)
    return next((ending for opening, ending in _ENDINGS if opening.match(line)), None)


def _make_fence_end(fence: str) -> re.Pattern[str]:
    return re.compile(rf"^ {{0,3}}{re.escape(fence[0])}{{{len(fence)},}}[ \t]*$")


def _find_fence(line: str) -> str:
    """Return the fence that starts on this line, even in a list item, or "" if there is none."""
    if "```" not in line and "~~~" not in line:
        return ""
    bare = line.strip()
    if item := _ITEM.match(bare):
        bare = bare[item.end() :]
    fence = _FENCE.match(bare)
    return fence[1] if fence else ""


def _ends_fence(line: str, fence: str) -> bool:
    bare = line.strip()
    return len(bare) >= len(fence) and not bare.strip(fence[0])
