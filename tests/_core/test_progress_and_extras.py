import sys
import threading

import pytest

from surelabel._core import progress
from surelabel._core.extras import require
from surelabel.exceptions import MissingDependencyError


def test_a_step_reports_from_any_thread():
    seen = []
    with progress.reporting_to(lambda *event: seen.append(event)), progress.step("reading", 3) as advance:
        thread = threading.Thread(target=advance)
        thread.start()
        thread.join()
        advance(2)
    assert seen == [("reading", 0, 3), ("reading", 1, 3), ("reading", 3, 3)]


def test_without_a_callback_nothing_happens_and_none_keeps_the_current_one():
    with progress.step("alone") as advance:
        advance()
    seen = []
    with progress.reporting_to(lambda *event: seen.append(event)), progress.reporting_to(None), progress.step("x"):
        pass
    assert seen == [("x", 0, None)]


def test_a_missing_package_names_its_extra(monkeypatch):
    assert require("json", "corpora", "A test") is __import__("json")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingDependencyError, match=r"surelabel\[corpora\]"):
        require("openpyxl", "corpora", "An Excel workbook")
