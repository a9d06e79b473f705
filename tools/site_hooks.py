"""Hooks of mkdocs: what the site shows of files that lie outside docs.

A page links to such a file as it would on a code host (`../results/figures/news.svg`), so that its links work in both
places. On the site, pictures under results/figures are copied, CHANGELOG.md is a page, and other files are named
without a link.
"""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
FIGURES = "results/figures"
CHANGELOG = "changelog.md"

_LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?P<up>(?:\.\./)+)(?P<path>[^)#\s]+)[^)]*\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add pictures and the changelog."""
    for path in sorted((ROOT / FIGURES).glob("*.svg")):
        files.append(File.generated(config, f"{FIGURES}/{path.name}", abs_src_path=str(path)))
    files.append(File.generated(config, CHANGELOG, content=(ROOT / "CHANGELOG.md").read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links to files outside docs to where the site has them."""
    return relinked(markdown, page.file.src_uri)


def relinked(markdown: str, page: str) -> str:
    """Return a page whose links to files outside docs lead to the site's copies, or are plain text.

    Parameters
    ----------
    markdown : str
    page : str
        Its path from docs.

    Returns
    -------
    str
    """
    n_folders = page.count("/")

    def relink(match: re.Match[str]) -> str:
        if match["up"].count("/") <= n_folders:
            return match[0]  # stays within docs
        if not (ROOT / match["path"]).exists():
            raise PluginError(f"docs/{page} links to {match['path']}, which is not there")
        inside = "../" * n_folders
        if match["path"] == "CHANGELOG.md":
            return f"[{match['text']}]({inside}{CHANGELOG})"
        if match["path"].startswith(f"{FIGURES}/") and match["path"].endswith(".svg"):
            return f"{match['picture']}[{match['text']}]({inside}{match['path']})"
        if match["picture"]:
            raise PluginError(f"docs/{page} shows {match['path']}; pictures outside docs lie in {FIGURES}")
        return match["text"]

    return _LINK.sub(relink, markdown)
