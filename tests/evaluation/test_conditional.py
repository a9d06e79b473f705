"""Misses by subgroup: counts by hand, and one correction for many subgroups."""

import numpy as np

from surelabel.evaluation.conditional import TextInfo, rarest_counts, subgroups, sure_but_wrong

LABEL_SETS = [{"a"}, {"a", "b"}, {"a", "b", "c"}, set(), {"new"}]


def _by_name(found, division):
    return {group.name: group for group in found[division]}


def test_subgroups_by_hand():
    missed = np.array([False, True, True, False, True])
    info = TextInfo(groups=["x", "x", "y", "y", "y"])
    found = subgroups(missed, LABEL_SETS, "0.2", 99, info)
    assert {name: len(groups) for name, groups in found.items()} == {"number of true labels": 4, "group": 2}
    assert [group.name for group in found["number of true labels"]] == [
        "no label",
        "1 label",
        "2 labels",
        "3 or more labels",
    ]
    assert _by_name(found, "number of true labels")["1 label"].n_texts == 2
    assert _by_name(found, "group")["x"].missed == 0.5


def test_rarest_label():
    assert rarest_counts(LABEL_SETS, {"a": 500, "b": 20, "c": 3}).tolist() == [500, 20, 3, -1, 0]
    info = TextInfo(training_counts={"a": 500, "b": 20, "c": 3})
    found = subgroups(np.zeros(5, dtype=bool), LABEL_SETS, "0.2", 99, info)
    assert sum(group.n_texts for group in found["rarest label"]) == 5


def test_a_broken_subgroup_is_found():
    missed = np.arange(400) < 60
    groups = ["bad" if row < 100 else "good" for row in range(400)]
    found = subgroups(missed, [{"a"}] * 400, "0.1", 400, TextInfo(groups=groups))
    assert _by_name(found, "group")["bad"].verdict == "above"
    assert _by_name(found, "group")["good"].verdict == "held"


def test_many_subgroups_are_corrected_together():
    # Two hundred groups whose promise holds: by one band of 99 % a few are above it in nearly every experiment.
    rng = np.random.default_rng(0)
    groups = [str(row % 200) for row in range(10_000)]
    n_broken = 0
    for _ in range(20):
        missed = rng.random(10_000) < 0.05
        found = subgroups(missed, [{"a"}] * 10_000, "0.05", 100_000, TextInfo(groups=groups))
        n_broken += any(group.verdict == "above" for group in found["group"])
    assert n_broken <= 2


def test_sure_but_wrong_are_counted_and_the_surest_listed():
    guessed = [frozenset("a")] * 80
    confidence = np.linspace(0.5, 0.9, 80)
    n_wrong, listed = sure_but_wrong(guessed, confidence, [{"b"}] * 80, np.arange(80) > 0)
    assert n_wrong == 79
    assert len(listed) == 50
    assert (listed[0].id, listed[0].row, listed[0].guessed, listed[0].true) == ("80", 80, ("a",), ("b",))
