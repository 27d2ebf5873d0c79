"""Fixtures for tests in a real browser: Chromium, and pages that report every error."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from prerequisites import refuse
from ui_server import PATIENCE

FOREIGN = "evil.test"
"""A foreign name that Chromium resolves to 127.0.0.1, as after a DNS rebinding attack."""
WATCH = """
window.executed = [];
window.violations = [];
addEventListener("securitypolicyviolation", (event) => violations.push(event.violatedDirective));
"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Start a browser for the tests of one module.

    It ends with the module, because the event loop of its driver stays in the test's thread, where
    other tests start their own.
    """
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - few tests need it

    program = shutil.which("chromium")
    if program is None:
        refuse("chromium is not installed")
    flags = ["--no-sandbox", f"--host-resolver-rules=MAP {FOREIGN} 127.0.0.1"]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=flags)
        yield browser
        browser.close()


@dataclass
class Visitor:
    """A person with a fresh browser profile."""

    context: Any
    errors: list[str] = field(default_factory=list)
    """Messages on the consoles of all pages, and errors in their scripts."""

    def open(self, address: str) -> Any:
        """Open an address in a new tab."""
        page = self.context.new_page()
        page.on("console", lambda said: self.errors.append(said.text) if is_bad(said) else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.goto(address)
        return page


def is_bad(said: Any) -> bool:
    return said.type in {"error", "warning"}


@pytest.fixture
def visit(chromium: Any) -> Iterator[Callable[..., Visitor]]:
    """Return a function that creates a visitor."""
    contexts = []

    def visit_now(**options: Any) -> Visitor:
        context = chromium.new_context(timezone_id="UTC", **options)
        contexts.append(context)
        context.set_default_timeout(PATIENCE * 1000)
        context.add_init_script(WATCH)
        return Visitor(context)

    yield visit_now
    for context in contexts:
        context.close()
