"""A real browser for tests of the page, and a page with everything that it says and asks for."""

import os
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@contextmanager
def open_browser():
    """Give a browser, or skip where there is none."""
    path = os.environ.get("RANKERNEL_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)
    with playwright.sync_playwright() as program:
        try:
            opened = program.chromium.launch(executable_path=path, args=FLAGS)
        except playwright.Error as error:
            pytest.skip(f"there is no browser to be had: {str(error).splitlines()[0]}")
        yield opened
        opened.close()


class Watched:
    """A page, with everything that it says, asks for and does wrong."""

    def __init__(self, browser, path: Path, **options):
        self.context = browser.new_context(**({"viewport": {"width": 1100, "height": 900}} | options))
        self.page = self.context.new_page()
        self.said, self.errors, self.requests = [], [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.address = path.as_uri()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()

    def assert_quiet(self):
        assert self.said == []
        assert self.errors == []
        assert [url for url in self.requests if not url.startswith(("data:", "blob:"))] == [self.address]
