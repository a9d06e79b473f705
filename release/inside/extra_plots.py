"""The extra `plots` alone: a figure and a report."""

import numpy as np

from surelabel import ConformalLabelSets, plots, report


def main() -> None:
    """Draw and write."""
    svg = plots.to_svg(plots.search_load({"Reuters": (90, 15)}), name="load", title="Label-sets against t")
    assert svg.startswith("<svg")
    rng = np.random.default_rng(0)
    probabilities = rng.random((300, 3))
    labels = rng.random((300, 3)) < probabilities
    predictor = ConformalLabelSets(min_labels=0).calibrate(probabilities[:200], labels[:200])
    page = report.render_report(report.ReportInput("A", {"L2": predictor}, probabilities[200:], labels[200:]))
    assert page.startswith("<!DOCTYPE html>")
    assert "<style>" in page


if __name__ == "__main__":
    main()
