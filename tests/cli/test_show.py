"""Cards and progress, without a model."""

import io
import logging

import pytest
from rich.console import Console

from surelabel._core.progress import step
from surelabel.cli import show

RECORD = {
    "decision": "choose",
    "reason": "Choose from these 3 tags.",
    "labels": ["oil"],
    "consider": ["oil", "gold", "gas"],
    "assign": ["oil"],
    "confidence": 0.9,
    "credibility": 0.4,
}


def test_a_card_has_the_decision_the_tags_and_why():
    assert show.card(RECORD).splitlines() == [
        "Choose    oil (sure), gold, gas",
        "          Choose from these 3 tags.",
    ]
    filed = {**RECORD, "decision": "file", "reason": "Certified."}
    assert show.card(filed).splitlines() == ["File      oil", "          Certified."]
    assert show.card({**filed, "labels": []}).splitlines()[0] == "File      no tag"


def test_a_text_to_read_shows_no_guess():
    read = show.card({**RECORD, "decision": "read", "reason": "Unlike the others."})
    assert "oil" not in read
    assert read.splitlines()[1].strip() == "Unlike the others."


def test_a_prediction_set_is_one_more_line():
    top = [{"labels": ["oil"], "p_value": 0.4}, {"labels": ["gas", "oil"], "p_value": 0.2}]
    lines = show.card({**RECORD, "size_bounds": [2, 2], "significance": "0.1", "top": top}).splitlines()
    assert lines[2].strip() == "2 answers at significance 0.1: oil 0.400; gas, oil 0.200"
    wide = {**RECORD, "size_bounds": ["36028797018963968", "72057594037927936"], "significance": "0.01", "top": []}
    assert "3.6 × 10^16 to 7.2 × 10^16" in show.card(wide)


def test_many_tags_are_counted():
    card = show.card({**RECORD, "consider": [f"tag{k}" for k in range(15)], "assign": []}, width=400)
    assert card.splitlines()[0].endswith("tag11 and 3 more")


def test_a_card_with_its_text_fits_the_terminal():
    lines = show.card({**RECORD, "id": "t-1"}, text="wheat\nrose " * 100, width=60).splitlines()
    assert lines[0].startswith("t-1")
    assert max(map(len, lines)) <= 60
    assert len(lines) == 4


@pytest.fixture(autouse=True)
def _not_quiet(monkeypatch):
    monkeypatch.setattr(show.state, "quiet", False)


def work():
    with step("fitting", 4) as advance, step("counting"):
        for _ in range(4):
            advance()


def test_a_log_gets_one_line_per_step(monkeypatch, caplog):
    monkeypatch.setattr(show, "errors", Console(file=io.StringIO()))
    with caplog.at_level(logging.INFO, "surelabel"), show.progress():
        with step("fitting", 4) as advance:
            for _ in range(4):
                advance()
        with step("counting"):
            pass
    assert caplog.messages == ["fitting (4)", "counting"]


def test_a_terminal_gets_a_bar(monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(show, "errors", Console(file=shown, force_terminal=True, width=120))
    with show.progress():
        work()
    assert "counting" in shown.getvalue()
    assert "left:" in shown.getvalue()


def test_quiet_is_quiet(monkeypatch, caplog):
    monkeypatch.setattr(show.state, "quiet", True)
    with caplog.at_level(logging.INFO, "surelabel"), show.progress():
        work()
    assert caplog.messages == []
