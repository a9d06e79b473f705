"""Progress: a bar with the time left on a terminal, lines in a log, nothing if quiet."""

import io
import logging
import time

import pytest
from rich.console import Console

from surelabel._core.progress import step
from surelabel.cli import showing
from surelabel.cli.application import state
from surelabel.cli.blocks import excerpt


@pytest.fixture(autouse=True)
def _not_quiet(monkeypatch):
    monkeypatch.setattr(state, "quiet", False)


def test_a_bar_on_a_terminal_has_the_time_left(monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(showing, "errors", Console(file=shown, force_terminal=True, width=120))
    with showing.progress_shown(), step("fitting"), step("counting", 4) as advance:
        for _ in range(4):
            time.sleep(0.12)
            advance()
    assert "counting" in shown.getvalue()
    assert "left:" in shown.getvalue()
    assert "0:00:0" in shown.getvalue()


def test_a_log_gets_a_line_now_and_then(monkeypatch, caplog):
    monkeypatch.setattr(showing, "errors", Console(file=io.StringIO()))
    monkeypatch.setattr(showing, "_SILENT", 0.05)
    with caplog.at_level(logging.INFO, "surelabel"), showing.progress_shown(), step("fitting", 4) as advance:
        time.sleep(0.15)
        advance(2)
        time.sleep(1.2)
    assert "fitting: 0 s" in caplog.messages[0]
    assert any(message.startswith("  fitting: 50%, 1 s, about 1 s left") for message in caplog.messages)


def test_quiet_is_quiet(monkeypatch, caplog):
    monkeypatch.setattr(state, "quiet", True)
    monkeypatch.setattr(showing, "_SILENT", 0.01)
    with caplog.at_level(logging.INFO, "surelabel"), showing.progress_shown(), step("fitting"):
        time.sleep(0.1)
    assert caplog.messages == []


def test_nothing_is_said_between_steps(monkeypatch, caplog):
    """A server that answered some texts first says nothing about them while it serves."""
    monkeypatch.setattr(showing, "errors", Console(file=io.StringIO()))
    monkeypatch.setattr(showing, "_SILENT", 0.02)
    with caplog.at_level(logging.INFO, "surelabel"), showing.progress_shown():
        with step("answering"), step("counting"):
            time.sleep(0.2)
        said = len(caplog.messages)
        time.sleep(0.3)
    assert said > 0
    assert len(caplog.messages) <= said + 1  # one may be under way


def test_a_bar_goes_when_no_step_is_under_way(monkeypatch):
    monkeypatch.setattr(showing, "errors", Console(file=io.StringIO(), force_terminal=True, width=120))
    bars = []
    monkeypatch.setattr(showing, "_Bar", lambda make=showing._Bar: bars.append(make()) or bars[0])
    with showing.progress_shown():
        with step("answering"):
            assert len(bars[0].progress.tasks) == 1
        assert bars[0].progress.tasks == []


def test_the_beginning_of_a_text_is_on_one_line():
    assert excerpt("Wheat\nrose.") == "Wheat rose."
    assert len(excerpt("wheat " * 100)) == 100
