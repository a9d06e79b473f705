"""The drawings in the documentation are what their script draws, and what their pages say."""

from __future__ import annotations

import runpy
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_drawings_are_those_of_the_script():
    for name, draw in runpy.run_path(str(DOCS / "drawings.py"))["PICTURES"].items():
        assert (DOCS / "images" / name).read_text(encoding="utf-8") == draw()


def test_the_tree_has_each_set_of_flips_once_and_at_most_two_misses_a_member():
    drawings = runpy.run_path(str(DOCS / "drawings.py"))
    nodes, cost, budget = drawings["visited"](), drawings["cost"], drawings["BUDGET"]
    assert len(nodes) == len(set(nodes)) == 12
    members = [node for node in nodes if cost(node) <= budget]
    assert len(members) == 7
    assert len(nodes) - len(members) <= 2 * len(members)
