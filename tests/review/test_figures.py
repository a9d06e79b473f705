"""Figures by hand."""

import pytest

from surelabel.guarantees.certifying import wrong_bound
from surelabel.review import Decision, Offer, blind_figures, closing_figures


def decision(number, chosen, verdict="choose", *, blind=False, seconds=None, reviewer="ann"):
    offer = Offer(verdict, "", ("oil",), significance="0.05")
    queue = "check" if blind else {"file": "filed"}.get(verdict, verdict)
    chosen = tuple(chosen)
    return Decision(
        number, str(number), number, "", "", "edit", offer, chosen, queue, reviewer, 0.0, seconds, "m", blind
    )


def test_the_bound_is_clopper_and_pearsons():
    assert wrong_bound(0, 10) == pytest.approx(1 - 0.05 ** (1 / 10))
    assert wrong_bound(10, 10) == 1.0


def test_the_blind_check_counts_blind_texts_alone():
    decisions = [
        decision(1, ["oil"], "file", blind=True),
        decision(2, ["gas"], "file", blind=True),
        decision(3, ["gas"], "read", blind=True),
        decision(4, ["oil"], "choose", blind=True),
        decision(5, ["gas"], "file"),
    ]
    figures = blind_figures(decisions, [0.9, 0.04, 0.05, 0.06])
    assert (figures.n_texts, figures.n_filed, figures.n_filed_wrong) == (4, 2, 1)
    assert figures.filed_wrong_bound == pytest.approx(wrong_bound(1, 2))
    assert (figures.n_missed, figures.error, figures.significance) == (2, 0.5, "0.05")
    assert figures.n_guess_wrong == 2


def test_the_closing_figures():
    decisions = [
        decision(1, ["oil"], seconds=2.0),
        decision(2, ["gas", "oil"], seconds=4.0),
        decision(3, ["gas"], "read", seconds=9.0, reviewer="bob"),
        decision(4, [], "read"),
        decision(5, ["corn"], blind=True),
    ]
    figures = closing_figures(decisions)
    assert figures.n_decided == 5
    assert figures.by_queue == {"choose": 2, "read": 2, "check": 1}
    assert figures.by_reviewer == {"ann": 4, "bob": 1}
    assert figures.median_seconds == 4.0
    assert (figures.n_offered, figures.n_agreed, figures.agreement) == (4, 1, 0.25)
    assert figures.n_none == 1
    assert figures.corrected == [("gas", 2, 0), ("oil", 0, 2)]
    assert closing_figures([]).agreement is None
