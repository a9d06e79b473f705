"""Figures: the drawn values are the given ones, as SVG that stands in any page."""

import re
import subprocess
import sys
import threading
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from surelabel import plots
from surelabel.exceptions import InvalidInputError, MissingDependencyError

SVG = "{http://www.w3.org/2000/svg}"
LEVELS = [0.01, 0.05, 0.1, 0.2]


def simulate(n_texts, n_labels=6, seed=0):
    rng = np.random.default_rng(seed)
    probabilities = 1 / (1 + np.exp(-rng.normal(-1.5, 2.0, (n_texts, n_labels))))
    return probabilities, rng.random((n_texts, n_labels)) < probabilities


def confidence():
    rng = np.random.default_rng(0)
    return plots.confidence_credibility(rng.random(1000), rng.random(1000), rng.random(1000) < 0.5)


FIGURES = {
    "error": lambda: plots.error_curve({"L2": (LEVELS, [0, 0.04, 0.12, 0.2])}, n_texts=300, n_calibration=99),
    "size": lambda: plots.size_curve({"L2": (LEVELS, [5296, 85.2, 1.2, 0.9]), "log": (LEVELS, [180, 2, 1.2, 0])}),
    "sizes": lambda: plots.size_histogram([0, 1, 1, 2, 50, 10**20]),
    "p": lambda: plots.p_value_histogram(np.linspace(0, 1, 200), n_calibration=99),
    "confidence": confidence,
    "reliability": lambda: plots.reliability(*simulate(300), ["grain", "wheat", "corn", "oil", "<b>", "trade"]),
    "watch": lambda: plots.watch_path({"L2": np.linspace(-5, 9, 200), "log": [0.1, 80.0]}),
    "load": lambda: plots.search_load({"Reuters": (90, 15), "AAPD": (54, 8)}),
}


def texts_of(svg):
    return [node.text for node in ET.fromstring(svg).iter(f"{SVG}text")]


@pytest.mark.parametrize("name", FIGURES)
def test_svg_is_the_same_twice_and_stands_in_any_page(name):
    words = {"title": "A <title>", "description": "a & b"}
    svg = plots.to_svg(FIGURES[name](), name=name, **words)
    root = ET.fromstring(svg)
    assert (root.get("id"), root.get("role")) == (name, "img")
    assert root.find(f"{SVG}title").text == "A <title>"
    assert root.find(f"{SVG}desc").text == "a & b"
    ids = [node.get("id") for node in root.iter() if node.get("id")]
    assert len(ids) == len(set(ids))
    assert all(each.startswith(name) for each in ids)
    assert set(re.findall(r"(?:url\(|href=\")#([^)\"]+)", svg)) <= set(ids)
    assert "currentColor" in svg
    assert "#010101" not in svg
    assert ">*{" not in svg
    assert not re.findall(r"(?:src|href)=\"(?!#)", svg)
    assert plots.to_svg(FIGURES[name](), name=name, **words) == svg


def test_figures_do_not_depend_on_settings_of_matplotlib_and_leave_them_alone():
    import matplotlib

    expected = plots.to_svg(FIGURES["sizes"]())
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "lines.linewidth": 9}):
        assert plots.to_svg(FIGURES["sizes"]()) == expected
        assert matplotlib.rcParams["font.size"] == 30


