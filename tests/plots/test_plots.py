"""Figures: what is drawn is what was given, as SVG that stands in any page."""

import re
import subprocess
import sys
import threading
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from scipy import stats

from surelabel import ConformalLabelSets, LogLoss, LpNorm, plots
from surelabel.evaluation.compare import Comparison, ComparisonRecord
from surelabel.evaluation.evaluate import evaluate
from surelabel.exceptions import InvalidInputError, MissingDependencyError
from surelabel.plots._canvas import power_text

SVG = "{http://www.w3.org/2000/svg}"
NAMES = ["grain", "wheat", "corn", "oil", "gold", "trade"]


def simulate(n_texts, n_labels=6, seed=0):
    rng = np.random.default_rng(seed)
    probabilities = 1 / (1 + np.exp(-rng.normal(-1.5, 2.0, (n_texts, n_labels))))
    return probabilities, rng.random((n_texts, n_labels)) < probabilities


@pytest.fixture(scope="module")
def evaluations():
    given, new = simulate(400, seed=1), simulate(300, seed=2)
    measures = {"L2": LpNorm(2), "log": LogLoss()}
    predictors = {
        name: ConformalLabelSets(measure, min_labels=0).calibrate(*given) for name, measure in measures.items()
    }
    return {name: evaluate(predictor, *new) for name, predictor in predictors.items()}


def texts_of(svg):
    return [node.text for node in ET.fromstring(svg).iter(f"{SVG}text")]


def compared():
    """Two methods, one of which has only empty sets at one level."""
    records = [
        ComparisonRecord(method, level, split, 0.1 * split, size, size, None, size)
        for method, level, size in (("L2", "0.1", 3.0), ("L2", "0.2", 0.0), ("<b>", "0.1", 1e20), ("<b>", "0.2", 5.0))
        for split in (0, 1)
    ]
    return Comparison("own", 10, 10, 6, 6, {"L2": "all", "<b>": "none"}, tuple(records))


def test_comparison_draws_means_with_their_spread():
    errors, sizes = plots.comparison(compared()).axes
    assert [label.get_text() for label in errors.get_yticklabels()] == ["L2", "<b>"]
    assert errors.containers[0].lines[0].get_xdata().tolist() == [0.05, 0.05]
    assert sizes.containers[0].lines[0].get_xdata().tolist() == [3.0, 1e20]
    with pytest.raises(InvalidInputError, match="comparison draws"):
        plots.comparison(Comparison("own", 1, 1, 1, 1, {}, ()))


def figures(evaluations):
    probabilities, labels = simulate(300)
    rng = np.random.default_rng(0)
    yield "error", lambda: plots.error_curve(evaluations)
    yield "size", lambda: plots.size_curve(evaluations)
    yield "sizes", lambda: plots.size_histogram([0, 1, 1, 2, 50, 10**20])
    yield "p", lambda: plots.p_value_histogram(np.linspace(0, 1, 200), n_calibration=99)
    points = rng.random(1000), rng.random(1000), rng.random(1000) < 0.5
    yield "confidence", lambda: plots.confidence_credibility(*points)
    yield "reliability", lambda: plots.reliability(probabilities, labels, NAMES)
    yield "watch", lambda: plots.watch_path({"L2": np.linspace(-5, 9, 200), "log": [0.1, 80.0]})
    yield "comparison", lambda: plots.comparison(compared())
    yield "load", lambda: plots.search_load({"Reuters": (90, 15), "AAPD": (54, 8)})


def test_svg_is_xml_the_same_twice_and_free_of_colour_of_its_own_for_text(evaluations):
    for name, draw in figures(evaluations):
        svg = plots.to_svg(draw(), name=name, title="A <title>", description="a & b")
        root = ET.fromstring(svg)
        assert root.get("role") == "img"
        assert root.find(f"{SVG}title").text == "A <title>"
        assert root.find(f"{SVG}desc").text == "a & b"
        ids = [node.get("id") for node in root.iter() if node.get("id")]
        assert len(ids) == len(set(ids))
        assert all(each.startswith(f"{name}-") for each in ids)
        for used in re.findall(r"(?:url\(|href=\")#([^)\"]+)", svg):
            assert used in ids
        assert "currentColor" in svg
        assert "#010101" not in svg
        assert "<style" not in svg
        assert "<metadata" not in svg
        assert not re.findall(r"(?:src|href)=\"(?!#)", svg)
        assert plots.to_svg(draw(), name=name, title="A <title>", description="a & b") == svg
        assert all("$" not in (text or "") for text in texts_of(svg))


