"""The site: pages are converted for its generator, and faults of the built pages are found."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = {
    "docs/index.md": "index.md",
    "docs/guides/a.md": "guides/a.md",
    "docs/reference/b.md": "reference/b.md",
    "SECURITY.md": "project/security.md",
}


@pytest.fixture(scope="module")
def site():
    spec = importlib.util.spec_from_file_location("rekindle_site", ROOT / "tools/site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("source", "written", "converted"),
    [
        ("docs/guides/a.md", "[b](../reference/b.md#c)", "[b](../reference/b.md#c)"),
        ("docs/guides/a.md", "[s](../../SECURITY.md)", "[s](../project/security.md)"),
        ("SECURITY.md", "[a](docs/guides/a.md)", "[a](../guides/a.md)"),
        ("docs/index.md", "[x](https://example.com/x)", "[x](https://example.com/x)"),
        ("docs/index.md", "![p](images/p.svg)", "![p](images/p.svg)"),
        ("docs/guides/a.md", "[below](#there)", "[below](#there)"),
    ],
)
def test_links_lead_to_the_page_on_the_site(site, source, written, converted):
    assert site.convert_page(written, source, PAGES) == converted


def test_a_link_to_code_leads_to_the_repository(site):
    converted = site.convert_page("[p](../../src/rekindle/ports.py)", "docs/guides/a.md", PAGES)
    assert converted == f"[p]({site.REPOSITORY}/src/rekindle/ports.py)"


def test_a_file_name_after_the_language_is_a_title(site):
    """Words for the tests are left out: with them the generator shows no block at all."""
    text = "```yaml rekindle.yaml\na: 1\n```\n\n```console night tmux\n$ x\n```\n"
    converted = '```yaml title="rekindle.yaml"\na: 1\n```\n\n```console\n$ x\n```\n'
    assert site.convert_page(text, "docs/index.md", PAGES) == converted


def test_a_diagram_of_states_is_a_table(site):
    text = (
        '```mermaid\nstateDiagram-v2\n    state "safe mode" as safe\n    state "over" as over\n'
        "    [*] --> safe : a crash\n    safe --> over\n```\nmore\n"
    )
    assert site.convert_page(text, "docs/index.md", PAGES) == (
        "| from | when | to |\n|---|---|---|\n|  | a crash | safe mode |\n"
        "| safe mode |  | over |\nmore\n"
    )


def test_code_in_a_table_breaks_at_its_joints(site):
    html = "<p><code>a.b</code></p><td>c.d <code>e.f_g/h &lt;i.</code></td>"
    broken = "<p><code>a.b</code></p><td>c.d <code>e.<wbr>f_<wbr>g/<wbr>h &lt;i.</code></td>"
    assert site.add_breaks(html) == broken


def test_the_navigation_follows_the_index(site):
    index = "# R\n[a](guides/a.md)\n## Reference\n- [the b](reference/b.md) and more\n"
    home, a, reference, project = site.read_navigation(index, PAGES)
    assert (home, a) == ({"Home": "index.md"}, {"A": "guides/a.md"})
    assert reference == {"Reference": [{"The b": "reference/b.md"}]}
    assert {"Security": "project/security.md"} in project["Project"]
    assert site.find_unlisted(index, PAGES) == set()
    assert site.find_unlisted("# R\n[a](guides/a.md)\n", PAGES) == {"docs/reference/b.md"}


def test_faults_of_the_built_site_are_found(site, tmp_path, monkeypatch):
    """A dead link, a missing heading, another host, a lost list and a lost page."""
    sources = {
        "docs/index.md": "- one\n- two\n",
        "docs/a.md": "text\n",
        "docs/gone.md": "text\n",
    }
    (tmp_path / "docs").mkdir()
    for name, text in sources.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "site/a").mkdir(parents=True)
    (tmp_path / "site/a/index.html").write_text(
        '<article><h1 id="here"></h1><pre class="mermaid"></article>'
    )
    (tmp_path / "site/index.html").write_text(
        '<a href="a/#here"></a><a href="a/#there"></a><a href="b/"></a>'
        '<script src="https://example.com/x.js"></script><article><p>- one - two</p></article>'
    )
    monkeypatch.setattr(site, "ROOT", tmp_path)
    monkeypatch.setattr(site, "SITE", tmp_path / "site")
    monkeypatch.setattr(site, "PROJECT_PAGES", {})
    assert site.check() == [
        "a/index.html: a diagram, for which the site loads a program",
        "index.html: a/#there: there is no such heading",
        "index.html: b/: there is no such file",
        "index.html: loads https://example.com/x.js",
        "docs/a.md: GitHub shows {}, the site {'pre': 1}",
        "docs/gone.md is not on the site",
        "docs/index.md: GitHub shows {'li': 2}, the site {}",
    ]
