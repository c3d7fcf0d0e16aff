"""Take the screenshot of the report in README: ``python docs/report_picture.py``; needs playwright and chromium."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

PICTURE = Path(__file__).parent / "_static" / "report.png"
SCREEN = {"width": 1080, "height": 1000}
SHOWN = ("", "#clusters", "#map")  # sections at the top of each screenshot


def main() -> None:
    """Write the report about the bundled example and save three screenshots of it side by side."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as browsers:
        page = Path(folder, "report.html")
        subprocess.run([sys.executable, "-m", "rankernel", "report", "-o", str(page)], check=True)
        browser = browsers.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        window = browser.new_page(viewport=SCREEN, color_scheme="light")
        screens = []
        for section in SHOWN:
            window.goto(page.as_uri() + section)
            screens.append(Image.open(io.BytesIO(window.screenshot())))
        browser.close()
    picture = Image.new("RGB", (SCREEN["width"] * len(screens), SCREEN["height"]))
    for number, screen in enumerate(screens):
        picture.paste(screen, (SCREEN["width"] * number, 0))
    picture.quantize(64).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
