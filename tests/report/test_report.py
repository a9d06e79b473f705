"""The report: it says what is so, in a file that stands alone."""

import dataclasses
import re
import sys
import warnings
from html.parser import HTMLParser

import numpy as np
import pytest

from surelabel import ConformalLabelSets, LogLoss, LpNorm
from surelabel.evaluation.evaluate import evaluate
from surelabel.exceptions import InvalidInputError, MissingDependencyError
from surelabel.report import ReportInput, build_content, render_report, write_report
from surelabel.report.render import bounds, level, number, percent

NAMES = [f"topic-{k}" for k in range(8)]
VOID = {"meta", "br"}


def simulate(n_texts, seed, n_labels=8, flipped=0.0):
    rng = np.random.default_rng(seed)
    probabilities = 1 / (1 + np.exp(-rng.normal(-2.0, 2.5, (n_texts, n_labels))))
    labels = rng.random((n_texts, n_labels)) < probabilities
    return probabilities, labels ^ (rng.random(labels.shape) < flipped)


def given(*, n_texts=300, n_calibration=300, flipped=0.0, measures=None, seed=1, **changes):
    measures = measures or {"L2": LpNorm(2)}
    calibration = simulate(n_calibration, seed)
    predictors = {
        name: ConformalLabelSets(measure, min_labels=0, label_names=NAMES).calibrate(*calibration)
        for name, measure in measures.items()
    }
    probabilities, labels = simulate(n_texts, seed + 1, flipped=flipped)
    texts = [f"text number {i}" for i in range(n_texts)]
    return dataclasses.replace(ReportInput("A model", predictors, probabilities, labels, texts=texts), **changes)


class Page(HTMLParser):
    """Open and close tags in order; what stands where."""

    def __init__(self, page):
        super().__init__()
        self.stack, self.ids, self.tags, self.words, self.links = [], [], [], [], []
        self.feed(page)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        for key, value in attributes:
            if key == "id":
                self.ids.append(value)
            if key in ("href", "src", "xlink:href"):
                self.links.append(value)
            assert not key.startswith("on")
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.stack.pop()

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if "style" not in self.stack:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def full():
    texts = [f"text number {i}" for i in range(300)]
    texts[5] = "seen before"
    report = given(
        measures={"L2": LpNorm(2), "log": LogLoss()},
        texts=texts,
        settings={"classifier": "linear", "features": {"lowercase": True, "n-grams": [1, 2]}},
        provenance={"fingerprint": "0123abcd", "checksum": None},
        other_texts={"training": ["Seen  before"], "calibration": ["something else"]},
        warnings=["The corpus is a stand-in."],
    )
    return report, render_report(report)


def test_the_page_is_well_formed_and_stands_alone(full):
    page = Page(full[1])
    assert len(page.ids) == len(set(page.ids))
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    assert not {"script", "img", "iframe", "link", "object"} & set(page.tags)
    assert "@import" not in full[1]
    assert set(re.findall(r"https?://[^\"' ]+", full[1])) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    assert page.tags.count("h1") == 1
    assert page.tags.count("svg") == 7
    assert "<h3>S and OF criteria" not in full[1]
    assert page.tags.count("table") == page.tags.count("caption")
    assert "prefers-color-scheme: dark" in full[1]
    assert "@media print" in full[1]


def test_the_same_input_gives_the_same_bytes_on_disk(full, tmp_path):
    for name in ("a.html", "b.html"):
        write_report(tmp_path / name, full[0])
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes() == full[1].encode()


def test_settings_provenance_and_warnings_are_shown(full):
    text = Page(full[1]).text
    for shown in ("features: lowercase", "1, 2", "0123abcd", "The corpus is a stand-in.", "LpNorm(p=2", "Glossary"):
        assert shown in text
    assert "1 of the 300 texts of this report (0.33 %) are also among the training texts" in text
    assert "among the calibration texts" not in text