def test_figures_do_not_depend_on_settings_of_matplotlib_and_leave_them_alone():
    import matplotlib

    draw = lambda: plots.to_svg(plots.size_histogram([0, 1, 2]))  # noqa: E731
    plain = draw()
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "lines.linewidth": 9}):
        assert draw() == plain
        assert matplotlib.rcParams["font.size"] == 30
    assert "matplotlib.pyplot" not in sys.modules or not matplotlib.pyplot.get_fignums()


def test_figures_can_be_made_in_threads():
    expected = plots.to_svg(plots.search_load({"a": (10, 3)}))
    made = []
    workers = [
        threading.Thread(target=lambda: made.append(plots.to_svg(plots.search_load({"a": (10, 3)})))) for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert made == [expected] * 4


def test_importing_plots_does_not_import_matplotlib():
    code = (
        "import sys, surelabel.plots, surelabel.report; assert not {'matplotlib', 'jinja2', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_missing_matplotlib_is_said_with_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.style", None)
    with pytest.raises(MissingDependencyError, match=r"surelabel\[plots\]"):
        plots.size_histogram([1])


def test_png_is_written():
    assert plots.to_png(plots.size_histogram([1, 2]), dpi=50).startswith(b"\x89PNG")


def test_the_band_is_binomial_for_a_perfect_calibration_and_wider_for_a_real_one():
    lower, upper = plots.error_band("0.1", 500)
    assert (lower, upper) == (stats.binom.ppf(0.005, 500, 0.1) / 500, stats.binom.ppf(0.995, 500, 0.1) / 500)
    wide = plots.error_band("0.1", 500, 99)
    assert wide[0] < lower < upper < wide[1]
    assert plots.error_band("0.01", 500, 50) == (0.0, 0.0)
    with pytest.raises(InvalidInputError):
        plots.error_band("0.1", 0)


def test_the_band_holds_what_it_says():
    # Error rates of exchangeable texts: the k-th largest of n uniform scores is the threshold.
    rng = np.random.default_rng(3)
    n_calibration, n_texts, level, runs = 99, 200, 0.1, 4000
    thresholds = np.sort(rng.random((runs, n_calibration)), axis=1)[:, -10]
    errors = (rng.random((runs, n_texts)) > thresholds[:, None]).mean(axis=1)
    lower, upper = plots.error_band(level, n_texts, n_calibration)
    assert 0.985 <= np.mean((errors >= lower) & (errors <= upper)) <= 0.998
    narrow = plots.error_band(level, n_texts)
    assert np.mean((errors >= narrow[0]) & (errors <= narrow[1])) < 0.95


def test_error_curve_names_its_curves_and_draws_every_point(evaluations):
    figure = plots.error_curve(evaluations)
    names = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert names == ["by chance", "error = significance", "L2", "log"]
    drawn = {line.get_label(): line for line in figure.axes[0].get_lines()}
    assert drawn["L2"].get_ydata().tolist() == [point.error for point in evaluations["L2"].curve]
    assert (
        drawn["L2"].get_linestyle() != drawn["log"].get_linestyle()
        or drawn["L2"].get_marker() != drawn["log"].get_marker()
    )
    near = plots.error_curve(evaluations, largest=0.2)
    assert max(near.axes[0].get_lines()[1].get_xdata()) == 0.2


def test_error_curve_takes_plain_arrays_without_a_band():
    figure = plots.error_curve({"mean of seeds": ([0.1, 0.2], [0.12, 0.19])})
    assert not figure.axes[0].collections
    assert plots.error_curve({"a": ([0.1], [0.1])}, n_texts=100).axes[0].collections


def test_size_curve_leaves_out_levels_where_all_sets_are_empty():
    figure = plots.size_curve({"a": ([0.1, 0.5, 0.9], [10.0, 1.0, 0.0])})
    assert figure.axes[0].get_lines()[0].get_ydata().tolist() == [10.0, 1.0]
    assert figure.axes[0].get_yscale() == "log"


def test_size_histogram_tells_empty_and_single_apart_at_any_magnitude():
    small = texts_of(plots.to_svg(plots.size_histogram([0, 1, 1, 3])))
    assert {"empty", "one", "2\N{EN DASH}3"} <= set(small)
    assert small.count("25 %") == 2
    assert small.count("50 %") >= 1
    huge = texts_of(plots.to_svg(plots.size_histogram([10**30, 10**20, 5])))
    assert "10²⁰+" in huge
    assert "10³⁰+" in huge
    assert len(plots.size_histogram([0]).axes[0].patches) >= 2


def test_p_value_histogram_counts_bins_closed_above():
    figure = plots.p_value_histogram([0.05, 0.1, 0.1, 1.0], n_bins=10)
    heights = [bar.get_height() for bar in figure.axes[0].containers[0]]
    assert heights[0] == 0.75
    assert heights[9] == 0.25


def test_confidence_and_credibility_draw_a_point_a_text_while_they_are_few():
    few = plots.confidence_credibility([0.9, 0.8, 1.0], [0.5, 0.4, 0.1], [True, False, True])
    assert [len(axes.collections[0].get_offsets()) for axes in few.axes] == [2, 1]
    assert "(2)" in few.axes[0].get_title(loc="left")
    many = plots.confidence_credibility(np.full(5000, 0.95), np.full(5000, 0.5))
    assert len(many.axes[0].collections[0].get_offsets()) == 1
    one_sided = plots.confidence_credibility([0.9], [0.5], [True])
    assert not one_sided.axes[1].collections


def test_reliability_finds_the_label_that_is_not():
    probabilities, labels = simulate(2000)
    labels[:, 3] = np.random.default_rng(5).random(2000) < 0.9
    figure = plots.reliability(probabilities, labels, NAMES, n_worst=3)
    names = [text.get_text() for text in figure.axes[2].get_yticklabels()]
    assert len(names) == 3
    assert names[0] == "oil"
    seen = figure.axes[2].get_lines()[1].get_xdata()
    assert seen[0] == labels[:, 3].sum()


def test_names_are_text_whatever_is_in_them():
    probabilities, labels = simulate(50, n_labels=3)
    names = ["$x^2$ <b>", "price\x00\ud800", "\u4e2d\u6587" * 20]
    svg = plots.to_svg(plots.reliability(probabilities, labels, names))
    shown = texts_of(svg)
    assert "$x^2$ <b>" in shown
    assert "price\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}" in shown
    assert any(text and text.startswith("\u4e2d\u6587") and text.endswith("…") for text in shown)
    svg.encode("utf-8")
    plots.to_svg(plots.reliability(probabilities, labels, ["W" * 50, "M" * 50, "x"]))


def test_search_load_has_the_paper_s_numbers():
    figure = plots.search_load({"Reuters": (90, 15)})
    line = figure.axes[0].get_lines()[0]
    assert line.get_ydata()[2] == 4095
    assert line.get_ydata()[-1] == pytest.approx(56_799_694_075_334_047)


def test_watch_path_draws_the_capital_from_one_and_the_line_of_the_alarm():
    axes = plots.watch_path({"L2": [0.5, 1.0, 2.5]}, alpha=0.01).axes[0]
    assert axes.lines[0].get_xydata().tolist() == [[0, 0], [1, 0.5], [2, 1], [3, 2.5]]
    assert axes.lines[1].get_ydata()[0] == 2
    assert axes.yaxis.get_major_formatter()(2, 0) == "10²"
    with pytest.raises(InvalidInputError, match="watch_path"):
        plots.watch_path({"L2": []})


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plots.error_curve({}),
        lambda: plots.size_curve({str(k): ([0.1], [1.0]) for k in range(9)}),
        lambda: plots.size_histogram([]),
        lambda: plots.size_histogram([-1]),
        lambda: plots.p_value_histogram([1.2]),
        lambda: plots.p_value_histogram([]),
        lambda: plots.confidence_credibility([0.1], [0.1, 0.2]),
        lambda: plots.reliability([[0.1]], [[1], [0]]),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw):
    with pytest.raises(InvalidInputError):
        draw()


def test_one_label_one_text():
    plots.to_svg(plots.reliability([[0.3]], [[1]]))
    plots.to_svg(plots.p_value_histogram([0.5]))
    plots.to_svg(plots.search_load({"one": (1, 1)}))


def test_powers_of_ten_are_written_with_raised_digits():
    assert [power_text(exponent) for exponent in (-2, 0, 16)] == ["10⁻²", "1", "10¹⁶"]
