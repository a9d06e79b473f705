"""Debian's Chromium, and what is checked on every page."""

import shutil
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
CHECKS = (Path(__file__).parent / "service" / "page_checks.js").read_text(encoding="utf-8")
"""Evaluates to a list of what someone who reads a page with a screen reader, or with weak eyes, would trip over."""
