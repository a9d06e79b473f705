"""Take the picture of the page that README shows, with a model that `surelabel demo` made.

Run `python tools/page_picture.py MODEL`. It needs Chromium, Playwright and Pillow, and writes docs/images/page.png.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "page.png"
TEXT = "The dollar fell after the U.S. trade deficit widened in March. Dealers expect the central banks to intervene."
SIZE = {"width": 1080, "height": 930}
MOST_BYTES = 150_000
SECONDS = 300


def _free_port() -> int:
    with socket.socket() as asking:
        asking.bind(("127.0.0.1", 0))
        return int(asking.getsockname()[1])


def _wait_for(address: str) -> None:
    """Wait until a service answers its first text."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{address}/readyz", timeout=5):  # noqa: S310  # our own service
                return
        except (urllib.error.URLError, TimeoutError):
            time.sleep(0.5)
    raise SystemExit(f"The service at {address} did not answer within {SECONDS} seconds.")


def _screenshot(address: str) -> bytes:
    """Ask the page about the text, and return the page as a PNG."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit("page_picture.py needs Chromium: apt-get install chromium.")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        page.set_default_timeout(60_000)
        page.goto(f"{address}/")
        page.fill("#text", TEXT)
        page.click("#ask")
        page.wait_for_selector("#plausible-title")
        page.locator("#examples").evaluate("element => { element.hidden = true; }")
        pixels = page.screenshot(full_page=True)
        browser.close()
    return pixels


def main() -> None:
    """Serve the model, take the picture, write it small."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="a model that `surelabel demo` made")
    model = parser.parse_args().model
    port = _free_port()
    command = [sys.executable, "-m", "surelabel", "serve", str(model), "--port", str(port)]
    with subprocess.Popen(command, env=os.environ) as service:  # noqa: S603  # our own command
        try:
            address = f"http://127.0.0.1:{port}"
            _wait_for(address)
            pixels = _screenshot(address)
        finally:
            service.terminate()
    small = io.BytesIO()
    Image.open(io.BytesIO(pixels)).convert("RGB").quantize(128).save(small, "PNG", optimize=True)
    if small.tell() > MOST_BYTES:
        raise SystemExit(f"The picture must have at most {MOST_BYTES:,} bytes. It has {small.tell():,}.")
    PICTURE.write_bytes(small.getvalue())
    print(f"{PICTURE}: {small.tell():,} bytes")


if __name__ == "__main__":
    main()
