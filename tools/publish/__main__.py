"""Write the tables, the figures and the marked places of pages: `make publish`."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

from publish.pages import publish
from publish.statistics import record_statistics
from surelabel.experiments.tables import load_results

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="publish", description=__doc__)
    parser.add_argument("--results", type=Path, default=ROOT / "results", help="folder of result files")
    parser.add_argument("--count-corpora", action="store_true", help="count corpora that corpora.json lacks")
    parser.add_argument("pages", type=Path, nargs="*", help="pages with marked places [default: README.md, docs/*.md]")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    if given.count_corpora:
        names = [result["run"]["corpus"] for result in load_results(given.results / "runs")]
        record_statistics(names, given.results / "corpora.json")
    tables = publish(given.results, given.results, given.pages or [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    print(f"{len(tables)} tables are in {given.results / 'tables'}, figures in {given.results / 'figures'}.")


if __name__ == "__main__":
    main()
