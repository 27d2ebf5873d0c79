"""The docs are true: blocks are run, named tests exist, generated pages are current."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from documented import blocks, difference, steps
from rekindle import ports
from throwaway import Repository, isolate

ROOT = Path(__file__).parents[2]


def run(arguments, folder):
    """Run one line of a console block, without a shell and in its own environment."""
    assert arguments[0] == "rekindle"
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_page_on_stalls_shows_what_is_printed(tmp_path):
    """The history of the page is replayed."""
    page = {
        kind: (words, body)
        for kind, words, body in blocks((ROOT / "docs/explanation/stalls.md").read_text())
    }
    (name,), history = page["jsonl"]
    (tmp_path / name).write_text(history)
    ((line, shown),) = steps(page["console"][1])
    ended = run(shlex.split(line), tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert not (told := difference(shown, ended.stdout.splitlines())), told


def test_the_page_on_transcripts_shows_what_is_printed(tmp_path):
    """Its session is summarized; the page shows the beginning of the output."""
    page = list(blocks((ROOT / "docs/explanation/transcripts.md").read_text()))
    ((_, (name,), session),) = [block for block in page if block[0] == "jsonl"]
    (tmp_path / name).write_text(session)
    assert run(["rekindle", "init", "--yes", "--agent", "trades"], tmp_path).returncode == 0
    (shows, _), (finds, _), (line, shown) = [
        step for block in page if block[0] == "console" for step in steps(block[2])
    ]
    for command in (shows, finds):
        assert run(shlex.split(command), tmp_path).returncode == 7, "nothing was said yet"
    ended = run(shlex.split(line), tmp_path)
    assert ended.returncode == 0, ended.stderr
    printed = ended.stdout.splitlines()[: len(shown)]
    assert not (told := difference(shown, printed)), told


def test_the_commands_of_the_audit_trail_s_page_work(tmp_path, monkeypatch):
    """Each line of its first block works in a repository with three relays."""
    isolate(monkeypatch, tmp_path / "home")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    repository = Repository(tmp_path / "project").init()
    assert run(["rekindle", "init", "--yes", "--agent", "trades"], repository.path).returncode == 0
    for number in range(3):
        (repository.path / "relay.md").write_text(f"## Next Action\nDo thing {number}\n")
        assert run(["rekindle", "relay", "set", "relay.md"], repository.path).returncode == 0
    block = re.search(
        r"^```\n(.*?)^```$",
        (ROOT / "docs/explanation/audit-trail.md").read_text(),
        re.DOTALL | re.MULTILINE,
    )
    assert block is not None
    some = repository.git("rev-parse", "--short=10", "rekindle/trades/relay~")
    for line in block[1].splitlines():
        words = shlex.split(line.replace("5c83fc622e", some))
        ended = subprocess.run(words, cwd=repository.path, capture_output=True, check=False)
        assert ended.returncode == 0, ended.stderr
        assert ended.stdout


def test_every_test_that_a_page_names_exists():
    """Each command of a page of promises selects at least one test."""
    commands = []
    for page in (
        "docs/explanation/crash-safety.md",
        "docs/explanation/phone-security.md",
        "docs/explanation/revival.md",
        "SECURITY.md",
    ):
        text = (ROOT / page).read_text()
        found = re.findall(r"`((?:pytest|just torture)\s[^`]*tests/[^`]+)`", text)
        assert len(found) > 10, page
        commands += found
    files = sorted(set(re.findall(r"tests/[\w/]+(?:\.py)?", " ".join(commands))))
    listed = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "", *files],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"},
        capture_output=True,
        text=True,
        check=True,
    )
    tests = [line for line in listed.stdout.splitlines() if "::" in line]
    for command in commands:
        words = shlex.split(command.replace("just torture", "pytest"))[1:]
        wanted = words[words.index("-k") + 1].split(" or ") if "-k" in words else [""]
        places = [word for word in words if word.startswith("tests/")]
        assert places, command
        for place in places:
            found = [
                test
                for test in tests
                if test.startswith(place) and any(word in test for word in wanted)
            ]
            assert found, f"{command} selects nothing of {place}"


@pytest.mark.parametrize(
    "name",
    [
        "cli.md",
        "exit-codes.md",
        "settings.md",
        "constants.md",
        "manifest.md",
        "events.md",
        "harnesses.md",
        "keeping-alive.md",
    ],
)
def test_a_generated_page_says_that_it_is_generated(name):
    """The notice keeps people from editing by hand a page that `just docs` overwrites."""
    assert "Generated by tools/generate.py" in (ROOT / "docs/reference" / name).read_text()


def test_links_between_documents_lead_somewhere():
    """Every relative link of the documents names an existing file."""
    checked = 0
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text()):
            if "://" not in target:
                assert (document.parent / target).exists(), f"{document.name} links to {target}"
                checked += 1
    assert checked > 5


def test_the_index_links_to_every_page():
    """A reader who starts at docs/index.md can reach each page."""
    docs = ROOT / "docs"
    linked = set(re.findall(r"\]\(([^)#\s]+)", (docs / "index.md").read_text()))
    pages = {str(path.relative_to(docs)) for path in docs.rglob("*.md")} - {"index.md"}
    assert linked == pages


def test_the_page_on_platforms_has_the_pinned_versions():
    """Each agent CLI of the tests is named there, in the version that they run."""
    text = " ".join((ROOT / "docs/explanation/platforms.md").read_text().split())
    names = {"claude": "Claude Code", "codex": "Codex", "gemini": "Gemini CLI"}
    for folder, name in names.items():
        package = json.loads((ROOT / f"tests/loopback/{folder}/package.json").read_text())
        [version] = package["dependencies"].values()
        assert f"{name} {version}" in text


def test_every_page_is_in_the_index():
    """The navigation of the site is taken from docs/index.md."""
    docs = ROOT / "docs"
    listed = re.findall(r"\]\(([^)#\s]+\.md)\)", (docs / "index.md").read_text())
    pages = {path.relative_to(docs).as_posix() for path in docs.glob("**/*.md")}
    assert len(pages) > 20
    assert pages - {"index.md"} <= set(listed)


def test_the_project_speaks_of_itself_alone():
    """No tracked file names a path of a developer's machine or the host of a package index."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    names = [name for name in listed.stdout.split("\0") if name]
    assert names
    forbidden = re.compile(
        r"/root/|/home/(?!user\b)\w|/Users/\w|(?:pypi|npmjs|pythonhosted)\.(?:org|com)"
    )
    for name in names:
        path = ROOT / name
        if path.is_file() and path != Path(__file__):
            found = forbidden.search(path.read_text(encoding="utf-8", errors="replace"))
            assert found is None, f"{name}: {found[0] if found else ''}"


