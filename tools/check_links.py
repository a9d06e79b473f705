"""Check a built site: every internal address and anchor is there, and nothing is loaded from outside.

python tools/check_links.py build/site
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["Page", "broken_links", "main", "read_page"]

_LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("object", "data")}
_LOADED_RELATIONS = {"stylesheet", "icon", "preload", "preconnect", "modulepreload"}


class Page(HTMLParser):
    """The anchors of a page, and the addresses that it names with their lines and whether they are loaded with it."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.addresses: list[tuple[int, str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the anchors and addresses of a tag."""
        given = dict(attrs)
        self.anchors.update(value for name in ("id", "name") if (value := given.get(name)))
        for name in ("href", "src", "data"):
            value = given.get(name)
            if value is not None and (name != "data" or tag == "object"):
                relations = set((given.get("rel") or "").split())
                is_loaded = (tag, name) in _LOADED or (tag == "link" and bool(relations & _LOADED_RELATIONS))
                self.addresses.append((self.getpos()[0], value, is_loaded))


@cache
def read_page(path: Path) -> Page:
    """Return what a page names."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def broken_links(site: Path) -> Iterator[str]:
    """Give, for each address that leads nowhere or loads something from outside, where it stands and why.

    Parameters
    ----------
    site : pathlib.Path
        Folder of a built site.

    Yields
    ------
    str
    """
    site = site.resolve()
    for path in sorted(site.rglob("*.html")):
        for line, address, is_loaded in read_page(path).addresses:
            # Nobody knows where a page for wrong addresses is shown, so it names the others from the root.
            reason = _reason(site, path, address, is_loaded=is_loaded)
            if reason is not None:
                yield f"{path.relative_to(site)}:{line}: {address!r} {reason}"


def _reason(site: Path, path: Path, address: str, *, is_loaded: bool) -> str | None:
    """Say why an address is broken, or None if it is not."""
    parts = urlsplit(address)
    if parts.scheme in {"mailto", "data", "javascript"}:
        return None
    if parts.scheme or parts.netloc:
        return "is loaded from outside" if is_loaded else None
    base = site if parts.path.startswith("/") else path.parent
    target = (base / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
    if not target.is_relative_to(site):
        return "leads out of the site"
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        return "is not there"
    if parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in read_page(target).anchors:
        return "has no such anchor"
    return None


def main(arguments: list[str]) -> int:
    """Print what is broken, and return the exit code."""
    site = Path(arguments[0])
    n_pages = len(list(site.rglob("*.html")))
    if not n_pages:
        print(f"There are no pages in {site}.", file=sys.stderr)
        return 2
    broken = list(broken_links(site))
    for link in broken:
        print(link, file=sys.stderr)
    print(f"{n_pages} pages, {len(broken)} broken links.")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
