"""README, pages and tables are what `make publish` writes from the committed results."""

import json
from pathlib import Path

import pytest
from publish import benchmarks
from publish.benchmarks import benchmark_tables
from publish.comparisons import comparisons_table, load_comparisons, sizes_table
from publish.figures import overview
from publish.pages import publish
from publish.statistics import corpora_table, record_statistics
from publish.summary import beside_rivals
from publish.writing import filled

from surelabel import ConformalLabelSets
from surelabel.evaluation.evaluate import evaluate
from surelabel.exceptions import InvalidInputError
from surelabel.experiments import MEASURES

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
MARK = "made by `make publish`"


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The committed results, published to a folder of their own, with copies of the pages that have marked places."""
    folder = tmp_path_factory.mktemp("published")
    copies = {}
    for number, page in enumerate(page for page in PAGES if f"{MARK} -->" in page.read_text(encoding="utf-8")):
        copies[page] = folder / f"{number}.md"
        copies[page].write_bytes(page.read_bytes())
    tables = {table.name: table for table in publish(ROOT / "results", folder, copies.values())}
    return folder, copies, tables


def test_pages_and_tables_are_made_from_the_committed_results(published):
    folder, copies, _ = published
    assert copies
    for page, copy in copies.items():
        assert copy.read_bytes() == page.read_bytes(), f"{page} is out of date: run make publish"
    tables = sorted((ROOT / "results" / "tables").glob("*"))
    assert [path.name for path in tables] == sorted(path.name for path in (folder / "tables").glob("*"))
    for path in tables:
        assert path.read_bytes() == (folder / "tables" / path.name).read_bytes(), f"{path} is out of date"


def test_figures_are_made_from_the_committed_results(published):
    figures = sorted((published[0] / "figures").glob("*.svg"))
    assert {"overview.svg", "load.svg", "reuters-linear-error.svg"} <= {path.name for path in figures}
    for path in figures:
        assert path.read_bytes() == (ROOT / "results" / "figures" / path.name).read_bytes(), f"{path} is out of date"


def test_the_guarantee_holds_on_re_splits_of_every_corpus(published):
    rows = published[2]["guarantee"].rows
    assert {row[2] for row in rows} == set(MEASURES)
    for row in rows:
        assert set(row[6].split(", ")) <= {"held", "within chance", "above"}
        # Re-splits are exchangeable: no mean is above its level by more than chance.
        mean, error = (float(part) for part in row[7].split(" ± "))
        assert mean < float(row[3]) + 4 * max(error, 1e-4)


def test_means_of_bounds_say_at_most(published):
    tables = published[2]
    for row in tables["log-loss"].rows:
        sizes = dict(zip(("L2", "L4", "L8", "LogLoss"), row[3:7], strict=True))
        bounds = {name for name, cell in sizes.items() if cell.startswith("at most ")}
        assert (row[8] == "-") == bool(bounds & {row[7], "LogLoss"})
    for row in tables["sets"].rows:
        is_bound = " to " in row[6] or row[6].startswith("about ")
        assert row[7].startswith("at most ") == row[8].startswith("at most ") == is_bound
    czech = next(row for row in tables["beside-rivals"].rows if row[0] == "debian-czech")
    assert czech[2].startswith("at most ")


def test_comparisons_are_tabulated_together():
    compared = load_comparisons(ROOT / "results" / "comparisons")
    table, sizes = comparisons_table(compared), sizes_table(compared)
    assert table.header[3:] == ("error at 0.05", *(f"mean N at {level}" for level in ("0.01", "0.05", "0.1", "0.2")))
    reuters = [row for row in table.rows if row[:2] == ("reuters20", "linear")]
    assert len(reuters) == len(next(one for one in compared if one.source == "reuters20, linear").guarantees)
    named = {row[2]: row[5] for row in reuters}
    ours = dict(zip(sizes.header, next(row for row in sizes.rows if row[0] == "reuters20"), strict=True))
    assert named["LogLoss"] == ours["LogLoss"]
    assert set(beside_rivals(compared).header) <= set(sizes.header)
    assert not comparisons_table([]).rows
    assert not sizes_table([]).rows


def test_corpora_table(tmp_path, caplog):
    path = tmp_path / "corpora.json"
    assert corpora_table(path).rows == ()
    record_statistics(["synthetic"], path)
    before = path.read_bytes()
    record_statistics(["synthetic"], path)
    assert path.read_bytes() == before
    assert corpora_table(path).rows[0][:2] == ("synthetic", "ours")
    path.write_text(before.decode().replace('"synthetic"', '"reuters"'))
    assert [row[:3] for row in corpora_table(path).rows][1] == ("reuters", "paper", "10,788")
    path.write_text("[]")
    assert corpora_table(path).rows == ()
    assert "corpora.json is skipped" in caplog.text


def test_places_of_pages_are_filled_or_refused():
    page = Path("page.md")
    text = f"# T\n<!-- speed: {MARK} -->\nold\n<!-- /speed -->\nend\n"
    after = f"# T\n<!-- speed: {MARK} -->\n\nfast\n\n<!-- /speed -->\nend\n"
    assert filled(text, {"speed": "fast"}, page) == filled(after, {"speed": "fast\n"}, page) == after
    assert filled("nothing here", {}, page) == "nothing here"
    with pytest.raises(InvalidInputError, match=r"page.md has a place for 'speed'. Places can be for sets"):
        filled(text, {"sets": ""}, page)
    with pytest.raises(InvalidInputError, match="without its end"):
        filled(text.replace("/speed", "/sped"), {"speed": ""}, page)


def test_the_overview_draws_errors_and_sizes():
    predictor = ConformalLabelSets().calibrate([[0.9, 0.2], [0.1, 0.8], [0.6, 0.7]], [[1, 0], [0, 1], [1, 1]])
    levels = ["0.3", "0.5"]
    seen = evaluate(predictor, [[0.9, 0.2], [0.4, 0.7]], [[1, 0], [1, 1]], levels=levels, demand_at="0.3")
    errors, sizes = overview({"norm": seen}, {"norm": [[0.5], [0.5, 0.6]]}, levels).axes
    assert [label.get_text() for label in errors.get_xticklabels()] == ["30 %", "50 %"]
    assert sizes.get_title() == "of 3 possible ones"


def test_classifiers_are_tabulated_by_both_rules(tmp_path):
    quality = {"accuracy": 0.8491, "f1_micro": 0.888, "f1_macro": 0.53, "hamming_loss": 0.1}
    better = {"accuracy": 0.8321, "f1_micro": 0.899, "f1_macro": 0.57, "hamming_loss": 0.1}
    common = {"corpus": "reuters", "classifier": "linear", "f1": better, "log_loss": 0.8612, "seconds": 13.4}
    sized = {"exact": quality, "mean_size_0.05": 1.79, "mean_size_0.01": 14.2, "filed": 0.791, "plain": False}
    plain = {"half": quality, "exact": better, "plain": True, "classifier": "linear+randinit", "seconds": None}
    plain |= {"joint": quality, "macro": better}
    redivided = {"resplits": {"n": 50, "mean_size_0.05": 2.5683, "mean_size_0.01": 178.9, "filed": 0.7889}}
    sized["considered_at_20_missed"] = 0.94
    rows = [{**common, **sized}, {**common, **sized, **redivided}, {**common, **plain}]
    (tmp_path / "classifiers.json").write_text(json.dumps({"rows": rows}))
    with_sets, without = benchmark_tables(tmp_path)
    quality_words = ("0.849", "0.888", "0.530", "0.832", "0.899", "0.570", "0.861")
    own = ("reuters", "linear", *quality_words, "1.79", "14.20", "79%", "0.9")
    assert with_sets.rows == ((*own, "-", "-", "-", "13"), (*own, "2.57", "179", "78.9%", "13"))
    by_three_rules = (*quality_words[:3], *quality_words[3:6], *quality_words[3:6])
    assert without.rows == (("reuters", "linear+randinit", *by_three_rules, "0.849", "0.570", "0.861"),)
    assert "the paper's rule" in with_sets.note
    assert "a probability of 0.5 or more" in without.note


def test_int8_is_tabulated_beside_its_own_run():
    waits = {"64": {"float32": 88.1, "int8": 51.5}, "192": {"float32": 187.6, "int8": 99.5}}
    figures = {"threads": 1, "max_tokens": 256, "n_texts": 300, "texts_a_second": 6.91, "same_labels": 0.9933}
    figures |= {"float32_texts_a_second": 4.3, "times_faster_than_float32": 1.61, "times_faster_than_pipeline": 2.57}
    kind, speed, comparison = benchmarks._int8_row({**figures, "one_text_milliseconds": waits})
    assert (kind, speed) == ("bert, int8", "6.91")
    assert "1.6 times faster than float32 (4.3 per second), 2.6 times faster than the pipeline" in comparison
    assert "the same labels for 99.3% of texts" in comparison
    assert comparison.endswith("one text takes 52 ms instead of 88 at 64 tokens, 100 ms instead of 188 at 192 tokens")


def test_the_watch_benchmark_is_tabulated(tmp_path):
    shares = {"orders": 10, "0.01": {"alarms": 0, "share": 0.0, "most_by_chance": 1}}
    kinds = {"random": shares, "calibration first, test shuffled": shares}
    document = {
        "source": "reuters", "n_calibration": 999, "n_test": 3019,
        "L2": {"time": {"alarm_at": 1024, "log10_peak": 57.48}, **kinds},
        "LogLoss": {"time": {"alarm_at": None, "log10_peak": 0.5}, **kinds},
    }  # fmt: skip
    (tmp_path / "watch.json").write_text(json.dumps(document))
    (table,) = benchmark_tables(tmp_path)
    assert table.rows == (("L2", "1,024", "10^57.5", "0.000", "0.000"), ("LogLoss", "none", "10^0.5", "0.000", "0.000"))
    assert "999 calibration texts" in table.note
