"""GoEmotions: short texts with emotions, in its own three parts."""

from __future__ import annotations

from pathlib import Path

from surelabel.corpora.corpus import Corpus
from surelabel.corpora.download import as_path, provenance_of, read_text
from surelabel.exceptions import CorpusError

_EMOTIONS = (
    "admiration amusement anger annoyance approval caring confusion curiosity desire disappointment disapproval "
    "disgust embarrassment excitement fear gratitude grief joy love nervousness optimism pride realization relief "
    "remorse sadness surprise neutral"
)
EMOTIONS = tuple(_EMOTIONS.split())
_FILES = {"train": "train.tsv", "validation": "dev.tsv", "test": "test.tsv"}


def read_goemotions(path: str | Path) -> Corpus:
    """Read GoEmotions from a folder with train.tsv, dev.tsv and test.tsv; these parts are kept.

    A line is a text, label numbers separated by commas, and an id, with tabs between. Label names come from
    ``labels.txt`` or ``emotions.txt``, otherwise they are the 28 published ones.
    """
    folder = as_path(path)
    files = {part: folder / name for part, name in _FILES.items() if (folder / name).exists()}
    if not files:
        raise CorpusError(f"GoEmotions must be a folder with {', '.join(_FILES.values())}. {folder.name!r} has none.")
    listed = next((folder / name for name in ("labels.txt", "emotions.txt") if (folder / name).exists()), None)
    names = list(EMOTIONS) if listed is None else read_text(listed).split()
    parts = {
        part: [
            _parsed(line, names, f"Line {number} of {file.name!r}")
            for number, line in enumerate(read_text(file).removesuffix("\n").split("\n"), 1)
        ]
        for part, file in files.items()
    }
    source = provenance_of(
        list(files.values()), "its own parts; text, label numbers, id", "Apache 2.0, Google Research"
    )
    return Corpus.from_parts("goemotions", parts, names, source)


def _parsed(line: str, names: list[str], place: str) -> tuple[str, str, list[str]]:
    """Return id, text and labels of a line; quotes have no meaning in it."""
    cells = line.split("\t")
    if len(cells) != 3:
        raise CorpusError(f"{place} must be a text, label numbers and an id, between tabs. Got {len(cells)} cells.")
    numbers = [number.strip() for number in cells[1].split(",")]
    if not all(number.isdecimal() and int(number) < len(names) for number in numbers):
        raise CorpusError(f"{place} must have label numbers from 0 to {len(names) - 1}. Got {cells[1]!r:.60}.")
    return cells[2].strip(), cells[0], [names[int(number)] for number in numbers]