def test_figures_can_be_made_in_threads():
    expected = plots.to_svg(FIGURES["load"]())
    made = []
    workers = [threading.Thread(target=lambda: made.append(plots.to_svg(FIGURES["load"]()))) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert made == [expected] * 3


def test_importing_plots_and_report_does_not_import_what_draws():
    code = (
        "import sys, surelabel.plots, surelabel.report; assert not {'matplotlib', 'jinja2', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_missing_matplotlib_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.style", None)
    with pytest.raises(MissingDependencyError, match=r"surelabel\[plots\]"):
        plots.size_histogram([1])


def test_error_curve_draws_the_given_rates_with_diagonal_and_band():
    (axes,) = FIGURES["error"]().axes
    diagonal, curve = axes.lines
    assert diagonal.get_xdata().tolist() == diagonal.get_ydata().tolist() == [0, 1]
    assert curve.get_xdata().tolist() == LEVELS
    assert curve.get_ydata().tolist() == [0, 0.04, 0.12, 0.2]
    assert len(axes.collections) == 1
    (near,) = plots.error_curve({"a": (LEVELS, [0, 0.04, 0.12, 0.2])}, largest=0.1).axes
    assert near.lines[1].get_xdata().tolist() == [0.01, 0.05, 0.1]
    assert not near.collections


def test_size_curve_leaves_out_empty_sets():
    _, empty, _ = FIGURES["size"]().axes[0].lines
    assert empty.get_xdata().tolist() == LEVELS[:3]


def test_size_histogram_counts_texts():
    (axes,) = plots.size_histogram([0, 1, 1, 1, 2, 3, 7, 100]).axes
    assert [bar.get_height() for bar in axes.patches] == [1 / 8, 3 / 8, 2 / 8, 1 / 8, 0, 0, 0, 1 / 8]
    assert texts_of(plots.to_svg(axes.figure))[:4] == ["empty", "one", "2\N{EN DASH}3", "4\N{EN DASH}7"]
    assert "10²⁰+" in texts_of(plots.to_svg(FIGURES["sizes"]()))


def test_p_values_at_an_edge_count_as_errors_of_that_level():
    (axes,) = plots.p_value_histogram([0.05, 0.05, 0.0500001, 1.0]).axes
    heights = [bar.get_height() for bar in axes.patches[:20]]
    assert heights[:2] == [0.5, 0.25]
    assert heights[-1] == 0.25


def test_right_and_wrong_guesses_have_their_own_panels():
    right, wrong = plots.confidence_credibility([0.99, 0.9, 0.95], [0.8, 0.1, 0.5], correct=[True, False, True]).axes
    assert np.allclose(right.collections[0].get_offsets(), [[0.5, 0.95], [0.8, 0.99]])
    assert wrong.get_title(loc="left").endswith("(1)")


def test_reliability_names_the_worst_label_first():
    probabilities, labels = simulate(300)
    labels[:, 4] = True
    axes = plots.reliability(probabilities, labels, ["a", "b", "c", "d", "a name that is far too long", "f"]).axes[-1]
    assert axes.get_yticklabels()[0].get_text() == "a name that is far …"
    assert axes.lines[1].get_xdata()[0] == 300


def test_search_load_counts_as_brute_force_does():
    import itertools

    (axes,) = plots.search_load({"small": (6, 3)}, limit=None).axes
    sets = [frozenset(labels) for size in (1, 2, 3) for labels in itertools.combinations(range(6), size)]
    expected = [sum(len(labels ^ {0}) < radius for labels in sets) for radius in range(1, 6)]
    assert axes.lines[0].get_ydata().tolist() == expected
    assert axes.lines[1].get_ydata()[0] == len(sets)


def test_counts_on_axes_are_short():
    from surelabel.plots._canvas import count_text

    counts = [count_text(value) for value in (0.1, 1000, 10**16, 30_000, 3 * 10**400)]
    assert counts == ["0.1", "1,000", "10¹⁶", "30,000", "3 × 10⁴⁰⁰"]


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plots.size_histogram([]),
        lambda: plots.size_histogram([-1]),
        lambda: plots.error_curve({}),
        lambda: plots.error_curve({str(k): ([0.1], [0.1]) for k in range(7)}),
        lambda: plots.p_value_histogram([0.5, 1.5]),
        lambda: plots.p_value_histogram([]),
        lambda: plots.watch_path({"a": [np.nan]}),
        lambda: plots.confidence_credibility([0.5], [0.5, 0.6]),
        lambda: plots.reliability([[0.5]], [[1, 0]]),
    ],
)
def test_wrong_input_is_refused(draw):
    with pytest.raises(InvalidInputError):
        draw()
