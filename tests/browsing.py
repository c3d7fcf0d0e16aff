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
SCREEN = {"width": 1100, "height": 900}
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
        opened.new_page()
        yield opened
        opened.close()


class Watched:
    """A page, with everything that it says, asks for and does wrong.

    One window shows one page after the other, as a new window takes new processes; only one that is touched is another.
    """

    def __init__(self, browser, path: Path, viewport=SCREEN, color_scheme="light", has_touch=False):
        self.page = browser.new_page(has_touch=True) if has_touch else browser.contexts[0].pages[0]
        self.page.set_viewport_size(viewport)
        self.page.emulate_media(media="screen", color_scheme=color_scheme)
        self.said, self.errors, self.requests = [], [], []
        self.page.on("console", self.hear)
        self.page.on("pageerror", self.fail)
        self.page.on("request", self.ask)
        self.page.goto(path.as_uri())
        self.address = path.as_uri()

    def hear(self, message):
        self.said.append(message.text)

    def fail(self, error):
        self.errors.append(str(error))

    def ask(self, request):
        self.requests.append(request.url)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for event, listener in (("console", self.hear), ("pageerror", self.fail), ("request", self.ask)):
            self.page.remove_listener(event, listener)
        if self.page.context is not self.page.context.browser.contexts[0]:
            self.page.close()

    def assert_quiet(self):
        assert self.said == []
        assert self.errors == []
        assert [url for url in self.requests if not url.startswith(("data:", "blob:"))] == [self.address]
