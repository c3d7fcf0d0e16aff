"""Take the picture of the report in README: ``python docs/report_picture.py``; needs playwright and chromium."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

PICTURE = Path(__file__).parent / "_static" / "report.png"


def main() -> None:
    """Write the report about the bundled example, open it, and keep what is seen first."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as browsers:
        page = Path(folder, "report.html")
        subprocess.run([sys.executable, "-m", "rankernel.cli", "report", "-o", str(page)], check=True)
        browser = browsers.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        window = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
        window.goto(page.as_uri())
        window.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    main()
