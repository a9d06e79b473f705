"""What the extras that are not installed would bring: asked for, each says the name of its extra.

Arguments: the folder of a model, then the extras that are installed.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import surelabel
from surelabel import corpora, plots, report, rivals, service, text
from surelabel.exceptions import MissingDependencyError

MODEL = Path(sys.argv[1])
INSTALLED = set(sys.argv[2:])
# Of other extras, by design; and the command line works beside transformers, which brings typer.
COMES_WITH = {"cli": {"corpora"}, "review": {"corpora"}, "text": {"cli", "corpora"}}


def read_table() -> object:
    Path("texts.xlsx").write_bytes(b"")
    return corpora.load("texts.xlsx")


def make_report() -> object:
    predictor = surelabel.load_bundle(MODEL).predictor
    n_labels = len(surelabel.load_bundle(MODEL).label_names)
    return report.render_report(
        report.ReportInput("A", {"L2": predictor}, [[0.5] * n_labels] * 30, [[1] + [0] * (n_labels - 1)] * 30)
    )


def run_on_workers() -> object:
    Path("new.jsonl").write_text('{"text": "wheat"}\n', encoding="utf-8")
    return surelabel.predict_dataset(MODEL, "new.jsonl", "answers", workers=1)


def run_command_line() -> None:
    ran = subprocess.run([sys.executable, "-m", "surelabel", "demo"], capture_output=True, text=True, check=False)
    assert ran.returncode == 5, ran
    raise MissingDependencyError(ran.stderr)


THINGS: dict[str, list[Callable[[], object]]] = {
    "corpora": [read_table],
    "text": [
        lambda: text.make("randinit"),
        lambda: text.make("word2vec"),
        lambda: text.make("bert"),
        lambda: text.BertClassifier,
        lambda: text.RandinitClassifier,
    ],
    "plots": [lambda: plots.to_svg(plots.search_load({"A": (9, 3)}), name="a", title="A"), make_report],
    "cli": [run_command_line],
    "service": [lambda: service.create_app, lambda: service.run],
    "review": [lambda: surelabel.review.ReviewStore],
    "distributed": [run_on_workers],
    "rivals": [lambda: rivals.RecallControl().calibrate([[0.5, 0.5]], [[1, 0]])],
}


def message_of(thing: Callable[[], object]) -> str:
    """Return the message of what needs a missing extra."""
    try:
        thing()
    except MissingDependencyError as error:
        return str(error)
    return "it works, without the extra"


def main() -> None:
    """Ask for everything that is not there."""
    there = INSTALLED.union(*(COMES_WITH.get(extra, set()) for extra in INSTALLED))
    for extra in sorted(set(THINGS) - there):
        for thing in THINGS[extra]:
            said = message_of(thing)
            assert f"pip install 'surelabel[{extra}]'" in said, f"{extra}: {said}"
    print("missing, each said with its name:", *sorted(set(THINGS) - there))


if __name__ == "__main__":
    main()
