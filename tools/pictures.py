"""Take the pictures of `rekindle ui` and `rekindle top` in docs/images from a recorded night.

The clock stands still at the end of the night, so that two runs draw the same pictures.
"""

import asyncio
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from playwright.sync_api import Browser, sync_playwright  # noqa: E402 - needs the path above

from own_user_folder import isolate_user_folder  # noqa: E402
from recorded_night import NOW, write_night  # noqa: E402
from rekindle.system import clock  # noqa: E402
from rekindle.terminal_screen.top_app import TopApp  # noqa: E402
from ui_server import UiServer, serve_pages, supervise_elsewhere  # noqa: E402

IMAGES = ROOT / "docs/images"
AGENT = "/a/shop/trades"
PAGES = {
    "ui-agents": ("/", "tr[data-key]"),
    "ui-agent": (AGENT, ".lines li"),
    "ui-search": ("/search?q=validation", ".hits pre"),
    "ui-morning": ("/morning", "article"),
}
"""Names of pictures, their pages, and parts that show that a page is complete."""
STORED = {
    "ui-agents": (1440, "light"),
    "ui-agent": (1440, "dark"),
}
"""Pictures in the documentation, with their width and colours."""
HEIGHTS = {375: 812, 768: 1024, 1440: 900}
SERVER = """
import pathlib, sys, types, recorded_night
from rekindle.system import clock
from rekindle.web import page_links, run_server

page_links.clock = types.SimpleNamespace(read_clock=clock.read_clock)  # links expire as usual
clock.read_clock = lambda: recorded_night.NOW
tell = lambda link: print(link, flush=True)
run_server.run_server(pathlib.Path.cwd(), 0, read_only=False, proxy=None, tell=tell)
"""


def take(
    browser: Browser, server: UiServer, name: str, to: Path, *, width: int, scheme: str
) -> None:
    """Take one picture of a page."""
    path, part = PAGES[name]
    size = {"width": width, "height": HEIGHTS[width]}
    options = {"viewport": size, "color_scheme": scheme, "timezone_id": "UTC"}
    context = browser.new_context(**options)  # type: ignore[arg-type]
    page = context.new_page()
    page.clock.set_fixed_time(NOW)
    page.goto(server.make_link())
    page.wait_for_selector("tr[data-key]")
    page.goto(f"{server.origin}{path}")
    page.wait_for_selector(part)
    page.wait_for_selector("#live:text('live')")
    bottom = page.evaluate("document.querySelector('main').getBoundingClientRect().bottom")
    clip = {"x": 0, "y": 0, "width": width, "height": min(bottom, HEIGHTS[width])}
    page.screenshot(path=to, animations="disabled", clip=clip)  # type: ignore[arg-type]
    context.close()


async def draw_terminal(folder: Path) -> str:
    """Return a picture of `rekindle top`."""
    app = TopApp(folder)
    async with app.run_test(size=(110, 14)) as pilot:
        while app.reading is None:
            await pilot.pause(0.1)
        await pilot.pause()
        picture = app.export_screenshot(title="rekindle top")
    # Without the fonts of another host, the picture shows the reader's own.
    picture = re.sub(r"@font-face {.*?}", "", picture, flags=re.DOTALL)
    return re.sub(r"[ \t]+$", "", picture.replace("Fira Code", "monospace"), flags=re.MULTILINE)


def main(to: Path | None) -> None:
    """Write the stored pictures, or those of all pages at all widths into another folder."""
    os.environ["REKINDLE_TRUST"] = "1"
    os.environ["PYTHONPATH"] = str(ROOT / "tests")
    if os.getuid() == 0:
        isolate_user_folder()
    clock.read_clock = lambda: NOW
    program = (sys.executable, "-c", SERVER)
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as driver:
        folder = write_night(Path(temporary) / "shop")
        chromium = shutil.which("chromium")
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        with supervise_elsewhere(folder), serve_pages(folder, program=program) as server:
            if to is None:
                for name, (width, scheme) in STORED.items():
                    file = IMAGES / f"{name}.png"
                    take(browser, server, name, file, width=width, scheme=scheme)
            else:
                for name in PAGES:
                    for width in HEIGHTS:
                        for scheme in ("light", "dark"):
                            file = to / f"{name}-{width}-{scheme}.png"
                            take(browser, server, name, file, width=width, scheme=scheme)
        browser.close()


def draw_top(to: Path) -> None:
    """Write the picture of `rekindle top`. It has its own event loop, unlike the browser."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = write_night(Path(temporary) / "shop")
        with supervise_elsewhere(folder):
            (to / "top.svg").write_text(asyncio.run(draw_terminal(folder)))


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    main(target)
    draw_top(target or IMAGES)
