"""`surelabel train`: texts with labels to a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from surelabel.cli import options
from surelabel.cli.app import app, say, usage_error
from surelabel.cli.show import progress

# Settings of a model or of its parts, beside those of its classifier.
_OF_MODEL = ("min_labels", "max_labels", "max_tags", "significance", "recalibrate", "name", "constraints")
_OF_PARTS = ("filing", "calibration", "test")
_TAGGERS: dict[str | None, set[str]] = {None: set(), "annif": {"url", "project"}, "http": {"url"}}


@app.command()
def train(
    file: options.Labelled,
    *,
    out: Annotated[Path, options.option("Folder of the model.", "--out", "-o", metavar="DIR")],
    max_wrong: options.MaxWrong = None,
    max_missed: options.MaxMissed = None,
    max_false: options.MaxFalse = None,
    assurance: options.Assurance = None,
    never_file: options.NeverFile = None,
    text: options.Text = None,
    labels: options.Labels = None,
    separator: options.Separator = None,
    id_column: options.Id = None,
    split_column: Annotated[
        str | None, options.option("Column with the part: train, filing, calibration or test.", metavar="COLUMN")
    ] = None,
    encoding: options.Encoding = None,
    on_error: options.OnError = None,
    classifier: Annotated[
        str | None,
        options.option(
            "linear (a minute, no torch), hybrid, omikuji (thousands of labels), the paper's randinit, word2vec "
            "and bert, or blend [default: linear; omikuji above 1,000 labels]."
        ),
    ] = None,
    setting: Annotated[
        list[str] | None,
        options.option(
            "A setting of the classifier (epochs=3, model=minilm), or min_labels, max_labels, max_tags, "
            "significance, recalibrate, name, constraints (a JSON file, or broader: a tag needs those above it in the "
            "vocabulary), or the size of a part: filing, calibration, test.",
            metavar="NAME=VALUE",
        ),
    ] = None,
    scores: options.Scores = None,
    tagger: Annotated[
        Literal["annif", "http"] | None, options.option("Make another tagger safe instead of training one.")
    ] = None,
    url: Annotated[str | None, options.option("Address of the tagger.")] = None,
    project: Annotated[str | None, options.option("Project of Annif.", metavar="ID")] = None,
    vocabulary: Annotated[
        Path | None, options.option("SKOS vocabulary, or CSV of uri, name, alternative names, broader.", metavar="FILE")
    ] = None,
    language: Annotated[str | None, options.option("Language of the vocabulary's names.")] = None,
    measure: Annotated[
        str | None, options.option("Nonconformity measure: auto, log-loss, l1, l2, l4 or l8 [default: auto].")
    ] = None,
    best_guess: Annotated[
        Literal["exact", "f1", "macro-f1"] | None,
        options.option("Best guess: the most plausible answer, or thresholds for F1 [default: exact]."),
    ] = None,
    by: Annotated[
        str | None,
        options.option("Column of groups: prediction sets keep their level in each group.", "--by", metavar="COLUMN"),
    ] = None,
    by_cardinality: Annotated[
        bool,
        options.option("The same for texts with one, with two, and with three or more labels.", "--by-cardinality"),
    ] = False,
    examples: Annotated[bool, options.option("Keep three test texts in the model.", "--examples")] = False,
    seed: options.Seed = 0,
) -> None:
    """Train a classifier, calibrate it, measure it, and put all of it into a folder.

    Texts of the parts filing, calibration and test are never trained on. The same command resumes an interrupted
    training.

    \b
    Examples:
      surelabel train tickets.csv --text subject --text body --labels tags --out models/tickets
      surelabel train tickets.csv --labels tags --max-wrong 0.02 --out models/tickets
      surelabel train tagged.jsonl --scores scores --out models/ours
      surelabel train books.tsv --tagger annif --url http://localhost:5000 --project yso-en --out models/books
      surelabel train reuters --out models/reuters
    """
    from surelabel import models
    from surelabel.evaluation import summary
    from surelabel.labels.constraints import LabelConstraints

    if len(options.given(classifier=classifier, tagger=tagger, scores=scores)) > 1:
        raise usage_error("only one of --classifier, --tagger and --scores may be given", "--classifier")
    of_tagger = options.given(url=url, project=project)
    if set(of_tagger) != _TAGGERS[tagger]:
        raise usage_error("--tagger annif needs --url and --project, --tagger http needs --url", "--tagger")
    if language is not None and vocabulary is None:
        raise usage_error("it needs --vocabulary", "--language")
    settings = options.settings(setting)
    of_model = {name: settings.pop(name) for name in (*_OF_MODEL, *_OF_PARTS) if name in settings}
    if of_model.get("constraints", "broader") != "broader":
        of_model["constraints"] = LabelConstraints.load(of_model["constraints"])
    asked = options.given(
        max_wrong=max_wrong,
        max_missed=max_missed,
        max_false=max_false,
        assurance=assurance,
        never_file=never_file,
        classifier=tagger or classifier,
        measure=measure,
        best_guess=best_guess,
        group=by,
        cardinality=(1, 2, 3) if by_cardinality else None,
        vocabulary=vocabulary,
        language=language,
    )
    reading = options.reading(
        text=text,
        labels=labels,
        separator=separator,
        id=id_column,
        part=split_column,
        encoding=encoding,
        on_error=on_error,
        scores=scores,
    )
    own: dict[str, Any] = {"options": {**of_tagger, **settings}, "seed": seed, "examples": examples}
    with progress():
        bundle = models.train(file, out, **asked, **reading, **of_model, **own)
    for line in summary.training_lines(bundle):
        say(line)
    report = f"   Report: {out / 'report.html'}" if (out / "report.html").is_file() else ""
    say(f"Model: {out}{report}")
    say(f"Next:  surelabel predict {out} FILE")