def test_numbers_are_those_of_the_evaluation(full):
    report, page = full
    content = build_content(report)
    evaluation = evaluate(report.predictors["log"], report.probabilities, report.labels)
    assert content.measures[1].evaluation.at("0.05") == evaluation.at("0.05")
    text = Page(page).text.replace("\N{NO-BREAK SPACE}", " ")
    assert f"{evaluation.forced.f1_macro:.3f}" in text
    assert f"{100 * evaluation.at('0.1').error:.1f} %" in text
    assert content.measures[1].seconds is None


def test_given_evaluations_are_used_and_computed_ones_agree():
    report = given(n_texts=60)
    evaluation = evaluate(report.predictors["L2"], report.probabilities, report.labels)
    content = build_content(dataclasses.replace(report, evaluations={"L2": evaluation}))
    assert content.main.evaluation is evaluation
    assert content.main.seconds == evaluation.demand.exact_seconds
    page = render_report(dataclasses.replace(report, evaluations={"L2": evaluation}))
    assert "<h3>S and OF criteria" in page
    assert "What it takes to compute" in page
    assert [row.error for row in content.main.rows] == [row.error for row in build_content(report).main.rows]


def test_the_guarantee_held_for_exchangeable_texts():
    content = build_content(given(n_texts=500, n_calibration=500))
    assert content.main.verdict in ("held", "chance")
    assert "The promise is kept" in render_report(given())


def test_the_guarantee_did_not_hold_for_texts_labelled_by_other_rules():
    report = given(flipped=0.15)
    content = build_content(report)
    assert content.main.verdict == "above"
    assert [row.verdict for row in content.main.rows] == ["above"] * 4
    page = render_report(report)
    assert "The promise is broken" in page
    assert "not like the calibration texts" in page
    assert "The promise is kept" not in page


def test_verdicts_seldom_accuse_where_texts_are_exchangeable():
    found = []
    for seed in range(20):
        report = given(seed=10 * seed, n_texts=200, n_calibration=200)
        predictor = report.predictors["L2"]
        evaluation = evaluate(predictor, report.probabilities, report.labels, levels=["0.05", "0.1", "0.2"])
        found.append(build_content(dataclasses.replace(report, evaluations={"L2": evaluation})).main.verdict)
    assert found.count("above") <= 2


def test_texts_and_names_are_shown_as_text_whatever_is_in_them():
    evil = "<script>alert(1)</script>\x00\ud800 & \u202e"
    names = ["<img src=x onerror=alert(1)>", *NAMES[1:]]
    probabilities, labels = simulate(120, 5)
    predictor = ConformalLabelSets(min_labels=0, label_names=names).calibrate(*simulate(200, 4))
    report = ReportInput(
        evil,
        {f"L2{evil}": predictor},
        probabilities,
        labels,
        texts=[evil] * 120,
        settings={evil: evil},
        provenance={evil: [evil]},
        other_texts={evil: [evil]},
        warnings=[evil],
    )
    page = render_report(report)
    parsed = Page(page)
    assert not {"script", "img"} & set(parsed.tags)
    assert "<script>alert(1)</script>" in parsed.text
    assert "<img src=x onerror=alert(1)>" in parsed.text
    page.encode("utf-8")
    assert "\x00" not in page


def test_largest_and_empty_sets_are_listed():
    report = given(significance="0.5", n_examples=3)
    content = build_content(report)
    sets = report.predictors["L2"].predict_set(report.probabilities, significance="0.5")
    sizes = sets.sizes()
    assert [example.size[1] for example in content.largest] == [
        size for size in sorted(sizes.tolist())[:-4:-1] if size > 1
    ]
    assert content.n_empty == int((sizes == 0).sum()) > 0
    first = content.largest[0]
    largest = sets[first.row - 1]
    assert set(first.certain.shown) == largest.certain
    assert set(first.open.shown) == largest.possible - largest.certain
    assert first.description == str(largest.describe())
    assert first.excerpt == f"text number {first.row - 1}"
    assert all(example.size == (0, 0) and not example.covered for example in content.empty)


