"""GoEmotions: short texts with emotions, in its own three parts."""

from __future__ import annotations

from pathlib import Path

from surelabel.corpora.corpus import Corpus
from surelabel.corpora.files import as_path, provenance_of, read_lines
from surelabel.exceptions import CorpusError

EMOTIONS: tuple[str, ...] = (
    "admiration", "amusement", "anger", "annoyance", "approval", "caring", "confusion", "curiosity", "desire",
    "disappointment", "disapproval", "disgust", "embarrassment", "excitement", "fear", "gratitude", "grief", "joy",
    "love", "nervousness", "optimism", "pride", "realization", "relief", "remorse", "sadness", "surprise", "neutral",
)  # fmt: skip

_FILES = {"train": "train.tsv", "validation": "dev.tsv", "test": "test.tsv"}


def read_goemotions(path: str | Path) -> Corpus:
    r"""Read GoEmotions from a folder with train.tsv, dev.tsv and test.tsv; these parts are kept.

    Each line is a text, comma-separated label numbers and an id, with tabs between. Label names come from
    ``labels.txt`` or ``emotions.txt`` if there is one, otherwise they are the 28 published ones.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from surelabel import corpora
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "train.tsv").write_text("what a day\t0,17\tid1\nnot again\t2\tid2\n")
    ...     corpus = corpora.read_goemotions(folder)
    >>> [sorted(label_set) for label_set in corpus.label_sets]
    [['admiration', 'joy'], ['anger']]
    """
    folder = as_path(path)
    files = {part: folder / name for part, name in _FILES.items() if (folder / name).exists()}
    if not files:
        raise CorpusError(
            f"GoEmotions must be a folder with {list(_FILES.values())}. Got {folder.name!r} without them instead."
        )
    names = _label_names(folder)
    parts = {
        part: [
            _parsed(line, names, f"Line {number} of {file.name!r}")
            for number, line in enumerate(read_lines(file), start=1)
        ]
        for part, file in files.items()
    }
    return Corpus.from_parts(
        "goemotions",
        parts,
        names,
        provenance_of(list(files.values()), "its own parts; text, label numbers, id", "Apache 2.0, Google Research"),
    )


def _label_names(folder: Path) -> list[str]:
    for name in ("labels.txt", "emotions.txt"):
        if (folder / name).exists():
            return [line.strip() for line in read_lines(folder / name) if line.strip()]
    return list(EMOTIONS)


def _parsed(line: str, names: list[str], place: str) -> tuple[str, str, list[str]]:
    """Return id, text and labels of a line; quotes mean nothing in it."""
    cells = line.split("\t")
    if len(cells) != 3:
        raise CorpusError(
            f"{place} must be a text, label numbers and an id, with tabs between. Got {len(cells)} cells instead."
        )
    numbers = [number.strip() for number in cells[1].split(",")]
    if not all(number.isdecimal() and int(number) < len(names) for number in numbers):
        raise CorpusError(
            f"{place} must have label numbers from 0 to {len(names) - 1}, separated by commas. "
            f"Got {cells[1]!r} instead."
        )
    return cells[2].strip(), cells[0], [names[int(number)] for number in numbers]
