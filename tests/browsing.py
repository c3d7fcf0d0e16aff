"""A browser for tests of the page, and a page with its console messages, errors and requests."""

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
    """Yield a browser, or skip the test without one."""
    path = os.environ.get("RANKERNEL_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)
    with playwright.sync_playwright() as program:
        try:
            opened = program.chromium.launch(executable_path=path, args=FLAGS)
        except playwright.Error as error:
            pytest.skip(f"no browser: {str(error).splitlines()[0]}")
        opened.new_page()
        yield opened
        opened.close()


class Watched:
    """A page with its console messages, errors and requests.

    All pages share one window, as a new window starts new processes; only pages for touch have their own.
    """

    def __init__(self, browser, path: Path, viewport=SCREEN, color_scheme="light", has_touch=False):
        self.page = browser.new_page(has_touch=True) if has_touch else browser.contexts[0].pages[0]
        self.page.set_viewport_size(viewport)
        self.page.emulate_media(media="screen", color_scheme=color_scheme)
        self.messages, self.errors, self.requests = [], [], []
        self.listeners = {
            "console": lambda message: self.messages.append(message.text),
            "pageerror": lambda error: self.errors.append(str(error)),
            "request": lambda request: self.requests.append(request.url),
        }
        for event, listener in self.listeners.items():
            self.page.on(event, listener)
        self.page.goto(path.as_uri())
        self.address = path.as_uri()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for event, listener in self.listeners.items():
            self.page.remove_listener(event, listener)
        if self.page.context is not self.page.context.browser.contexts[0]:
            self.page.close()

    def assert_quiet(self):
        assert self.messages == []
        assert self.errors == []
        assert [url for url in self.requests if not url.startswith(("data:", "blob:"))] == [self.address]