def test_doubt_is_counted_over_the_texts_that_have_the_label():
    report = given(n_texts=80, significance="0.1")
    content = build_content(report)
    sets = report.predictors["L2"].predict_set(report.probabilities, significance="0.1")
    for label in content.doubts:
        k = NAMES.index(label.name)
        having = [one for one, row in zip(sets, report.labels, strict=True) if row[k]]
        assert label.true == len(having) >= 5
        assert label.certain == pytest.approx(np.mean([label.name in one.certain for one in having]))
        assert label.open == pytest.approx(np.mean([label.name in one.open for one in having]))
        assert label.certain + label.open + label.excluded == pytest.approx(1)
    assert [label.certain for label in content.doubts] == sorted(label.certain for label in content.doubts)


def test_labels_that_are_open_everywhere_are_ordered_by_recall_not_by_name():
    rng = np.random.default_rng(0)
    probabilities = rng.uniform(0.35, 0.6, size=(120, 8))
    labels = rng.random((120, 8)) < 0.5
    predictor = ConformalLabelSets(min_labels=0, label_names=NAMES).calibrate(probabilities, labels)
    doubts = build_content(ReportInput("Open", {"L2": predictor}, probabilities, labels)).doubts
    recalls = [label.recall for label in doubts if label.certain == 0]
    assert len(recalls) > 3
    assert recalls == sorted(recalls)


def test_the_verdict_comes_first_with_who_is_missed_and_the_date():
    report = given(flipped=0.15, verdict=["Nothing can be filed at 5 % wrong."], date="2026-11-16")
    page = Page(render_report(report))
    text = page.text.replace("\N{NO-BREAK SPACE}", " ")
    assert text.index("The promise is broken") < text.index("Nothing can be filed") < text.index("Guarantee and sizes")
    assert "2026-11-16. Measured on 300 texts" in text
    assert "What to do:" in text
    kept = Page(render_report(given(n_texts=500, n_calibration=500))).text
    assert "The promise is kept" in kept
    assert "The promise is broken" not in kept


def test_sure_but_wrong_texts_are_named_by_their_ids():
    ids = [f"ticket-{i}" for i in range(300)]
    report = given(significance="0.2", ids=ids, flipped=0.02)
    content = build_content(report)
    figures = content.conditional
    sets = report.predictors["L2"].predict_set(report.probabilities, significance=figures.significance)
    single = sets.sizes() == 1
    wrong = single & ~sets.contains(report.labels)
    assert (figures.n_sure, figures.n_sure_wrong) == (int(single.sum()), int(wrong.sum()))
    assert {text.id for text in figures.sure_but_wrong} == {ids[row] for row in np.flatnonzero(wrong)[:50]}
    assert all(example.id in render_report(report) for example in content.sure_but_wrong)


def test_without_texts_rows_are_numbered():
    page = render_report(given(texts=None))
    assert "The texts themselves were not given" in page
    assert "<blockquote>" not in page


def test_one_label_and_one_text():
    predictor = ConformalLabelSets(min_labels=0).calibrate(*simulate(50, 1, n_labels=1))
    page = render_report(ReportInput("One", {"L2": predictor}, [[0.7]], [[1]]))
    assert "label 0" in page or "No label is in doubt" in page


def test_huge_sizes_are_readable():
    rng = np.random.default_rng(0)
    probabilities = np.full((40, 70), 0.5)
    labels = rng.random((40, 70)) < 0.5
    predictor = ConformalLabelSets().calibrate(probabilities, labels)
    new = probabilities[:2], labels[:2]
    evaluation = evaluate(predictor, *new, levels=["0.1"])
    page = render_report(
        ReportInput("Coins", {"L2": predictor}, *new, evaluations={"L2": evaluation}, significance="0.1")
    )
    assert "1.2&nbsp;&times;&nbsp;10<sup>21</sup> label-sets" in page
    assert "e+" not in re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)


