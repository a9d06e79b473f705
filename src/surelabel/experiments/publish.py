"""Tables, figures and README's part of them, from result files alone: the same files give the same bytes."""

from __future__ import annotations

from pathlib import Path

from surelabel import plots
from surelabel._storage import atomic_file
from surelabel.evaluation import Evaluation
from surelabel.exceptions import InvalidInputError
from surelabel.experiments.benchmark_tables import benchmark_tables
from surelabel.experiments.compare import comparisons_table, load_comparisons, sizes_table
from surelabel.experiments.findings import guarantee, log_loss_against_norms
from surelabel.experiments.run import N_RESPLITS
from surelabel.experiments.statistics import corpora_table
from surelabel.experiments.tables import Result, Table, all_tables, load_results

__all__ = ["publish", "readme_part"]

_BEGIN, _END = "<!-- figures: made by `surelabel reproduce --publish` -->", "<!-- /figures -->"
# Visible on white and on black, where a page gives a picture no colour of its own.
_INK = "#777777"


def _write(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _evaluations(result: Result) -> dict[str, Evaluation]:
    """Return a run's evaluations by measure."""
    return {name: Evaluation.from_dict(values) for name, values in result["evaluations"].items()}


def _figures(results: list[Result], folder: Path) -> list[str]:
    """Draw error rate and N criterion against significance for the first seed of each conformal run; return names."""
    names = []
    for result in results:
        run = result["run"]
        if not run["conformal"] or run["seed"] != 0:
            continue
        evaluations = _evaluations(result)
        name = f"{run['corpus']}-{run['classifier']}"
        title = f"{run['corpus']}, {run['classifier']}"
        drawn = {
            "error": plots.error_curve(evaluations),
            "size": plots.size_curve(evaluations),
        }
        for kind, figure in drawn.items():
            svg = plots.to_svg(figure, name=f"{name}-{kind}", title=f"{title}: {kind} against significance", ink=_INK)
            _write(folder / f"{name}-{kind}.svg", svg + "\n")
        names.append(name)
    shapes = {
        result["run"]["corpus"]: (result["n_labels"], result["max_labels"])
        for result in results
        if result["run"]["conformal"]
    }
    if shapes:
        svg = plots.to_svg(plots.search_load(shapes), name="load", title="Label-sets considered against t", ink=_INK)
        _write(folder / "load.svg", svg + "\n")
    return names


def _only(table: Table, **wanted: str) -> Table:
    """Return the rows of a table with these values in these columns."""
    places = {table.header.index(column): value for column, value in wanted.items()}
    rows = tuple(row for row in table.rows if all(row[place] == value for place, value in places.items()))
    return Table(table.name, table.title, table.header, rows, table.note)


def readme_part(tables: list[Table], figures: list[str]) -> str:
    """Return README's section of figures: the classifiers, the sets at 5 %, and two figures."""
    by_name = {table.name: table for table in tables}
    lines = ["## What was measured", ""]
    if "without-icp" in by_name:
        lines += ["Classifiers without conformal prediction, on the test parts, beside the paper's figures:", ""]
        lines += [by_name["without-icp"].to_markdown(), ""]
    if "sets" in by_name:
        lines += [
            "Prediction sets at significance 0.05. *Own test* is the corpus' own test part, which for Reuters is later",
            f"in time than what the classifier and the calibration saw; *re-splits* are {N_RESPLITS} random re-splits",
            "of calibration and test texts (mean ± standard deviation; N over the first ten), for which the guarantee",
            "is meant:",
            "",
            _only(by_name["sets"], significance="0.05").to_markdown(),
            "",
        ]
    if "comparisons-at-0.05" in by_name:
        sizes = by_name["comparisons-at-0.05"]
        lines += [f"{sizes.title}, measures and rivals side by side. {sizes.note}", "", sizes.to_markdown(), ""]
    if "engine" in by_name:
        lines += [f"The exact search beside the paper's. {by_name['engine'].note}", ""]
        lines += [by_name["engine"].to_markdown(), ""]
    if "lean-ball" in by_name:
        lines += [by_name["lean-ball"].note, "", by_name["lean-ball"].to_markdown(), ""]
    if "watch" in by_name:
        lines += [f"The exchangeability watch. {by_name['watch'].note}", "", by_name["watch"].to_markdown(), ""]
    if "text" in by_name:
        lines += [f"The text classifiers. {by_name['text'].note}", "", by_name["text"].to_markdown(), ""]
    for name in [name for name in figures if name.startswith("reuters-")][:1] or figures[:1]:
        lines += [
            f"![error rate against significance, {name}](results/figures/{name}-error.svg)",
            f"![number of label-sets against significance, {name}](results/figures/{name}-size.svg)",
            "",
        ]
    lines += ["All tables: `results/tables/`; what they are made from: `results/runs/`.", ""]
    return "\n".join(lines)


def publish(runs: Path, out: Path, readme: Path | None = None) -> list[Table]:
    """Build all tables and figures from the result files in `runs`; put the main ones into a README where given."""
    results = load_results(runs)
    compared = load_comparisons(runs.parent / "comparisons")
    found = [guarantee(results), log_loss_against_norms(results), comparisons_table(compared), sizes_table(compared)]
    tables = [corpora_table(runs.parent / "corpora.json"), *all_tables(results), *found]
    tables = [table for table in tables if table.rows] + benchmark_tables(runs.parent)
    for table in tables:
        note = f"\n{table.note}\n" if table.note else ""
        _write(out / "tables" / f"{table.name}.md", f"# {table.title}\n\n{table.to_markdown()}\n{note}")
        _write(out / "tables" / f"{table.name}.csv", table.to_csv())
    figures = _figures(results, out / "figures")
    if readme is not None:
        text = readme.read_text(encoding="utf-8")
        if _BEGIN not in text or _END not in text:
            raise InvalidInputError(f"{readme} must hold the lines {_BEGIN!r} and {_END!r} for figures to go between.")
        before, after = text.split(_BEGIN, 1)[0], text.split(_END, 1)[1]
        _write(readme, f"{before}{_BEGIN}\n\n{readme_part(tables, figures)}\n{_END}{after}")
    return tables