def test_no_line_of_a_page_breaks_a_name_at_its_hyphen():
    """Markdown would show `rekindle-agents` with a space after the hyphen."""
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        assert not re.search(r"[a-z]-$", path.read_text(), re.MULTILINE), path


def test_the_guide_for_harnesses_names_the_members_of_each_part():
    """Its table has the parts of `ports` and all of their members."""
    text = (ROOT / "docs/guides/write-a-harness.md").read_text()
    rows = re.findall(r"^\| `(Harness\w+)` \| (`[^|]+`) \|", text, re.MULTILINE)
    shown = {part: set(re.findall(r"`(\w+)`", members)) for part, members in rows}
    protocols = [one for one in vars(ports).values() if getattr(one, "_is_protocol", False)]
    parts = [one for one in protocols if one.__name__ in shown]
    assert {part.__name__: get_protocol_members(part) for part in parts} == shown
    assert {part.__name__ for part in parts} | {"HarnessEssentials"} == {
        one.__name__
        for one in protocols
        if one.__name__.startswith("Harness") and one is not ports.Harness
    }


def get_protocol_members(part):
    return {name for name in vars(part) if not name.startswith("_")}


def test_the_guide_for_harnesses_shows_the_plugin_that_is_tested():
    """Its example is exactly the text of tests/plugin, which has its own tests."""
    text = (ROOT / "docs/guides/write-a-harness.md").read_text()
    shown = {words[0]: body for _, words, body in blocks(text) if words}
    own = {"test_echo.py", "PROMPT.md"}  # tests/plugin/test_guide.py uses them as they are
    assert len(shown.keys() - own) == 8
    for name in shown.keys() - own:
        assert shown[name] == (ROOT / "tests/plugin" / name).read_text(), name


def test_the_changelog_has_sections():
    """Each version has Added, Changed, Fixed or Removed; no change is outside of them."""
    text = (ROOT / "CHANGELOG.md").read_text()
    _, *versions = re.split(r"^## ", text, flags=re.MULTILINE)
    assert versions
    for version in versions:
        head, *sections = re.split(r"^### ", version, flags=re.MULTILINE)
        assert not re.search(r"^- ", head, re.MULTILINE), "move these lines into a section"
        names = [section.split()[0] for section in sections]
        assert names
        assert names == [name for name in ("Added", "Changed", "Fixed", "Removed") if name in names]