def test_too_few_calibration_texts_are_said_not_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = given(n_calibration=15)
        content = build_content(report)
        page = render_report(report)
    assert [row.verdict for row in content.main.rows][:2] == ["unknown", "unknown"]
    assert "15 calibration texts are too few for significance 0.05; 20 or more are needed" in page
    assert "not measured" in page


def test_a_level_off_the_grid_is_measured_too():
    content = build_content(given(significance="0.125"))
    assert [row.significance for row in content.main.rows] == ["0.01", "0.05", "0.1", "0.125", "0.2"]
    assert content.chosen.significance == "0.125"
    assert content.chosen.error is not None


def test_labels_outside_the_candidates_are_said():
    report = given()
    predictor = ConformalLabelSets(min_labels=1, label_names=NAMES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predictor.calibrate(*simulate(300, 1))
    content = build_content(dataclasses.replace(report, predictors={"L2": predictor}))
    assert any("that no prediction set can hold" in warning for warning in content.warnings)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"predictors": {}}, "at least one predictor"),
        ({"texts": ["one"]}, "as many as its rows"),
        ({"label_names": list("abcdefgh")}, "not named as"),
        ({"significance": "1.5"}, "significance"),
        ({"labels": np.zeros((2, 8))}, "labels"),
    ],
)
def test_input_that_does_not_fit_is_refused(changes, message):
    with pytest.raises(InvalidInputError, match=message):
        build_content(given(n_texts=20, **changes))


def test_evaluations_of_other_texts_or_predictors_are_refused():
    report = given(n_texts=30)
    other = evaluate(report.predictors["L2"], report.probabilities[:10], report.labels[:10], levels=["0.1"])
    with pytest.raises(InvalidInputError, match="same texts"):
        build_content(dataclasses.replace(report, evaluations={"L2": other}))
    with pytest.raises(InvalidInputError, match="of its predictors"):
        build_content(dataclasses.replace(report, evaluations={"L4": other}))


def test_an_error_leaves_the_old_file(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(InvalidInputError):
        write_report(path, given(n_texts=20, texts=[]))
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_jinja2_is_said_with_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingDependencyError, match=r"surelabel\[plots\]"):
        render_report(given(n_texts=20))


def test_numbers_are_written_to_be_read():
    assert number(56_799_694_075_334_047) == "5.7&nbsp;&times;&nbsp;10<sup>16</sup>"
    assert number(None) == percent(None) == "\N{EN DASH}"
    assert number(10**400) == "1.0&nbsp;&times;&nbsp;10<sup>400</sup>"
    assert number(2.5e-7) == "2.5&nbsp;&times;&nbsp;10<sup>\N{MINUS SIGN}7</sup>"
    assert [number(each) for each in (0, 1234, 1234.5, 2.345, 0.0, 90.0)] == ["0", "1,234", "1,234", "2.35", "0", "90"]
    assert bounds((3, 3)) == "3"
    assert bounds((3013.0, 3020.0)) == "3,013 to 3,020"
    assert bounds((2.0001, 2.0002)) == "about 2.00"
    assert [percent(each).replace("\N{NO-BREAK SPACE}", " ") for each in (0.05, 0.0, 0.0003, 1)] == [
        "5.0 %",
        "0.0 %",
        "0.03 %",
        "100.0 %",
    ]
    assert level("0.125").replace("\N{NO-BREAK SPACE}", " ") == "12.5 %"


@pytest.mark.parametrize("flipped", [0.0, 0.2])
def test_texts_in_order_are_watched(flipped):
    told = given(flipped=flipped, in_order=True)
    content = build_content(told)
    assert content.watch.n_seen == 300
    assert content.watch.alarm == (flipped > 0)
    page = render_report(told)
    assert 'id="figure-watch-title"' in page
    assert ("✗ Alarm at text" in page) == (flipped > 0)
    assert ("✓ No alarm after 300 texts" in page) == (flipped == 0)
    Page(page)


def test_texts_without_order_are_not_watched():
    assert build_content(given()).watch is None
    assert "figure-watch" not in render_report(given())
