"""Write the tables, the figures and the marked places of pages: `make publish`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from publish.pages import publish
from publish.paper import count_corpora

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="publish", description=__doc__)
    parser.add_argument("--results", type=Path, default=ROOT / "results", help="folder of result files")
    parser.add_argument("--count", type=Path, metavar="DIR", help="first count the paper's corpora in this folder")
    parser.add_argument("pages", type=Path, nargs="*", help="pages with marked places [default: README.md, docs/*.md]")
    given = parser.parse_args()
    if given.count is not None:
        os.environ["SURELABEL_DATA"] = str(given.count)
        count_corpora(given.results / "corpora.json")
    changed = publish(given.results, given.pages or [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))])
    print("\n".join(f"{page} has changed" for page in changed) or "no page has changed")


if __name__ == "__main__":
    main()
