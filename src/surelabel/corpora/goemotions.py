"""GoEmotions: short texts with emotions, in its own three parts."""

from __future__ import annotations

from pathlib import Path

from surelabel.corpora.corpus import Corpus
from surelabel.corpora.download import as_path, provenance_of, read_lines
from surelabel.exceptions import CorpusError

_WORDS = (
    "admiration amusement anger annoyance approval caring confusion curiosity desire disappointment disapproval "
    "disgust embarrassment excitement fear gratitude grief joy love nervousness optimism pride realization relief "
    "remorse sadness surprise neutral"
)
_NAMES = _WORDS.split()
_EMOTIONS = {str(number): name for number, name in enumerate(_NAMES)}
_FILES = {"train": "train.tsv", "validation": "dev.tsv", "test": "test.tsv"}


def read_goemotions(path: str | Path) -> Corpus:
    """Read GoEmotions from a folder with train.tsv, dev.tsv and test.tsv; these parts are kept.

    A line is a text, label numbers separated by commas, and an id, with tabs between.
    """
    folder = as_path(path)
    files = {part: folder / name for part, name in _FILES.items() if (folder / name).exists()}
    if not files:
        raise CorpusError(f"GoEmotions must be a folder with {', '.join(_FILES.values())}. {folder.name!r} has none.")
    source = provenance_of(
        list(files.values()), "its own parts; text, label numbers, id", "Apache 2.0, Google Research"
    )
    return Corpus.from_parts("goemotions", {part: _records(file) for part, file in files.items()}, _NAMES, source)


def _records(file: Path) -> list[tuple[str, str, list[str]]]:
    """Return id, text and labels of each line; quotes have no meaning in it."""
    records = []
    for place, line in read_lines(file):
        try:
            text, numbers, identity = line.split("\t")
            records.append((identity.strip(), text, [_EMOTIONS[number] for number in numbers.split(",")]))
        except (ValueError, KeyError) as error:
            expected = f"must be a text, label numbers up to {len(_EMOTIONS) - 1} and an id, between tabs"
            raise CorpusError(f"{place} {expected}. Got an error: {error}.") from error
    return records
