"""One self-contained HTML file on an evaluated model: what it is, whether the guarantee held, how large sets are.

`write_report` takes a `ReportInput`: calibrated predictors by name, and probabilities, labels and texts that they were
not made with. The file has its figures and its style within, asks no host for anything and runs no script; texts and
label names are shown as text, whatever is in them. The same input gives the same bytes. Needs `surelabel[plots]`.

Examples
--------
>>> import tempfile
>>> from surelabel import ConformalLabelSets
>>> from surelabel.report import ReportContent, ReportInput, build_content, render_report, write_report
>>> predictor = ConformalLabelSets().calibrate([[0.9, 0.2], [0.1, 0.8]] * 20, [[1, 0], [0, 1]] * 20)
>>> given = ReportInput("Two labels", {"L2": predictor}, [[0.9, 0.2], [0.1, 0.8]], [[1, 0], [0, 1]])
>>> content = build_content(given)
>>> isinstance(content, ReportContent), content.title, content.significance, content.n_empty, content.has_texts
(True, 'Two labels', '0.05', 0, False)
>>> content.main.name, content.chosen.verdict
('L2', 'held')
>>> page = render_report(given)
>>> page.startswith("<!DOCTYPE html>"), "Two labels" in page, "<script" in page
(True, True, False)
>>> write_report(f"{tempfile.mkdtemp()}/report.html", given)
"""

from surelabel.evaluation.bands import judge
from surelabel.report.content import ReportContent, build_content
from surelabel.report.inputs import ReportInput
from surelabel.report.render import render_report, write_report

__all__ = ["ReportContent", "ReportInput", "build_content", "judge", "render_report", "write_report"]
