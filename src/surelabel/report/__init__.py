"""One self-contained HTML file on an evaluated model: what it is, whether the guarantee held, how large sets are.

`write_report` takes a `ReportInput`: calibrated predictors by name, and probabilities, labels and texts that they were
not made with. The file has its figures and its style within, asks no host for anything and runs no script; texts and
label names are shown as text, whatever is in them. The same input gives the same bytes. Needs `surelabel[plots]`.

Examples
--------
>>> import numpy as np
>>> from surelabel import ConformalLabelSets
>>> rng = np.random.default_rng(0)
>>> probabilities = rng.random((300, 3))
>>> labels = rng.random((300, 3)) < probabilities
>>> predictor = ConformalLabelSets(min_labels=0).calibrate(probabilities[:200], labels[:200])
>>> given = ReportInput("Three labels", {"L2": predictor}, probabilities[200:], labels[200:])
>>> page = render_report(given)
>>> page.startswith("<!DOCTYPE html>"), "<script" in page
(True, False)
"""

from surelabel.report.content import ReportContent, build_content, judge
from surelabel.report.inputs import ReportInput
from surelabel.report.render import render_report, write_report

__all__ = ["ReportContent", "ReportInput", "build_content", "judge", "render_report", "write_report"]
