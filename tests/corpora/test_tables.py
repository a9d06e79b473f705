import json
from pathlib import Path

import pytest

from surelabel.corpora import (
    PAPER_STATISTICS,
    Corpus,
    Statistics,
    statistics,
    statistics_markdown,
    statistics_table,
)


def corpus(name="two"):
    return Corpus.from_label_sets(
        name,
        ["Oil rose.", "Gold fell, oil rose.", "gold"],
        [{"oil"}, {"gold", "oil"}, {"gold"}],
        parts={"train": [0], "test": [1], "calibration": [2]},
    )


def test_counted_by_hand():
    # Words and marks: 3, 6 and 1.
    expected = Statistics(3, 1, 1, 1, 0, 2, 4 / 3, 10 / 3, 2)
    assert statistics(corpus()) == expected
    assert corpus().statistics() == expected


def test_the_paper_stands_beside_ours():
    rows = statistics_table([corpus(), corpus("reuters")])
    assert [(row["corpus"], row["source"]) for row in rows] == [
        ("two", "ours"),
        ("reuters", "ours"),
        ("reuters", "paper"),
    ]
    assert rows[2]["docs"] == 10788
    assert len(statistics_table([corpus("reuters")], paper={})) == 1


def test_markdown():
    lines = statistics_markdown(statistics_table([corpus("aapd")])).splitlines()
    assert lines[2] == "| aapd | ours | 3 | 1 | 1 | 1 | 0 | 2 | 1.33 | 3 | 2 |"
    assert lines[3] == "| aapd | paper | 55,840 | 48,841 | 4,999 | 1,000 | 1,000 | 54 | 2.41 | 164 | 8 |"
    assert len({line.count("|") for line in lines}) == 1


def test_the_paper_adds_up():
    for row in PAPER_STATISTICS.values():
        assert row.docs == row.proper_train + row.calibration + row.test + row.validation


def test_the_figures_are_those_of_the_paper():
    file = Path(__file__).parents[2].parent / "shared" / "paper" / "results.json"
    if not file.exists():
        pytest.skip(f"{file.name} of the paper is not at hand")
    figures = json.loads(file.read_text())
    for name, row in figures["corpora"].items():
        assert PAPER_STATISTICS[name] == Statistics(**row, max_cardinality=figures["max_cardinality"][name])
