"""`surelabel demo`: the whole journey, from texts to answers."""

from __future__ import annotations

import shutil
import sys
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import surelabel
from surelabel._core.wording import count_words
from surelabel.cli.application import console, say, state
from surelabel.cli.figures import print_evaluations, print_kinds
from surelabel.cli.options import Seed, command
from surelabel.cli.showing import progress_shown

if TYPE_CHECKING:
    import surelabel.models
    from surelabel.corpora import Part
    from surelabel.models import Bundle

_PURPOSES = {"train": "train", "validation": "choose", "calibration": "calibrate", "test": "test"}


@command()
def demo(
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the model.")] = Path("surelabel-demo"),
    offline: Annotated[bool, "Do not look for Reuters on the web."] = False,
    seed: Seed = 0,
) -> None:
    """Show the whole journey in about two minutes, without torch: train, calibrate, evaluate, decide about three texts.

    Takes the Reuters news collection if it can be fetched, otherwise a made-up corpus that needs nothing.

    \b
    Example:
      surelabel demo --out models/demo
    """
    models = surelabel.models
    models.check_target(out)
    start = time.monotonic()
    say("1. A corpus: texts with their labels")
    corpus, reason = models.demonstration_corpus(seed=seed, download=not offline)
    if reason is not None:
        say(f"   Reuters is not used: {reason}. A made-up corpus takes its place.")
    sizes = ", ".join(f"{len(rows):,} to {_PURPOSES[name]}" for name, rows in corpus.parts.items())
    say(f"   {corpus.name}: {len(corpus):,} texts, {len(corpus.label_names)} labels; {sizes}.")
    say("2. Train a linear classifier, calibrate it, measure it on the test texts")
    compared = {name: surelabel.measures.MEASURES[name] for name in ("LogLoss", "L2")}
    state.to_resume = "run the same command again to resume."
    with progress_shown():
        bundle = models.train_to_folder(corpus, out, models.TrainingSettings(compared=compared, seed=seed))
    print_evaluations(bundle.evaluation)
    test = corpus.part("test")
    probabilities = bundle.predict_proba(test.texts)
    _tell(bundle, probabilities, test, is_later=corpus.name == "reuters")
    say("5. Three texts, and what to do with them")
    for example in models.worked_examples(bundle, probabilities, test.texts):
        say(f"\n   {example.title.upper()}")
        say(_indented(textwrap.shorten(test.texts[example.row], 300, placeholder=" ..."), "   | "))
        say(_indented(example.words, "   "))
        for best in example.answer.top:
            say(f"     p = {best.p_value:.3f}  {', '.join(best.labels)}")
        say(f"   In truth: {', '.join(sorted(test.label_sets[example.row]))}.")
    say(f"\nDone in {time.monotonic() - start:.0f} seconds. The model is in {out}.")
    if bundle.report is not None:
        say(f"The report on it:       {out / 'report.html'}")
    program = _program()
    say(f"Serve it with a page:   {program} serve {out}")
    say(f"Ask it about texts:     {program} predict {out} FILE")
    say(f"Train it on your own:   {program} train FILE --text COLUMN --labels COLUMN --out DIR")


def _tell(bundle: Bundle, probabilities: Any, test: Part, *, is_later: bool) -> None:
    """Tell what the average hides, what an adapting level does, and how many texts can be filed."""
    level = bundle.level
    evaluation = next(iter((bundle.evaluation or {}).values()))
    say(f"3. What the average hides: who is missed at significance {level}")
    print_kinds(evaluation)
    seen = surelabel.models.followed(bundle, probabilities, test.labels, level)
    later = "These texts are later in time than the others. " if is_later else ""
    say(
        _indented(
            f"{later}A fixed level misses {seen.fixed:.1%} of them; {float(level):.0%} was asked for (mean size "
            f"{count_words(seen.fixed_size)}). If labels arrive after the answers and the calibration follows them "
            f"(OnlineConformal), {seen.adapting:.1%} are missed (mean size {count_words(seen.adapting_size)}).",
            "   ",
        )
    )
    say("4. What to do with texts")
    for line in bundle.info.verdict["words"]:
        say(_indented(line, "   "))
    verdicts = [answer.decision for answer in bundle.answers(test.texts, top=0, probabilities=probabilities)]
    counts = ", ".join(f"{name} {verdicts.count(name) / len(verdicts):.0%}" for name in ("file", "choose", "read"))
    say(f"   On the {len(verdicts):,} test texts: {counts}.")


def _program() -> str:
    """Return what to type for this program: its name if the shell finds it, else its path."""
    own, in_path = Path(sys.argv[0]), shutil.which("surelabel")
    is_script = own.name == "surelabel" and own.is_file()
    return str(own) if is_script and (in_path is None or not own.samefile(in_path)) else "surelabel"


def _indented(text: str, before: str) -> str:
    """Wrap a paragraph to the terminal, each line with something before it."""
    width = min(console.width, 110) if console.is_terminal else 100
    return textwrap.fill(" ".join(text.split()), width, initial_indent=before, subsequent_indent=before)
