"""`surelabel watch`: whether texts are like those of calibration, and a level that follows the errors seen."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import surelabel
from surelabel._core.progress import step
from surelabel._core.storage import atomic_file
from surelabel.cli.application import ALARM, say
from surelabel.cli.options import AdaptSignificance, CorpusName, Json, ModelFolder, PartsSeed, Reading, command, is_file
from surelabel.cli.showing import print_json, progress_shown
from surelabel.tables.texts import InputColumns
from surelabel.tables.writing import to_json

if TYPE_CHECKING:
    import surelabel.models
    import surelabel.predicting
    from surelabel.corpora.tabular import Event
    from surelabel.guarantees.watch import WatchState
    from surelabel.models import Bundle
    from surelabel.models.watching import Answered, StreamSummary


@command()
def watch(
    folder: ModelFolder,
    corpus: CorpusName,
    *,
    alpha: Annotated[str, "Bound of the probability of a false alarm, ever."] = "0.01",
    unlabelled: Annotated[bool, "Watch best guesses, which need no labels."] = False,
    adapt: Annotated[
        Literal["aci", "dtaci", "window", "nexcp"] | None,
        "Let the level, or the calibration, follow the errors seen; see docs/promises.md.",
    ] = None,
    significance: AdaptSignificance = None,
    state: Annotated[Path | None, "File to resume a watch from and to save it to; made if there is none."] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="With --adapt: a .jsonl file of each text's level and size.")
    ] = None,
    plot: Annotated[Path | None, "Draw the capital against texts into this SVG file."] = None,
    part: Annotated[str | None, "Part to watch, or all [default: test; all of a new file]."] = None,
    reading: Reading,
    seed: PartsSeed = None,
    as_json: Json = False,
) -> None:
    """Watch whether texts, in their order, are like those that a model was calibrated on.

    If they are, an alarm is raised with probability alpha at most, however many texts there are. An alarm ends the
    command with exit code 7.

    With --adapt the level follows the errors seen, so that the share of errors stays as asked for although texts
    change. A row with an empty label cell is a text that waits for its labels; a row without text has the labels of an
    earlier text with its id. Rows that were taken before are left out, so a stream can restart.

    \b
    Examples:
      surelabel watch models/reuters reuters --plot watch.svg
      surelabel watch models/tickets tickets-of-june.csv --text body --labels tags --state watch.json
      surelabel watch models/tickets new-tickets.csv --text body --unlabelled
      surelabel watch models/tickets stream.csv --text body --labels tags --adapt aci --state stream.npz
    """
    _check_options(adapt, unlabelled, significance, out, plot, part)
    with progress_shown(), step("starting"):
        models = surelabel.models
        bundle = models.load_bundle(folder)
        if adapt is not None:
            events = _events(bundle, corpus, reading, seed)
            more: dict[str, Any] = {"significance": significance or "0.05", "alpha": alpha, "state": state}
            with _written(out) as told:
                stream = models.adapt_bundle(bundle, events, method=adapt, told=told, **more)
        elif unlabelled:
            seen = models.watch_unlabelled(
                bundle, _texts(bundle, corpus, reading, seed, part), alpha=alpha, state=state
            )
        else:
            texts = reading.load(corpus, seed, bundle, columns=[bundle.info.group_column])
            seen = models.watch_bundle(bundle, texts, part=part, alpha=alpha, state=state)
    if adapt is not None:
        _say_stream(stream, out, as_json=as_json)
        raise typer.Exit(ALARM if stream.outcomes.watch.state.alarm else 0)
    if plot is not None:
        figure = surelabel.plots.watch_path({bundle.info.measure: seen.path}, alpha=float(alpha))
        svg = surelabel.plots.to_svg(figure, title="Exchangeability watch", ink="black")
        with atomic_file(plot) as temporary:
            temporary.write_text(svg, encoding="utf-8")
    if as_json:
        print_json({**_watched(seen), "path": seen.path.tolist()})
    else:
        say(_alarm_words(seen))
    if seen.alarm:
        raise typer.Exit(ALARM)


def _check_options(
    adapt: str | None, unlabelled: bool, significance: str | None, out: Path | None, plot: Path | None, part: str | None
) -> None:
    """Raise if options do not go together."""
    if adapt is not None and unlabelled:
        raise typer.BadParameter("a level follows errors, which need labels", param_hint="--unlabelled")
    needs, excludes = {"--significance": significance, "--out": out}, {"--plot": plot, "--part": part}
    problem = "it needs --adapt" if adapt is None else "it cannot go with --adapt"
    for option, value in (needs if adapt is None else excludes).items():
        if value is not None:
            raise typer.BadParameter(problem, param_hint=option)


def _texts(bundle: Bundle, corpus: str, reading: Reading, seed: int | None, part: str | None) -> Iterator[list[str]]:
    """Yield texts without their labels: those of a file, or of a part of a known corpus."""
    if not is_file(corpus):
        texts = reading.load(corpus, seed, bundle)
        yield list(surelabel.models.held_out_part(bundle, texts, "test", part).texts)
        return
    if part is not None:
        raise typer.BadParameter("all texts of a file are watched without labels", param_hint="--part")
    columns = InputColumns(tuple(reading.text or ("text",)), reading.id_column, reading.encoding)
    for batch in surelabel.predicting.TextSource(corpus, columns).batches(on_error=reading.on_error):
        yield batch.texts


def _events(bundle: Bundle, corpus: str, reading: Reading, seed: int | None) -> Iterator[Event]:
    """Return a stream: the rows of a file, or the test part of a known corpus."""
    column = bundle.info.group_column if bundle.groups is not None else None
    if is_file(corpus):
        return reading.events(corpus, column)
    part = surelabel.models.held_out_part(bundle, reading.load(corpus, seed, bundle), "test")
    return surelabel.models.events_of(part, column)


@contextlib.contextmanager
def _written(out: Path | None) -> Iterator[Callable[[Answered], None] | None]:
    """Yield what writes each answer to a file, which is whole or not there."""
    if out is None:
        yield None
        return
    with atomic_file(out) as temporary, temporary.open("w", encoding="utf-8") as stream:
        yield lambda answered: print(to_json(dataclasses.asdict(answered)), file=stream)


def _watched(seen: WatchState) -> dict[str, Any]:
    """Return what a watch knows, for JSON."""
    return {name: getattr(seen, name) for name in ("n_seen", "log10_martingale", "log10_peak", "alarm", "alarm_at")}


def _alarm_words(seen: WatchState) -> str:
    """Say whether there was an alarm."""
    if seen.alarm:
        return (
            f"ALARM at text {seen.alarm_at:,} of {seen.n_seen:,}: the texts are not exchangeable with those of "
            "calibration, or not with each other. The guarantee does not hold for them as it is stated; calibrate "
            "again with recent texts (surelabel calibrate), or let the level follow (surelabel watch --adapt aci)."
        )
    return f"No alarm after {seen.n_seen:,} texts (capital 10^{seen.log10_martingale:.1f}). That is no proof."


def _say_stream(stream: StreamSummary, out: Path | None, *, as_json: bool) -> None:
    """Say what a stream came to."""
    outcomes = stream.outcomes
    online = outcomes.online
    assert online is not None
    if as_json:
        counted = {"n_texts": stream.n_texts, "n_outcomes": stream.n_outcomes, "n_known": stream.n_known}
        known = {
            "method": online.method,
            "significance": online.significance,
            "level": online.level_,
            "levels": online.levels_,
            "error_rates": online.error_rates_,
            "n_settled": outcomes.n_settled_,
            "n_missed": outcomes.n_missed_,
            "n_missed_without_adapting": outcomes.n_fixed_missed_,
            "n_waiting": outcomes.n_pending_,
        }
        print_json({**counted, **known, "watch": _watched(outcomes.watch.state)})
        return
    known_words = f" {stream.n_known:,} rows were taken before." if stream.n_known else ""
    say(
        f"{stream.n_texts:,} texts answered, {stream.n_outcomes:,} label-sets taken, {outcomes.n_pending_:,} texts "
        f"wait for theirs.{known_words}"
    )
    if outcomes.n_settled_:
        fixed = outcomes.n_fixed_missed_ / outcomes.n_settled_
        say(
            f"Asked for {online.significance:.1%} errors: {outcomes.error_rate_:.1%} of {outcomes.n_settled_:,} "
            f"settled texts were missed; a level that does not follow would have missed {fixed:.1%}."
            + (f" The level is now {online.level_:.4f} ({online.method})." if len(online.levels_) == 1 else "")
        )
        rates = online.error_rates_
        for name, level in online.levels_.items() if len(online.levels_) > 1 else ():
            missed = f"{rates[name]:.1%} missed" if name in rates else "no outcome yet"
            say(f"  {name}: {missed}, level now {level:.4f} ({online.method})")
    if outcomes.watch.state.alarm:
        say(
            f"ALARM at settled text {outcomes.watch.state.alarm_at:,}: the texts are not like those of calibration. "
            "The level follows; calibrate again with recent texts for smaller sets."
        )
    if out is not None:
        say(f"Levels and sizes are in {out}.")
