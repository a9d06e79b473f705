"""AAPD, the Arxiv Academic Paper Dataset: its authors' files, the hedwig TSV, or JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from surelabel.corpora.corpus import Corpus
from surelabel.corpora.files import as_path, parse_json, provenance_of, read_lines, read_text
from surelabel.exceptions import CorpusError

_PARTS = {"train": ("train",), "validation": ("val", "validation", "dev"), "test": ("test",)}

_Rows = list[tuple[str, list[str]]]


def read_aapd(path: str | Path, *, label_names: Sequence[str] | None = None) -> Corpus:
    r"""Read AAPD from a folder; its own train, validation and test parts are kept.

    The folder has, for each part that there is, ``text_train`` and ``label_train`` (its authors' form: one text per
    line, labels separated by spaces), ``train.tsv`` (hedwig's: a 0/1 string, a tab, the text) or ``train.json`` (a list
    of objects with text and label). `label_names` are for the places of hedwig's 0/1 strings; by default those of
    ``labels.json`` (name to number) if the folder has it, otherwise "label-00" and so on.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from surelabel import corpora
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "text_train").write_text("we prove a bound\na robot learns\n")
    ...     _ = (Path(folder) / "label_train").write_text("cs.IT math.IT\ncs.RO\n")
    ...     corpora.read_aapd(folder)
    Corpus 'aapd': 2 texts, 3 labels (train 2)
    """
    folder = as_path(path)
    if not folder.is_dir():
        raise CorpusError(f"AAPD must be a folder of files. Got {folder.name!r} instead.")
    names = list(label_names) if label_names is not None else _names_in(folder)
    files = {part: paths for part, aliases in _PARTS.items() if (paths := _find_part(folder, aliases))}
    if not files:
        raise CorpusError(
            "The AAPD folder must hold text_train and label_train, train.tsv or train.json, or the like for val and "
            f"test. Got {sorted(file.name for file in folder.iterdir())[:8]} in {folder.name!r} instead."
        )
    rows = {part: _read_part(paths, names) for part, paths in files.items()}
    used = {label for part in rows.values() for _, labels in part for label in labels}
    return Corpus.from_parts(
        "aapd",
        {part: [(f"{part}-{i}", text, labels) for i, (text, labels) in enumerate(rows[part])] for part in rows},
        names if names and used <= set(names) else sorted(used),
        provenance_of(
            [file for paths in files.values() for file in paths],
            "the authors' parts; one text and its labels per line or record",
            "research use; abstracts belong to their authors",
        ),
    )


def _names_in(folder: Path) -> list[str]:
    """Return the label names of labels.json in the order of their numbers, if it is there."""
    file = folder / "labels.json"
    if not file.exists():
        return []
    numbers = parse_json(read_text(file), file.name)
    if not isinstance(numbers, dict) or not all(isinstance(number, int) for number in numbers.values()):
        raise CorpusError("'labels.json' of AAPD must be an object of label name to number. Got another form instead.")
    return sorted(numbers, key=lambda name: (numbers[name], name))


def _find_part(folder: Path, aliases: Sequence[str]) -> list[Path]:
    """Return the file or two files of one part."""
    for alias in aliases:
        pair = [folder / f"text_{alias}", folder / f"label_{alias}"]
        if pair[0].exists() != pair[1].exists():
            there, gone = pair if pair[0].exists() else pair[::-1]
            raise CorpusError(f"AAPD's {there.name!r} must come with {gone.name!r}. Got no such file instead.")
        if pair[0].exists():
            return pair
        for name in (f"{alias}.tsv", f"aapd_{alias}.tsv", f"{alias}.json"):
            if (folder / name).exists():
                return [folder / name]
    return []


def _read_part(files: list[Path], names: list[str]) -> _Rows:
    if len(files) == 2:
        return _read_pair(*files)
    return _read_tsv(files[0], names) if files[0].suffix == ".tsv" else _read_json(files[0])


def _read_pair(text_file: Path, label_file: Path) -> _Rows:
    texts, labels = read_lines(text_file), read_lines(label_file)
    if len(texts) != len(labels):
        raise CorpusError(
            f"AAPD's {label_file.name!r} must have a line for each of the {len(texts):,} lines of "
            f"{text_file.name!r}. Got {len(labels):,} instead."
        )
    return [(text.strip(), line.split()) for text, line in zip(texts, labels, strict=True)]


def _read_tsv(file: Path, names: list[str]) -> _Rows:
    rows: _Rows = []
    width = len(names)
    for number, line in enumerate(read_lines(file), start=1):
        bits, tab, text = line.partition("\t")
        width = width or len(bits)
        if not tab or len(bits) != width or not re.fullmatch("[01]+", bits):
            raise CorpusError(
                f"Line {number} of AAPD's {file.name!r} must be {width} digits 0 or 1, a tab and a text. "
                f"Got {line[:40]!r} instead."
            )
        if not names:
            names.extend(f"label-{place:02d}" for place in range(width))
        rows.append((text.strip(), [names[place] for place, bit in enumerate(bits) if bit == "1"]))
    return rows


def _read_json(file: Path) -> _Rows:
    records = parse_json(read_text(file), file.name)
    rows: _Rows = []
    for number, record in enumerate(records if isinstance(records, list) else [None], start=1):
        fields = record if isinstance(record, dict) else {}
        text, labels = fields.get("text"), fields.get("label", fields.get("labels"))
        if not isinstance(text, str) or not isinstance(labels, list):
            raise CorpusError(
                f"Record {number} of AAPD's {file.name!r} must be an object with a 'text' and a list 'label'. "
                "Got another form instead."
            )
        rows.append((text, [str(label) for label in labels]))
    return rows
